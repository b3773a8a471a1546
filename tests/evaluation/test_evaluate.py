from collections.abc import Callable, Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from nmt.config import DataConfig, TextPair
from nmt.data.text.parallel_text import ParallelText
from nmt.errors import ConfigError, DataError
from nmt.evaluation import evaluate
from nmt.evaluation.evaluate import find_split, translate_test_set
from nmt.evaluation.test_sets import EvaluationSet
from nmt.translation.line import Translation


class Shouter:
    """A translator into capitals."""

    def translate(
        self, texts: Iterable[str], warn: Callable[[str], None], progress: Callable[[int], Any]
    ) -> Iterator[Translation]:
        for text in texts:
            progress(1)
            yield Translation(text.upper(), 0.0)


def test_every_source_is_translated_and_counted() -> None:
    translator: Any = Shouter()
    done: list[int] = []
    test_set = EvaluationSet("mine", ["ein Hund", "zwei"], ["a dog", "two"])
    assert translate_test_set(translator, test_set, progress=done.append) == ["A DOG", "TWO"]
    assert sum(done) == 2


@pytest.mark.parametrize("sources", [None, []])
def test_a_test_set_without_sources_is_an_error(sources: list[str] | None) -> None:
    translator: Any = Shouter()
    with pytest.raises(DataError, match="mine: no sentences to translate"):
        translate_test_set(translator, EvaluationSet("mine", [], sources))


def pair(name: str) -> TextPair:
    return TextPair(source=f"{name}.en", target=f"{name}.de")


def test_the_split_comes_from_the_configuration() -> None:
    data = DataConfig(train=[pair("train")], validation=pair("dev"), test=pair("test"))
    log: list[str] = []
    assert find_split(data, "test", log.append) == ParallelText(pair("test"), ("en", "de"))
    assert find_split(data, "validation", log.append) == ParallelText(pair("dev"), ("en", "de"))


def test_a_missing_split_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    splits = SimpleNamespace(validation=pair("dev"), test=None)
    monkeypatch.setattr(evaluate, "resolve", lambda config, log: splits)
    with pytest.raises(ConfigError, match="names no test set; give --source and --reference"):
        find_split(DataConfig(), "test", print)
