"""What a report finds out about a run: a scored test set, attention, and the prepared data."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nmt.errors import ConfigError, DataError
from nmt.evaluation.metrics import bleu
from nmt.recipe.config import Config
from nmt.report.attention_maps import MAX_PIECES
from nmt.report.run_report import (
    MAX_DEFAULT_PIECES,
    ReportOptions,
    ScoredTestSet,
    _attention,
    score_test_set,
)
from nmt.training.validation import ExampleTranslation
from nmt.translation.line import Translation
from tests.report.conftest import with_longer_translations

TEXTS = {
    "train.tsv": "a\tder Hund\nb\tder Mann\n",
    "test.tsv": "one\tder Hund läuft davon\ntwo\tder Mann\nthree\tVögel\n",
}


@pytest.fixture
def data(tmp_path: Path) -> dict[str, Any]:
    """The data section of a recipe whose texts are here."""
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(text, "utf-8")
    train, test = ({"file": str(tmp_path / name)} for name in TEXTS)
    return {"train": train, "validation": train, "test": test}


def scored(data: dict[str, Any], **options: Any) -> tuple[ScoredTestSet, list[tuple[int, int]]]:
    """The scores of a run that translates every sentence to the same text, and its progress."""
    done: list[tuple[int, int]] = []

    def translate(texts: list[str], progress: Any) -> list[Translation]:
        progress(len(texts))
        return [Translation("der Hund läuft davon", 0.0) for _ in texts]

    config = Config.model_validate({"data": data})
    translator: Any = SimpleNamespace(translations=translate)
    wanted = ReportOptions(**options)
    found = score_test_set(
        translator, config.data, wanted, lambda _: None, lambda *more: done.append(more)
    )
    assert isinstance(found, ScoredTestSet)
    return found, done


def test_a_set_is_translated_and_scored_by_length_and_rarity(data: dict[str, Any]) -> None:
    found, done = scored(data)
    assert found.test_set.name == "test" and found.test_set.sources == ["one", "two", "three"]
    assert done == [(3, 3)] and found.size == 3
    expected = bleu(found.translations, found.test_set.references, confidence=False)
    assert found.scores[0].value == pytest.approx(expected.value)
    assert found.sentence_scores[0] == pytest.approx(100)
    assert found.sentence_scores[1] < 60
    # `der` stands twice in the training text, `Hund` and `Mann` once, the others never
    assert (found.by_rarity[0].label, found.by_rarity[0].size) == ("0", 3)
    assert sum(row.size for row in found.by_rarity) == 7


def test_a_part_of_a_set_and_missing_training_text(data: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "train.tsv").unlink()
    found, _ = scored(data, test_set="test", max_sentences=2)
    assert len(found.translations) == 2 and found.size == 3
    assert found.by_rarity == [] and "train.tsv" in found.rarity_remark


def test_the_default_is_the_test_set_or_else_the_validation_set(data: dict[str, Any]) -> None:
    without_test_set = {**data, "test": None}
    found, _ = scored(without_test_set)
    assert found.test_set.name == "validation" and len(found.translations) == 2
    with pytest.raises(ConfigError, match="names no test set"):
        scored(without_test_set, test_set="test")


def test_nothing_is_downloaded_for_a_report(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"wmt14 is not in {tmp_path}; go where the run was"):
        scored({"corpus": "wmt14", "target_language": "de", "directory": str(tmp_path)})
    assert not list(tmp_path.iterdir())


def shown(loaded: Any, asked: list[str], kept: list[str]) -> list[str] | str:
    """The sentences whose attention is shown, or why there are none.

    A translation has as many pieces as its sentence.
    """
    examples = {1: [ExampleTranslation(text, "b", "b") for text in kept]}
    found = _attention(with_longer_translations(loaded, -1), asked, examples, pytest.fail)
    return found if isinstance(found, str) else [one.text for one in found]


def test_a_chosen_sentence_is_shown_up_to_the_limit_of_nmt_plot(loaded: Any) -> None:
    chosen = ["a" * length for length in (1, MAX_DEFAULT_PIECES + 1, MAX_PIECES)]
    assert shown(loaded, chosen, []) == chosen


@pytest.mark.parametrize(
    ("asked", "kept", "said"),
    [
        (["", "a" * 81], ["a"], r"asked for can be drawn: each is empty .* 80 pieces, .* 80;"),
        ([], ["", "a" * 41], r"that the run kept can be drawn: .* than 40 pieces, .* than 80;"),
    ],
)
def test_missing_maps_are_explained(
    loaded: Any, asked: list[str], kept: list[str], said: str
) -> None:
    assert re.match(f"None of the sentences {said}", str(shown(loaded, asked, kept)))


def test_unsuitable_duplicate_and_surplus_sentences_of_the_run_are_skipped(loaded: Any) -> None:
    longest = "a" * MAX_DEFAULT_PIECES
    kept = ["", "a", longest, "a", f"{longest}a", "M\udcfcll", "b", "c", "d"]
    assert shown(loaded, [], kept) == ["a", longest, "b", "c"]
