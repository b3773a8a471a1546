import pytest

from nmt.errors import DataError
from nmt.search.forbidden_words import ForbiddenWords


@pytest.mark.parametrize(
    ("text", "there", "there_for_good"),
    [
        (" Ein Hund", True, False),
        (" Ein Hund.", True, True),
        (" HUND und", True, True),
        (" Hunde", False, False),
        (" Hund\N{COMBINING DIAERESIS}", False, False),
        (" \N{DOG FACE}Hund\N{DOG FACE}", True, True),
    ],
)
def test_a_word_at_the_end_may_still_become_another(
    text: str, there: bool, there_for_good: bool
) -> None:
    words = ForbiddenWords(["hund"], has_inner_pieces=True)
    assert words.are_in(text.encode()) is there
    assert words.are_in(text.encode(), goes_on=True) is there_for_good
    assert ForbiddenWords(["hund"], False).are_in(text.encode(), goes_on=True) is there


def test_half_a_character_at_the_end_says_nothing_yet() -> None:
    words = ForbiddenWords(["hund"], has_inner_pieces=True)
    assert not words.are_in(" Hundé".encode()[:-1], goes_on=True)
    assert words.are_in(b" Hund\xc3 ", goes_on=True)


def test_what_is_asked_for_and_forbidden_is_refused() -> None:
    words = ForbiddenWords(["hund"], has_inner_pieces=True)
    words.check_demanded(["Hunde", "Ein Hund"])
    for texts in (["Ein Hund", ""], ["", "Hund "]):
        with pytest.raises(DataError, match="is asked for, and 'hund' is forbidden; leave out"):
            words.check_demanded(texts)


def test_without_words_nothing_is_forbidden() -> None:
    assert not ForbiddenWords([], True) and not ForbiddenWords([], True).are_in(b" Hund ")
