import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from nmt.config import DecodingConfig
from nmt.errors import ConfigError, DataError
from nmt.run_directory import LoadedModel
from nmt.translation.scoring import Scorer
from nmt.translation.text_translator import TextTranslator
from nmt.translation.translator import Translator

TEXTS = ["a small dog", "", "ein Hund 😀", "a\u2028b"]


@pytest.fixture
def copier(copying_run: LoadedModel) -> TextTranslator:
    """Its translation of a text is the text."""
    settings = DecodingConfig(beam_size=1, batch_tokens=1 << 14)
    return TextTranslator(Translator(copying_run, settings))


@pytest.fixture(scope="module")
def random_translator(random_run: LoadedModel) -> TextTranslator:
    return TextTranslator(Translator(random_run))


def test_a_list_gives_a_list_in_order(copier: TextTranslator) -> None:
    assert copier.translate(TEXTS) == TEXTS
    assert copier.translate([]) == []


def test_a_string_gives_a_string(copier: TextTranslator) -> None:
    assert copier.translate("a small dog") == "a small dog"
    assert copier.translate("") == ""


def test_the_line_ends_of_an_open_file_are_no_text(copier: TextTranslator) -> None:
    lines = ["a\n", "b\r\n", "\n", "c"]
    assert copier.translate(lines) == list(copier.translate(iter(lines))) == ["a", "b", "", "c"]


@pytest.mark.parametrize("stream", [iter, tuple, lambda texts: (text for text in texts)])
def test_any_other_iterable_gives_a_generator(copier: TextTranslator, stream: Any) -> None:
    found = copier.translate(stream(TEXTS))
    assert iter(found) is found
    assert list(found) == TEXTS


def test_an_endless_stream_yields_its_first_results(copier: TextTranslator) -> None:
    endless = (str(number) for number in itertools.count())
    found = copier.translate(endless)
    assert list(itertools.islice(found, 3)) == ["0", "1", "2"]


def test_a_window_says_how_far_a_stream_is_read_ahead(copier: TextTranslator) -> None:
    taken: list[str] = []

    def texts() -> Iterator[str]:
        for text in "abcdef":
            taken.append(text)
            yield text

    found = copier.translate(texts(), window_lines=2)
    assert taken == []
    assert next(found) == "a"
    assert taken == ["a", "b"]


def test_it_translates_as_the_translator_does(
    random_run: LoadedModel, random_translator: TextTranslator
) -> None:
    expected = [translation.text for translation in Translator(random_run).translate(TEXTS)]
    assert random_translator.translate(TEXTS) == expected
    assert [random_translator.translate(text) for text in TEXTS] == expected


def test_scores_are_those_of_the_scorer(
    random_run: LoadedModel, random_translator: TextTranslator
) -> None:
    targets = TEXTS[::-1]
    expected = list(Scorer(random_run).score(zip(TEXTS, targets, strict=True)))
    found = random_translator.score(TEXTS, iter(targets))
    assert found == [score.log_probability for score in expected]
    found = random_translator.score(TEXTS, targets, length_penalty=0.6)
    assert found == [score.penalised(DecodingConfig(length_penalty=0.6)) for score in expected]
    assert random_translator.score([], []) == []


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (b"a dog", "texts is bytes, expected text: decode it"),
        (None, "texts is None; expected a string, a list of strings or another iterable"),
        (7, "texts is of type int; expected a string"),
        (["a", None], r"texts\[1\] is None, expected a string: leave it out, or give ''"),
        (["a", "b", b"c"], r"texts\[2\] is of type bytes, expected a string"),
        ([["a"]], r"texts\[0\] is of type list, expected a string"),
        (["a", "b \udc80"], r"texts\[1\] holds half a surrogate pair \('\\udc80'\)"),
        ("\ud800", r"texts\[0\] holds half a surrogate pair"),
    ],
)
def test_what_is_no_text_is_refused(copier: TextTranslator, texts: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        copier.translate(texts)


def test_what_is_no_text_in_a_stream_is_refused_when_its_turn_comes(
    copier: TextTranslator,
) -> None:
    stream: Any = iter(["a", "b", None])
    found = copier.translate(stream, window_lines=1)
    assert [next(found), next(found)] == ["a", "b"]
    with pytest.raises(DataError, match=r"texts\[2\] is None"):
        next(found)


@pytest.mark.parametrize(
    ("sources", "targets", "message"),
    [
        (["a", "b"], ["a"], "2 sources and 1 targets; expected as many"),
        ("a", ["a"], "sources is one string, expected several"),
        (["a"], "a", "targets is one string, expected several"),
        (["a"], [None], r"targets\[0\] is None"),
        (["a"], None, "targets is None; expected"),
        ([b"a"], ["a"], r"sources\[0\] is of type bytes"),
    ],
)
def test_what_cannot_be_scored_is_refused(
    random_translator: TextTranslator, sources: Any, targets: Any, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        random_translator.score(sources, targets)


@pytest.mark.parametrize("alpha", [-1, float("nan"), float("inf"), "0.6", None])
def test_an_impossible_length_penalty_is_refused(
    random_translator: TextTranslator, alpha: Any
) -> None:
    with pytest.raises(ConfigError, match="score: 'length_penalty'"):
        random_translator.score(["a"], ["a"], length_penalty=alpha)
