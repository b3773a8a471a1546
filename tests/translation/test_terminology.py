"""Terms of a glossary in models that have learnt to inflect them."""

import re
from dataclasses import replace
from typing import Any

import pytest
import torch

from nmt.data.tokens.annotation import TERM_MARKS
from nmt.data.tokens.vocabulary import with_symbols
from nmt.errors import ConfigError, DataError, MissingExtraError
from nmt.recipe.config import DataConfig, TermsConfig
from nmt.run.model import LoadedModel, build_model
from nmt.translation import terminology as module
from nmt.translation.line import GlossaryMode, Line, Terminology, TermUse, Translation
from nmt.translation.request import TranslationRequest
from nmt.translation.spans import linked_words
from nmt.translation.translator import Translator
from tests.stand_in_models import Copier

GLOSSARY = {"book": "Buch", "red dog": "roter Hund"}
ALL = TranslationRequest(alignments=True)


def with_terms(run: LoadedModel, model: Any) -> Translator:
    tokenizer = with_symbols(run.tokenizer, TERM_MARKS)
    config = run.config.model_copy(update={"data": DataConfig(terms=TermsConfig())})
    return Translator(LoadedModel(config, tokenizer, model(config, tokenizer), run.path))


@pytest.fixture
def copier(copying_run: LoadedModel) -> Translator:
    """Its translation of a text is the text, with what a term is to be called behind the term."""
    return with_terms(copying_run, lambda _, tokenizer: Copier(tokenizer.target.size))


@pytest.fixture
def untrained(random_run: LoadedModel) -> Translator:
    """It writes random letters, and so no term that it is asked for."""
    torch.manual_seed(1)
    return with_terms(random_run, lambda *sizes: build_model(*sizes).eval())


def translate(
    translator: Translator,
    text: str,
    mode: GlossaryMode | None = None,
    request: TranslationRequest | None = None,
    **constraints: Any,
) -> Translation:
    terms = Terminology.of(GLOSSARY, glossary_mode=mode, **constraints)
    [[best]] = translator.pipeline(request).translate([Line(1, text, terms)])
    return best


@pytest.mark.parametrize("mode", ["inflect", "auto", None])
def test_a_model_that_has_learnt_terms_is_asked_for_them(
    copier: Translator, mode: GlossaryMode | None
) -> None:
    found = translate(copier, "two books, a red dog", mode)
    assert found.text == "two books Buch, a red dog rot Hund"
    assert found.terms == (
        TermUse("books", "Buch", "inflected"),
        TermUse("red dog", "roter Hund", "inflected"),
    )


BOOKS = {"Buch", "Buches", "Buchs", "Bücher", "Büchern"}


def test_another_model_gets_terms_in_a_form_that_it_finds_probable(
    copying_run: LoadedModel,
) -> None:
    plain = Translator(copying_run)
    modes: list[GlossaryMode | None] = ["auto", None]
    for mode in modes:
        found = translate(plain, "two books", mode)
        assert BOOKS & {*found.text.split()} and found.terms == ()
    with pytest.raises(ConfigError, match="`inflect` needs a model that has learnt terms"):
        translate(plain, "two books", "inflect")


@pytest.mark.parametrize(
    ("text", "exact", "auto"),
    [  # whether a copy of the text is a right translation of it
        ("one book", False, False),
        ("one book Buch", True, True),
        ("one book Bücher", False, True),
        ("one book Buchung", False, False),
        ("two books", True, False),  # "Buch" would be wrong: the glossary says nothing of "books"
        ("two books Buch", True, True),
        ("two books Bücher", True, True),
        ("two books, a book Buch", True, False),
        ("two books, a book Buch Büchern", True, True),
        ("two red dogs", True, False),
        ("two red dogs rote Hunde", True, True),
        ("a red dog rote Hunde", False, True),
        ("a red dog roter Hund", True, True),
    ],
)
def test_the_glossary_mode_says_which_forms_are_terms_and_meet_them(
    copying_run: LoadedModel, text: str, exact: bool, auto: bool
) -> None:
    """On both sides: as the glossary has them, or all."""
    plain = Translator(copying_run)
    modes: dict[GlossaryMode, bool] = {"exact": exact, "auto": auto}
    for mode, is_right in modes.items():
        assert (translate(plain, text, mode).text == text) == is_right, mode


def test_in_exact_mode_no_model_is_asked(untrained: Translator) -> None:
    found = translate(untrained, "a red dog", "exact")
    assert "roter Hund" in found.text and found.terms == ()


def test_terms_that_the_model_does_not_use_are_forced(untrained: Translator) -> None:
    found = translate(untrained, "ab books", "auto")
    assert BOOKS & set(re.findall(r"\w+", found.text))
    assert found.terms == (TermUse("books", "Buch", "forced"),)
    found = translate(untrained, "ab books", "inflect")
    assert found.terms == (TermUse("books", "Buch", "missing"),)


def test_other_constraints_hold_beside_terms(untrained: Translator) -> None:
    for mode in ("inflect", "auto"):
        found = translate(untrained, "a book", mode, prefix="Ein ", terms=["Katze"])
        assert found.text.startswith("Ein ") and "Katze" in found.text
    with pytest.raises(DataError, match="'Buch' is asked for, and 'Buch' is forbidden"):
        translate(untrained, "a book", "auto", forbidden=["Buch"])


def test_annotations_are_linked_as_their_term(copier: Translator) -> None:
    found = translate(copier, "two books here", request=ALL)
    assert found.text == "two books Buch here"
    assert found.alignment is not None
    linked = linked_words(found.alignment.links, "two books here", found.text)
    assert {i for i, _ in linked} <= {0, 1, 2}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("book", "Buch"),  # all of the line, as the glossary has it
        ("<term> a <lemma> b </term>", "<term> a <lemma> b </term>"),  # letters, and no marks
        ("2024", "2024"),
        ("a {book} book", "a {book} book Buch"),  # a protected part is no term
        ("One book. Two red dogs.", "One book Buch. Two red dogs rot Hund."),
    ],
)
def test_lines_with_terms(copier: Translator, text: str, found: str) -> None:
    request = TranslationRequest(document=True)
    line = replace(Line(1, text, Terminology.of(GLOSSARY)), protected=((2, 8),) * ("{" in text))
    [[best]] = copier.pipeline(request).translate([line])
    assert best.text == found


def test_without_the_library_terms_are_found_as_they_are_written(
    copier: Translator, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(language: str) -> None:
        raise MissingExtraError("lemmas", "terms")

    module.lemmas_of.cache_clear()
    monkeypatch.setattr(module, "lemmatizer", missing)
    assert translate(copier, "two books").terms == ()
    assert "Buch" in translate(copier, "a book").text
    assert capsys.readouterr().err.count("nmt[terms]") == 2  # a sentence for each language
    module.lemmas_of.cache_clear()
