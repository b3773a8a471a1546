"""The sentences whose attention a report shows."""

import re
from typing import Any

import pytest

from nmt.report.attention_maps import MAX_PIECES
from nmt.report.run_report import MAX_DEFAULT_PIECES, _attention
from nmt.training.validation import ExampleTranslation
from tests.report.conftest import with_longer_translations


def chapter(run: Any, asked: list[str], kept: list[str]) -> tuple[list[str] | str, list[str]]:
    """The sentences whose attention is shown, or why there are none; and what was logged.

    A translation has as many pieces as its sentence.
    """
    told: list[str] = []
    examples = {1: [ExampleTranslation(text, "b", "b") for text in kept]}
    found = _attention(with_longer_translations(run, -1), asked, examples, told.append)
    shown = found if isinstance(found, str) else [one.text for one in found]
    return shown, told


def test_a_chosen_sentence_is_shown_up_to_the_limit_of_nmt_plot(run: Any) -> None:
    chosen = ["a" * length for length in (1, MAX_DEFAULT_PIECES + 1, MAX_PIECES)]
    assert chapter(run, chosen, []) == (chosen, [])


@pytest.mark.parametrize(
    ("asked", "kept", "said"),
    [
        ([""], ["a"], r"asked for can be drawn: each is empty .* more than 80 pieces, .* 80;"),
        (["a" * 81], [], r"asked for can be drawn: each is empty .* more than 80 pieces, .* 80;"),
        ([], ["", "a" * 41], r"that the run kept can be drawn: .* than 40 pieces, .* than 80;"),
    ],
)
def test_missing_maps_are_explained(run: Any, asked: list[str], kept: list[str], said: str) -> None:
    shown, _ = chapter(run, asked, kept)
    assert re.match(f"None of the sentences {said}", str(shown))


def test_unsuitable_duplicate_and_surplus_sentences_of_the_run_are_skipped(run: Any) -> None:
    longest = "a" * MAX_DEFAULT_PIECES
    kept = ["", "a", longest, "a", f"{longest}a", "M\udcfcll", "b", "c", "d"]
    assert chapter(run, [], kept) == (["a", longest, "b", "c"], [])
