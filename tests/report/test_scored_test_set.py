"""A test set of a run, translated and scored."""

from collections.abc import Callable
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

    def __init__(self, config: Config) -> None:
        self.run = SimpleNamespace(config=config)

    def translate(self, texts: Any, warn: Any, progress: Any) -> Any:
        progress(len(texts))
        return [Translation("der Hund läuft davon", 0.0) for _ in texts]


@pytest.fixture
def translator(tmp_path: Path) -> Any:
    data: dict[str, Any] = {}
    for split, sides in SIDES.items():
        paths = [tmp_path / f"{split}.{language}" for language in ("en", "de")]
        for path, text in zip(paths, sides, strict=True):
            path.write_text(text, "utf-8")
        data[split] = {"source": str(paths[0]), "target": str(paths[1])}
    data["validation"] = data["train"]
    return ConstantTranslator(Config.model_validate({"data": data}))


def score(
    translator: Any,
    name: str | None = None,
    most: int | None = None,
    progress: Callable[[int, int], object] = lambda more, total: None,
) -> ScoredTestSet:
    return score_test_set(translator, name, most, lambda message: None, progress)


def test_a_set_is_translated_and_scored_by_length_and_rarity(translator: Any) -> None:
    told: list[tuple[int, int]] = []
    found = score(translator, "test", progress=lambda *done: told.append(done))
    assert found.sources == ["one", "two", "three"] and found.title == "test set"
    assert told == [(3, 3)]
    expected = bleu(found.translations, found.references, confidence=False)
    assert found.scores[0].value == pytest.approx(expected.value)
    assert found.sentence_scores[0] == pytest.approx(100)
    assert found.sentence_scores[1] < 60
    # `der` stands twice in the training text, `Hund` and `Mann` once, the others never
    assert (found.by_rarity[0].label, found.by_rarity[0].size) == ("0", 3)
    assert sum(row.size for row in found.by_rarity) == 7


def test_the_first_sentences_of_a_set_are_named_as_such(translator: Any) -> None:
    found = score(translator, "test", 2)
    assert len(found.translations) == 2 and found.sentences_in_all == 3
    assert found.title == "first 2 of the test set"


def test_without_the_training_text_rarity_is_unknown(translator: Any, tmp_path: Path) -> None:
    (tmp_path / "train.de").unlink()
    found = score(translator, "test")
    assert found.by_rarity == [] and "train.de" in found.rarity_words


def without_test_set(translator: Any) -> Any:
    data = translator.run.config.data.model_copy(update={"test": None})
    return ConstantTranslator(translator.run.config.model_copy(update={"data": data}))


def test_the_default_is_the_test_set_or_else_the_validation_set(translator: Any) -> None:
    found = score(without_test_set(translator))
    assert found.name == "validation" and len(found.sources) == 2
    assert score(translator).name == "test"


def test_a_missing_set_is_an_error(translator: Any) -> None:
    with pytest.raises(ConfigError, match="names no test set"):
        score(without_test_set(translator), "test")


def test_nothing_is_downloaded_for_a_report(tmp_path: Path) -> None:
    data = {"corpus": "wmt14", "target_language": "de", "directory": str(tmp_path)}
    far = ConstantTranslator(Config.model_validate({"data": data}))
    with pytest.raises(DataError, match=f"wmt14 is not in {tmp_path}; go where the run was"):
        score(far)
    assert not list(tmp_path.iterdir())
