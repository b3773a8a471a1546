"""A test set of a run, translated and scored."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nmt.config import Config
from nmt.errors import ConfigError, DataError
from nmt.evaluation.metrics import bleu
from nmt.report.scored_test_set import ScoredTestSet, score_test_set
from nmt.translation.line import Translation

SIDES = {
    "train": ("a\nb\n", "der Hund\nder Mann\n"),
    "test": ("one\ntwo\nthree\n", "der Hund läuft davon\nder Mann\nVögel\n"),
}


class ConstantTranslator:
    """Translates every sentence to the same text."""

    def __init__(self, **data: Any) -> None:
        self.run = SimpleNamespace(config=Config.model_validate({"data": data}))
        self.progress: list[tuple[int, int]] = []

    def translate(self, texts: Any, warn: Any, progress: Any) -> Any:
        progress(len(texts))
        return [Translation("der Hund läuft davon", 0.0) for _ in texts]

    def score(self, name: str | None = None, most: int | None = None) -> ScoredTestSet:
        def progress(*done: int) -> None:
            self.progress.append((done[0], done[1]))

        return score_test_set(self, name, most, lambda message: None, progress)  # type: ignore[arg-type]


@pytest.fixture
def data(tmp_path: Path) -> dict[str, Any]:
    """The data section of a recipe whose texts are here."""
    splits: dict[str, Any] = {}
    for split, sides in SIDES.items():
        paths = [tmp_path / f"{split}.{language}" for language in ("en", "de")]
        for path, text in zip(paths, sides, strict=True):
            path.write_text(text, "utf-8")
        splits[split] = {"source": str(paths[0]), "target": str(paths[1])}
    return {**splits, "validation": splits["train"]}


def test_a_set_is_translated_and_scored_by_length_and_rarity(data: dict[str, Any]) -> None:
    translator = ConstantTranslator(**data)
    found = translator.score()
    assert found.sources == ["one", "two", "three"] and found.title == "test set"
    assert translator.progress == [(3, 3)]
    expected = bleu(found.translations, found.references, confidence=False)
    assert found.scores[0].value == pytest.approx(expected.value)
    assert found.sentence_scores[0] == pytest.approx(100)
    assert found.sentence_scores[1] < 60
    # `der` stands twice in the training text, `Hund` and `Mann` once, the others never
    assert (found.by_rarity[0].label, found.by_rarity[0].size) == ("0", 3)
    assert sum(row.size for row in found.by_rarity) == 7


def test_a_part_of_a_set_is_named_as_such_and_rarity_needs_the_training_text(
    data: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "train.de").unlink()
    found = ConstantTranslator(**data).score("test", 2)
    assert len(found.translations) == 2 and found.title == "first 2 of the test set"
    assert found.by_rarity == [] and "train.de" in found.rarity_words


def test_the_default_is_the_test_set_or_else_the_validation_set(data: dict[str, Any]) -> None:
    without_test_set = ConstantTranslator(**{**data, "test": None})
    found = without_test_set.score()
    assert found.name == "validation" and len(found.sources) == 2
    with pytest.raises(ConfigError, match="names no test set"):
        without_test_set.score("test")


def test_nothing_is_downloaded_for_a_report(tmp_path: Path) -> None:
    far = ConstantTranslator(corpus="wmt14", target_language="de", directory=str(tmp_path))
    with pytest.raises(DataError, match=f"wmt14 is not in {tmp_path}; go where the run was"):
        far.score()
    assert not list(tmp_path.iterdir())
