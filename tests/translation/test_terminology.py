import pytest

from nmt.data.text.words import any_of
from nmt.errors import DataError
from nmt.run_directory import LoadedModel
from nmt.translation.terminology import Terminology
from nmt.translation.text_translator import TextTranslator
from nmt.translation.translator import Translator


def test_what_one_line_asks_comes_on_top_and_wins() -> None:
    both = Terminology.of({"dog": "Hund", "cat": "Katze"}, (), ["nie"], "Ein ") | Terminology.of(
        {"dog": "Köter"}, ["Bello"], ["nie", "nimmer"]
    )
    constraints = both.constraints("a cat, a dog")
    assert constraints.terms == ("Katze", "Köter", "Bello")
    assert (constraints.forbidden, constraints.prefix) == (("nie", "nimmer"), "Ein ")


def test_nothing_asked_is_no_constraint() -> None:
    assert not Terminology.of({"dog": "Hund"}, prefix="  ").constraints("a cat")


def test_the_digest_tells_demands_apart_and_not_their_order() -> None:
    one = Terminology.of({"a": "b", "c": "d"}, forbidden=["x", "y"])
    assert one.digest == Terminology.of({"c": "d", "a": "b"}, forbidden=["y", "x"]).digest
    assert one.digest != Terminology.of({"a": "b"}, forbidden=["x", "y"]).digest


def test_a_program_asks_for_terms_as_well(random_run: LoadedModel) -> None:
    translator = TextTranslator(Translator(random_run))
    asked = {"glossary": {"dog": "Hund"}, "forbidden": ["a"], "target_prefix": "Du "}
    text = translator.translate("a dog", **asked)  # type: ignore[call-overload]
    assert text.startswith("Du ") and any_of(("Hund",)).search(text)
    assert not any_of(("a",)).search(text)
    assert translator.translate(["a cat", ""], glossary={"dog": "Hund"}) == translator.translate(
        ["a cat", ""]
    )
    assert "Hund" in next(translator.translate(iter(["a dog"]), glossary={"dog": "Hund"}))


def test_a_text_of_several_sentences_begins_once(random_run: LoadedModel) -> None:
    translator = TextTranslator(Translator(random_run))
    text = "A dog. A cat. Two."
    asked = {"glossary": {"cat": "Katze", "dog": "Hund"}, "forbidden": ["a"], "target_prefix": "Ω "}
    found = translator.translate(text, document=True, **asked)  # type: ignore[call-overload]
    assert found.startswith("Ω ") and found.count("Ω") == 1
    assert any_of(("Hund",)).search(found) and any_of(("Katze",)).search(found)
    assert not any_of(("a",)).search(found)


def test_one_string_is_no_list_of_forbidden_words(random_run: LoadedModel) -> None:
    translator = TextTranslator(Translator(random_run))
    with pytest.raises(DataError, match="forbidden is one string, 'ab'; give a list of words"):
        translator.translate("a dog", forbidden="ab")
