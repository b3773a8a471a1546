"""The languages that a bilingual file declares, compared with those of the model."""

from nmt.data.languages import look_up_language
from nmt.errors import DataError, print_warning
from nmt.translation.documents.document import ReadingOptions

_OF_NO_LANGUAGE = ("und", "mul", "mis", "zxx")
"""codes of ISO 639 that name no language, or several"""


def check_declared_source(
    declared: str | None, attribute: str, name: str, options: ReadingOptions
) -> str:
    """Return the code of the source language of a file, "" if it declares none that is known.

    It must be that of the model, whatever its country.

    Raises:
        DataError: `attribute` of the file `name` declares another language.
    """
    language = options.languages.source
    if is_other_language(declared, language):
        raise DataError(
            f"{name}: its {attribute} is {declared}, but the model translates from {language}; "
            f"take a model that translates from {declared}, or change {attribute} if the texts "
            f"are in {language}"
        )
    found = look_up_language(_without_encoding(declared or ""))
    return found.tag if found.codes and declared not in _OF_NO_LANGUAGE else ""


def must_declare_target(
    declared: str | None, attribute: str, kept: int, name: str, options: ReadingOptions
) -> bool:
    """Return whether a file has to declare the target language: it declares none, or another.

    A warning says that it declared another one. `kept` is the number of its texts whose
    translation stays.

    Raises:
        DataError: translations stay, and `attribute` of the file `name` declares that they are in
            another language.
    """
    language = options.languages.target
    if language == "und":
        return False
    if is_other_language(declared, language):
        if kept:
            remedy = "" if options.overwrite else ", or translate all texts again with `overwrite`"
            raise DataError(
                f"{name}: its {attribute} is {declared}, but the model translates into {language}, "
                f"and translations of the file stay ({kept:,}); take a model that "
                f"translates into {declared}, change {attribute} if the translations are in "
                f"{language}{remedy}"
            )
        print_warning(
            f"{name}: its {attribute} was {declared} and is {options.languages.target_tag} now, "
            "the language of the model"
        )
    return not declared or _base(declared) != _base(language)


def is_other_language(declared: str | None, language: str) -> bool:
    """Return whether a file declares a language other than `language`, whatever the countries.

    What names no language, such as "und", "none" or "*all*", is no other one.
    """
    if not declared or language in _OF_NO_LANGUAGE:
        return False
    is_known = bool(look_up_language(_base(declared)).codes)
    return is_known and _base(declared) != _base(language)


def _base(code: str) -> str:
    """Return a code without script and country, and without what POSIX adds: "de_DE.UTF-8"."""
    base = look_up_language(_without_encoding(code)).base
    return "no" if base == "nb" else base  # Norwegian is Bokmål if nothing else is said


def _without_encoding(code: str) -> str:
    """Return a code without what POSIX adds to it."""
    return code.partition("@")[0].partition(".")[0]
