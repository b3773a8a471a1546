"""Held-out sentences are found whole, or by a run of words."""

import pytest

from nmt.data.text.contamination import HeldOutPairs, HeldOutText
from nmt.data.text.parallel_text import SentencePair

SENTENCES = ["A man in a red shirt climbs the high wall.", "Two dogs!", "..."]


@pytest.mark.parametrize(
    ("text", "whole", "by_words"),
    [
        ("a MAN in a red shirt climbs the high wall", True, True),
        ("Yesterday a man in a red shirt climbs out.", False, True),
        ("A man in a blue shirt climbs the high wall", False, False),
        ("two dogs", True, True),
        ("Two dogs run.", False, False),
        ("!", False, False),
        ("", False, False),
    ],
)
def test_sentences_are_found(text: str, whole: bool, by_words: bool) -> None:
    assert HeldOutText(SENTENCES).occurs_in(text) == whole
    assert HeldOutText(SENTENCES, run_length=6).occurs_in(text) == by_words


def test_either_side_counts_and_only_as_that_side() -> None:
    held_out = HeldOutPairs([SentencePair("two dogs", "zwei Hunde")])
    assert held_out.occur_in(SentencePair("two dogs", "etwas anderes"))
    assert held_out.occur_in(SentencePair("something else", "Zwei Hunde."))
    assert not held_out.occur_in(SentencePair("zwei Hunde", "two dogs"))


def test_the_digest_depends_on_the_sentences_alone() -> None:
    digest = HeldOutText(SENTENCES).digest
    assert HeldOutText(SENTENCES[::-1]).digest == digest
    assert HeldOutText(SENTENCES, run_length=3).digest != digest
    assert HeldOutText(SENTENCES[:1]).digest != digest
