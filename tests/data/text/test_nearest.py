"""The nearest sentences of many: those that a comparison with each of them finds."""

import random

import pytest

from nmt.data.text.nearest import NearestPairs
from nmt.data.text.similarity import signature, similarities


def test_a_sentence_does_not_find_itself() -> None:
    sources = ["a b c d", "a b c e", "x"]
    nearest = NearestPairs(sources)
    assert nearest.find(sources, own=[0, 1, 2]) == [[(1, 0.75)], [(0, 0.75)], []]
    assert nearest.find(sources[:1]) == [[(0, 1.0)]]


def test_equal_sources_are_left_out_where_asked_and_those_with_other_numbers_stay() -> None:
    nearest = NearestPairs(["See page 5.", "See  page 5.", "See page 7.", "See all pages."])
    found = nearest.find(["See page 5."], count=4, own=[0])[0]
    assert [index for index, _ in found] == [1, 2, 3]
    found = nearest.find(["See page 5."], count=4, own=[0], skip_equal=True)[0]
    assert found == [(2, 1.0), (3, pytest.approx(0.5))]


def test_the_best_are_those_of_a_comparison_with_all() -> None:
    draw = random.Random(3)
    words = [f"w{n}" for n in range(60)]
    sources = [" ".join(draw.choices(words, k=draw.randrange(3, 12))) for _ in range(300)]
    texts = []
    for source in sources[:80]:
        changed = source.split()
        changed[draw.randrange(len(changed))] = "other"
        texts.append(" ".join(changed))
    signatures = [signature(source) for source in sources]
    for text, found in zip(texts, NearestPairs(sources).find(texts), strict=True):
        best = similarities(signature(text), signatures, 0.5).max()
        assert [score for _, score in found] == ([pytest.approx(best)] if best else [])


@pytest.mark.parametrize("sources", [[], [""]])
def test_where_nothing_is_nothing_is_found(sources: list[str]) -> None:
    assert NearestPairs(sources).find(["a b", ""]) == [[], []]
