"""Places of protected parts in translations of scripts whose words have signs."""

import pytest

from nmt.translation.line import Line
from nmt.translation.part_places import PartPlaces
from nmt.translation.spans import Edit, Link, apply_edits


def placed(source: str, at: int, translation: str, *links: Link) -> str:
    """The translation with 👍, which was left out of the source in front of character `at`."""
    line = Line(1, source, parts=(Edit((at, at), " 👍"),))
    edits = PartPlaces(line, translation, links).edits()
    return apply_edits(translation, [edit for edit, _ in edits])


@pytest.mark.parametrize("translation", ["मेरे पास चाबी है", "แอนนาอยู่ที่นี่", "Anna hat e\u0301"])
def test_a_sign_of_the_last_letter_is_no_punctuation(translation: str) -> None:
    source = "Anna has a key."
    assert placed(source, len(source) - 1, translation) == f"{translation} 👍"
    assert placed(source, len(source) - 1, f"{translation}!") == f"{translation} 👍!"


def test_no_word_is_divided_between_a_letter_and_its_sign() -> None:
    link = Link((0, 4), (0, 2))  # "Anna" and the first letter with its sign
    assert placed("Anna has a key", 4, "चाबी है", link) == "चाबी 👍 है"
