"""The fuzzy match score: words that differ, divided by the length of the longer sentence."""

import pytest

from nmt.data.text.similarity import compared_text, signature, similarities


@pytest.mark.parametrize(
    ("text", "other", "score"),
    [
        ("The dog barks.", "The dog  barks.", 1),
        ("The dog barks.", "The dog sleeps.", 0.75),
        ("The dog barks.", "The dog barks.".upper(), 0.25),  # the full stop
        ("The dog barks.", "The big dog barks loudly now.", 4 / 7),
        ("e\u0301tude", "\u00e9tude", 1),  # NFC
        ("Article 12, 3.5 %, on 12/03/2026 at 12:30", "Article 7, 4 %, on 2026-03-12 at 9:00", 1),
        ("Article 12", "Article B12", 0.5),
        ("See http://a.org/b and %s.", "See www.b.org and {name}.", 1),
        ("See %s.", "See 5.", 2 / 3),  # a placeholder is no number
        ("我们吃饭", "我们喝茶", 0.5),
        ("2020年", "2021年", 1),
        ("ผมกินข้าว", "ผมกินปลา", 4 / 6),
    ],
)
def test_the_score_counts_words_that_differ(text: str, other: str, score: float) -> None:
    assert similarities(signature(text), [signature(other)])[0] == pytest.approx(score)
    assert similarities(signature(other), [signature(text)])[0] == pytest.approx(score)


def test_scores_below_the_minimum_are_zero() -> None:
    others = [signature("The dog sleeps."), signature("A cat."), ""]
    assert similarities(signature("The dog barks."), others, 0.7).tolist() == [0.75, 0, 0]


def test_values_stand_in_the_order_of_the_text() -> None:
    assert compared_text("Add  5 to {x}, not 7.").values == ["5", "{x}", "7"]
