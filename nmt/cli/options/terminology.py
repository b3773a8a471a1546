"""Options and keys of JSON lines that say what words a translation must and must not have."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeGuard

import typer

from nmt.errors import DataError

if TYPE_CHECKING:
    from nmt.translation.line import Terminology

KEYS = ("terms", "forbidden", "target_prefix")


@dataclass(frozen=True)
class TerminologyOptions:
    """What is asked of every translation."""

    glossary: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Lines of source term, TAB, translation: where the one occurs as whole words, the "
            "translation has the other. In small letters a term is found in any casing.",
        ),
    ] = None
    forbid: Annotated[
        list[str] | None,
        typer.Option(
            "--forbid",
            metavar="WORD",
            help="A word or phrase that no translation has, in any casing if it is in small "
            "letters; may be given several times.",
        ),
    ] = None
    forbid_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Such words and phrases, one a line.")
    ] = None

    def terminology(self) -> "Terminology":
        """Read the files and return all constraints.

        Raises:
            DataError: A file cannot be read, or a term is blank or has several lines.
        """
        from nmt.data.text.glossary import read_glossary, read_words
        from nmt.translation.line import Terminology

        terms = read_glossary(self.glossary).terms if self.glossary else {}
        words = [*(self.forbid or ()), *(read_words(self.forbid_file) if self.forbid_file else ())]
        return Terminology.of(terms, forbidden=words)


def line_terminology(record: Mapping[str, object], where: str) -> "Terminology | None":
    """Return what a JSON line asks of its own translation; None if it asks nothing.

    Raises:
        DataError: A key has a value of another form; the message names `where`, the file and line.
    """
    if not any(key in record for key in KEYS):
        return None
    from nmt.translation.line import Terminology

    terms = record.get("terms", [])
    glossary, words = (terms, []) if isinstance(terms, dict) else ({}, terms)
    if not _are_texts(glossary.values()) or not _is_list_of_texts(words):
        raise DataError(
            f'{where}: "terms" is {_shown(terms)}; expected source terms with their translations, '
            'as {"dog": "Hund"}, or a list of words of the translation, as ["Hund"]'
        )
    forbidden = record.get("forbidden", [])
    if not _is_list_of_texts(forbidden):
        raise DataError(
            f'{where}: "forbidden" is {_shown(forbidden)}; expected a list of words, as ["Hund"]'
        )
    prefix = record.get("target_prefix", "")
    if not isinstance(prefix, str):
        raise DataError(
            f'{where}: "target_prefix" is {_shown(prefix)}; expected a string, as "Ein Hund "'
        )
    try:
        return Terminology.of(glossary, words, forbidden, prefix)
    except DataError as error:
        raise DataError(f"{where}: {error}") from error


def _is_list_of_texts(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and _are_texts(value)


def _are_texts(values: Iterable[object]) -> bool:
    return all(isinstance(value, str) for value in values)


def _shown(value: object) -> str:
    return json.dumps(value)[:60]
