from collections.abc import Callable, Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from nmt.config import Config, DataConfig, TextPair
from nmt.data.text.parallel_text import ParallelText
from nmt.errors import ConfigError, DataError
from nmt.evaluation import evaluate as evaluate_module
from nmt.evaluation.evaluate import evaluate, find_split
from nmt.evaluation.metrics import bleu, bleu_tokenizer
from nmt.translation.translator import Translation

SOURCES = ["a cat , a dog , a mouse and it's late .", "two birds sing in the trees ."]
REFERENCES = ["A CAT , A DOG , A MOUSE AND IT'S LATE.", "TWO BIRDS SANG IN THE TREES."]


class Shouter:
    """A translator into capitals."""

    def __init__(self, data: DataConfig) -> None:
        self.run = SimpleNamespace(config=Config(data=data))

    def translate(
        self, texts: Iterable[str], warn: Callable[[str], None], progress: Callable[[int], Any]
    ) -> Iterator[Translation]:
        for text in texts:
            progress(1)
            yield Translation(text.upper(), 0.0)


@pytest.mark.parametrize("tokenized", [False, True])
def test_the_score_is_that_of_the_translations(tokenized: bool) -> None:
    translator: Any = Shouter(DataConfig(tokenized=tokenized))
    done: list[int] = []
    result = evaluate(translator, SOURCES, REFERENCES, confidence=False, progress=done.append)
    assert result.translations == [source.upper() for source in SOURCES]
    assert result.score == bleu(
        result.translations, REFERENCES, bleu_tokenizer("de", tokenized), confidence=False
    )
    assert sum(done) == 2


def test_as_many_references_as_sources_are_needed() -> None:
    translator: Any = Shouter(DataConfig())
    with pytest.raises(DataError, match="2 translations but 1 references"):
        evaluate(translator, SOURCES, REFERENCES[:1])


def pair(name: str) -> TextPair:
    return TextPair(source=f"{name}.en", target=f"{name}.de")


def test_the_split_is_the_configurations() -> None:
    data = DataConfig(train=pair("train"), validation=pair("dev"), test=pair("test"))
    log: list[str] = []
    assert find_split(data, "test", log.append) == ParallelText(pair("test"), ("en", "de"))
    assert find_split(data, "validation", log.append) == ParallelText(pair("dev"), ("en", "de"))


def test_a_missing_split_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    splits = SimpleNamespace(validation=pair("dev"), test=None)
    monkeypatch.setattr(evaluate_module, "resolve", lambda config, log: splits)
    with pytest.raises(ConfigError, match="names no test set; give --source and --reference"):
        find_split(DataConfig(), "test", print)
