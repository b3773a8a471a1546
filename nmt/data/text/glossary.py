"""A glossary: the translations that certain terms must have wherever they occur.

Terms are found as whole words (`nmt.data.text.words`); the longest one wins and terms do not
overlap. A lower-case term matches any casing, a term with a capital only its own spelling.
"""

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from nmt.data.text.lines import check_text, read_lines
from nmt.data.text.words import has_capital, words
from nmt.errors import DataError


@dataclass(frozen=True)
class GlossaryEntry:
    """A source term, split into words, and its translation."""

    words: tuple[str, ...]
    cased: bool
    target: str

    def is_at(self, found: tuple[str, ...]) -> bool:
        """Return whether these words of a text are the source term."""
        return self.words == (found if self.cased else _folded(found))


@dataclass(frozen=True)
class Occurrence:
    """A source term in a text."""

    target: str
    """the translation that the term must have"""
    place: range
    """its characters in the text; the text is in NFC and white space is not counted"""


class Glossary:
    """Source terms with their translations; searching takes time linear in a text's length."""

    def __init__(self, terms: Mapping[str, str] | None = None) -> None:
        """Take source terms and their translations.

        Raises:
            DataError: a term or a translation is blank or holds a line end.
        """
        self.terms = dict(terms or {})
        self._entries: dict[str, list[GlossaryEntry]] = {}
        for source, target in self.terms.items():
            for name, text in (("source term", source), ("translation", target)):
                check_term(text, f"the {name} of {source!r} -> {target!r}")
            entry = _entry(source, target)
            self._entries.setdefault(entry.words[0].casefold(), []).append(entry)
        for first, entries in self._entries.items():
            self._entries[first] = _longest_first(entries)

    def __or__(self, other: Self) -> "Glossary":
        """Return the terms of both; a term in both has the other's translation."""
        if not other.terms:
            return self
        both = Glossary()
        both.terms = self.terms | other.terms
        both._entries = dict(self._entries)
        for first, added in other._entries.items():
            replaced = {(entry.words, entry.cased) for entry in added}
            kept = [e for e in both._entries.get(first, []) if (e.words, e.cased) not in replaced]
            both._entries[first] = _longest_first([*added, *kept])
        return both

    def occurrences(self, text: str) -> list[Occurrence]:
        """Return the terms that occur in a text, in its order."""
        if not self._entries:
            return []
        found = tuple(words(_composed(text)))
        occurrences = []
        i = 0
        while i < len(found):
            entries = self._entries.get(found[i].casefold(), ())
            here = (e for e in entries if e.is_at(found[i : i + len(e.words)]))
            if entry := next(here, None):
                before = sum(map(len, found[:i]))
                until = before + sum(map(len, found[i : i + len(entry.words)]))
                occurrences.append(Occurrence(entry.target, range(before, until)))
            i += len(entry.words) if entry else 1
        return occurrences


def read_glossary(path: Path) -> Glossary:
    """Read a file of `source term TAB translation`, one on each line; blank lines are ignored.

    There is no syntax for comments: a term may begin with any character.

    Raises:
        DataError: a line has not two columns, or gives an earlier term another translation; names
            file and line.
    """
    terms: dict[str, str] = {}
    numbers: dict[str, int] = {}
    for number, line in _lines(path):
        columns = [column.strip() for column in line.split("\t")]
        where = f"{path}:{number}"
        if len(columns) != 2:
            raise DataError(
                f"{where}: {len(columns)} columns; expected two: source term, TAB, translation"
            )
        source, target = columns
        for text in columns:
            check_term(text, where)
        if terms.setdefault(source, target) != target:
            raise DataError(
                f"{where}: {source!r} becomes {target!r} here and {terms[source]!r} in line "
                f"{numbers[source]}; keep one of them"
            )
        numbers.setdefault(source, number)
    return Glossary(terms)


def read_words(path: Path) -> list[str]:
    """Read a file with a word or phrase on each line; blank lines are ignored.

    Raises:
        DataError: the file cannot be read.
    """
    return [line.strip() for _, line in _lines(path)]


def check_term(text: str, where: str) -> None:
    """Check that a text is a word or a phrase on one line.

    Raises:
        DataError: naming `where`: it is blank, or holds a line end or half a surrogate pair.
    """
    problem = None
    if not words(text):
        problem = "is blank; write a word or a phrase"
    elif len(text.splitlines()) > 1 or text[-1] in "\n\r":
        problem = "holds a line end; write it on one line"
    if problem:
        raise DataError(f"{where}: the term {text!r} {problem}")
    check_text(text, f"{where}: the term {text!r}")


def _lines(path: Path) -> Iterable[tuple[int, str]]:
    """Yield the lines of a file that are not blank, with their numbers from 1."""
    if not path.exists():
        raise DataError(f"{path}: no such file; name a text file of terms")
    for number, line in enumerate(read_lines(path), start=1):
        if line.strip():
            yield number, line


def _longest_first(entries: list[GlossaryEntry]) -> list[GlossaryEntry]:
    """Sort by length; of equally long entries those with capitals come first."""
    return sorted(entries, key=lambda entry: (len(entry.words), entry.cased), reverse=True)


def _entry(source: str, target: str) -> GlossaryEntry:
    cased = has_capital(source)
    found = tuple(words(_composed(source)))
    return GlossaryEntry(found if cased else _folded(found), cased, target.strip())


def _folded(found: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word.casefold() for word in found)


def _composed(text: str) -> str:
    """Return the text in NFC, in which a letter with its accent is one character."""
    return unicodedata.normalize("NFC", text)
