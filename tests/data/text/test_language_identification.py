"""py3langid names languages, among all or among some."""

import builtins
from typing import Any

import pytest

from nmt.data.text.language_identification import (
    check_is_installed,
    is_improbable,
    known_languages,
    rank_languages,
)
from nmt.errors import MissingExtraError


def test_only_a_much_likelier_language_makes_another_improbable() -> None:
    text = "The dogs are sleeping in the old house of my friend."
    assert is_improbable("de", text, 50)
    assert not is_improbable("en", text, 50)
    assert not is_improbable("de", "\udcff", 50)


def test_probabilities_among_some_languages_add_up_to_one() -> None:
    ranked = rank_languages("Los perros duermen.", ["de", "es"])
    assert [code for code, _ in ranked] == ["es", "de"]
    assert sum(probability for _, probability in ranked) == pytest.approx(1)
    long_text = "The dogs are sleeping in the old house of my friend. " * 100
    assert sum(p for _, p in rank_languages(long_text, ["zh", "ja"])) == pytest.approx(1)
    assert rank_languages("a", ["xx"]) == []


def test_the_codes_of_two_letters_are_known() -> None:
    assert {"en", "de", "zh"} <= known_languages()


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def fail(name: str, *arguments: Any) -> Any:
        if name == "py3langid":
            raise ImportError(name)
        return real(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", fail)
    with pytest.raises(MissingExtraError, match="a test needs the extra 'serve'"):
        check_is_installed("a test", "serve")
