import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from nmt.data.text.words import has_any
from nmt.errors import ConfigError, DataError
from nmt.recipe.config import DecodingConfig
from nmt.run.model import LoadedModel
from nmt.translation.line import Terminology
from nmt.translation.scoring import Scorer
from nmt.translation.translator import Translator

TEXTS = ["a small dog", "", "ein Hund 😀", "a\u2028b"]


@pytest.fixture
def copier(copying_run: LoadedModel) -> Translator:
    """Its translation of a text is the text."""
    settings = DecodingConfig(beam_size=1, batch_tokens=1 << 14)
    return Translator(copying_run, settings)


@pytest.fixture(scope="module")
def random_translator(random_run: LoadedModel) -> Translator:
    return Translator(random_run)


def test_a_string_gives_a_string_and_a_list_a_list_in_order(copier: Translator) -> None:
    assert [copier.translate(text) for text in TEXTS] == copier.translate(TEXTS) == TEXTS
    assert copier.translate([]) == []


def test_the_line_ends_of_an_open_file_are_no_text(copier: Translator) -> None:
    lines = ["a\n", "b\r\n", "\n", "c"]
    assert copier.translate(lines) == list(copier.translate(iter(lines))) == ["a", "b", "", "c"]


@pytest.mark.parametrize("stream", [iter, tuple, lambda texts: (text for text in texts)])
def test_any_other_iterable_gives_a_generator(copier: Translator, stream: Any) -> None:
    found = copier.translate(stream(TEXTS))
    assert iter(found) is found
    assert list(found) == TEXTS


def test_a_window_says_how_far_an_endless_stream_is_read_ahead(copier: Translator) -> None:
    taken: list[str] = []

    def texts() -> Iterator[str]:
        for number in itertools.count():
            taken.append(str(number))
            yield str(number)

    found = copier.translate(texts(), window_lines=2)
    assert taken == []
    assert list(itertools.islice(found, 3)) == ["0", "1", "2"]
    assert taken == ["0", "1", "2", "3"]


def test_it_translates_and_scores_as_translator_and_scorer_do(
    random_run: LoadedModel, random_translator: Translator
) -> None:
    expected = [translation.text for translation in Translator(random_run).translations(TEXTS)]
    assert random_translator.translate(TEXTS) == expected
    targets = TEXTS[::-1]
    scores = list(Scorer(random_run).score(zip(TEXTS, targets, strict=True)))
    found = random_translator.score(TEXTS, iter(targets))
    assert found == [score.log_probability for score in scores]
    found = random_translator.score(TEXTS, targets, length_penalty=0.6)
    assert found == [score.penalised(DecodingConfig(length_penalty=0.6)) for score in scores]
    assert random_translator.score([], []) == []


def test_documents_are_translated_sentence_by_sentence(copier: Translator) -> None:
    text = "A dog.   A cat."
    assert copier.translate(text, document=True) == "A dog. A cat."
    assert copier.translate([text], document=True) == ["A dog. A cat."]
    assert list(copier.translate(iter([text]), document=True)) == ["A dog. A cat."]
    assert copier.translate(text) == text


@pytest.mark.parametrize(
    ("text", "document"), [("a dog, a cat", False), ("A dog. A cat. Two.", True)]
)
def test_a_program_asks_for_terms_as_well(
    random_translator: Translator, text: str, document: bool
) -> None:
    """A text of several sentences has one beginning, and all of its terms."""
    found = random_translator.translate(
        text,
        document=document,
        glossary={"cat": "Katze", "dog": "Hund", "cow": "Kuh"},
        forbidden=["a"],
        target_prefix="Ω ",
    )
    assert found.startswith("Ω ") and found.count("Ω") == 1
    assert has_any(("Hund",), found) and has_any(("Katze",), found)
    assert not has_any(("a", "Kuh"), found)


def test_one_string_is_no_list_of_forbidden_words(random_translator: Translator) -> None:
    with pytest.raises(DataError, match="forbidden is one string, 'ab'; give a list of words"):
        random_translator.translate("a dog", forbidden="ab")


def test_terms_of_one_line_are_added_to_those_of_all_lines_and_win() -> None:
    both = Terminology.of({"dog": "Hund", "cat": "Katze"}, (), ["nie"], "Ein ") | Terminology.of(
        {"dog": "Köter"}, ["Bello"], ["nie", "nimmer"]
    )
    constraints = both.constraints("a cat, a dog")
    assert constraints.terms == ("Katze", "Köter", "Bello")
    assert (constraints.forbidden, constraints.prefix) == (("nie", "nimmer"), "Ein ")
    assert not Terminology.of({"dog": "Hund"}, prefix="  ").constraints("a cat")


def test_the_digest_differs_for_other_terms_and_not_for_another_order() -> None:
    one = Terminology.of({"a": "b", "c": "d"}, forbidden=["x", "y"])
    assert one.digest == Terminology.of({"c": "d", "a": "b"}, forbidden=["y", "x"]).digest
    assert one.digest != Terminology.of({"a": "b"}, forbidden=["x", "y"]).digest


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
def test_values_that_are_not_text_are_an_error(
    copier: Translator, texts: Any, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        copier.translate(texts)


def test_an_error_in_a_stream_comes_after_the_translations_before_it(
    copier: Translator,
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
def test_values_that_cannot_be_scored_are_an_error(
    random_translator: Translator, sources: Any, targets: Any, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        random_translator.score(sources, targets)


@pytest.mark.parametrize("alpha", [-1, 300.0, float("nan"), float("inf"), "0.6", None])
def test_an_impossible_length_penalty_is_an_error(
    random_translator: Translator, alpha: Any
) -> None:
    with pytest.raises(ConfigError, match="score: 'length_penalty'"):
        random_translator.score(["a"], ["a"], length_penalty=alpha)
