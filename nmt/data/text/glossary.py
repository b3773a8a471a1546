"""A glossary: the translations that certain terms must have wherever they occur.

Terms are found as whole words (`nmt.data.text.words`), whose characters are compared in NFKC; the
longest one wins and terms do not overlap. A lower-case term matches any casing, a term with a
capital only its own spelling. With the lemmas of the language, a term is found in its other forms,
too: "book" in "books".
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from nmt.data.text.lemmas import Lemmatizer
from nmt.data.text.lines import check_text, read_lines
from nmt.data.text.words import fold_case, has_capital, normalise, words
from nmt.errors import DataError

_QUOTED = re.compile(r'"([^"]|"")+"')


@dataclass(frozen=True)
class Occurrence:
    """A source term that was found in a text."""

    target: str
    """the translation that the term must have"""
    characters: range
    """indices of its characters in the text in NFC without white space, from 0"""
    is_inflected: bool = False
    """whether the text has another form of the term"""


class Glossary:
    """Source terms with their translations; a search takes time linear in the text's length."""

    def __init__(self, terms: Mapping[str, str] | None = None) -> None:
        """Take source terms and their translations.

        Raises:
            DataError: a term or a translation is blank or holds a line end.
        """
        self.terms = dict(terms or {})
        self._translations: dict[tuple[bool, tuple[str, ...]], str] = {}
        """keys: whether the term has a capital, and its normalised words, folded if it has none"""
        self._longest: dict[str, int] = {}
        """the number of words of the longest term that begins with each case-folded word"""
        self._inflected: dict[str, _InflectedTerms] = {}
        """the terms by their lemmas, for each language that was asked for"""
        for source, target in self.terms.items():
            _check_entry(source, target)
            is_cased, term = has_capital(source), _words(source)
            spelling = tuple(map(normalise if is_cased else fold_case, term))
            # of terms that differ only in spaces, the first counts
            self._translations.setdefault((is_cased, spelling), target.strip())
            first_word = fold_case(term[0])
            self._longest[first_word] = max(len(term), self._longest.get(first_word, 0))

    def __or__(self, other: Self) -> "Glossary":
        """Return the terms of both glossaries; a term in both gets its translation from `other`."""
        if not other.terms:
            return self
        both = Glossary()
        both.terms = self.terms | other.terms
        both._translations = self._translations | other._translations
        both._longest = dict(self._longest)
        for first_word, length in other._longest.items():
            both._longest[first_word] = max(length, both._longest.get(first_word, 0))
        return both

    def occurrences(self, text: str, lemmas: Lemmatizer | None = None) -> list[Occurrence]:
        """Return where terms occur in a text, left to right: at each place the longest term.

        With the `lemmas` of its language, terms are found in other forms, too; of equally long
        terms, one that the text has as it is written counts.
        """
        if not self.terms:
            return []
        text_words, inflected = _words(text), None
        if lemmas and lemmas.is_known:
            if lemmas.language not in self._inflected:
                self._inflected[lemmas.language] = _InflectedTerms(self.terms, lemmas)
            inflected = self._inflected[lemmas.language]
        occurrences = []
        word = character = 0  # indices in `text_words`, and in the text without white space
        while word < len(text_words):
            length, target = self._longest_term(text_words, word)
            is_inflected = False
            other = inflected and inflected.longest_term(text_words, word)
            if other and (target is None or other[0] > length):
                (length, target), is_inflected = other, True
            end = character + sum(map(len, text_words[word : word + length]))
            if target is not None:
                occurrences.append(Occurrence(target, range(character, end), is_inflected))
            word, character = word + length, end
        return occurrences

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return where terms occur in a text: their characters [start, end).

        If NFC changes the text, so that its characters are others, the whole text is one span.
        """
        found = self.occurrences(text)
        if not found or unicodedata.normalize("NFC", text) != text:
            return [(0, len(text))] if found else []
        places = [i for i, character in enumerate(text) if not character.isspace()]
        return [(places[o.characters.start], places[o.characters.stop - 1] + 1) for o in found]

    def translate_whole(self, text: str) -> str | None:
        """Return the translation of a text that is one term, perhaps with punctuation around it.

        The punctuation stays. None: the text has other words.
        """
        text = unicodedata.normalize("NFC", text)
        found = self.occurrences(text)
        if len(found) != 1:
            return None
        target, [(start, end)] = found[0].target, self.spans(text)
        before, after = text[:start], text[end:]
        if any(map(str.isalnum, before + after)):
            return None
        if after and target.endswith(after[0]):  # such as the full stop of an abbreviation
            after = after[1:]
        return before + target + after

    def _longest_term(self, text_words: tuple[str, ...], start: int) -> tuple[int, str | None]:
        """Return the number of words of the term at `start`, and its translation; else (1, None).

        Of several terms there, the longest counts; of equally long ones, one with a capital.
        """
        for length in range(self._longest.get(fold_case(text_words[start]), 0), 0, -1):
            term = text_words[start : start + length]
            for key in ((True, tuple(map(normalise, term))), (False, tuple(map(fold_case, term)))):
                if key in self._translations:
                    return len(term), self._translations[key]
        return 1, None


class _InflectedTerms:
    """Source terms by their lemmas.

    A term of one word is found where a word has it as its lemma, so that "glasses" is not found in
    "glass"; the words of a longer one may be in any form, as those of "rotes Blut".
    """

    def __init__(self, terms: Mapping[str, str], lemmas: Lemmatizer) -> None:
        self._lemmas = lemmas
        self._terms: dict[tuple[str, ...], tuple[tuple[str, ...], str]] = {}
        """the words of each term and its translation, by the lemmas of these words"""
        self._longest: dict[str, int] = {}
        """the number of words of the longest term that begins with each lemma"""
        for source, target in terms.items():
            term = _words(source)
            key = self._key(term) if len(term) > 1 else (fold_case(term[0]),)
            self._terms.setdefault(key, (term, target.strip()))
            self._longest[key[0]] = max(len(term), self._longest.get(key[0], 0))

    def longest_term(self, text_words: tuple[str, ...], start: int) -> tuple[int, str] | None:
        """Return the number of words of the longest term at `start`, and its translation, or None.

        A term with a capital is found only where its words have capitals, too.
        """
        lemma = fold_case(self._lemmas.lemma(text_words[start]))
        for length in range(self._longest.get(lemma, 0), 0, -1):
            found = text_words[start : start + length]
            term, target = self._terms.get(self._key(found), ((), ""))
            is_cased = has_capital("".join(term))
            if term and not (is_cased and [*map(has_capital, term)] != [*map(has_capital, found)]):
                return len(found), target
        return None

    def _key(self, term: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(fold_case(self._lemmas.lemma(word)) for word in term)


def read_glossary(path: Path) -> Glossary:
    """Read a file whose lines are `source term TAB translation`; blank lines are ignored.

    There is no syntax for comments: a term may begin with any character. A column in double quotes,
    in which a double quote is written twice, is read without them, as spreadsheets write it.

    Raises:
        DataError: the file cannot be read, a line does not have two columns, or a term
            has two translations; names file and line.
    """
    terms: dict[str, str] = {}
    line_numbers: dict[str, int] = {}
    for number, line in _lines(path):
        columns = [_unquote(column.strip()) for column in line.split("\t")]
        where = f"{path}:{number}"
        if len(columns) != 2:
            raise DataError(
                f"{where}: {len(columns)} columns; expected two: source term, TAB, translation"
            )
        source, target = columns
        _check_entry(source, target, f"{where}: ")
        if source in terms and terms[source] != target:
            raise DataError(
                f"{where}: {source!r} becomes {target!r} here and {terms[source]!r} in line "
                f"{line_numbers[source]}; keep one of them"
            )
        terms[source] = target
        line_numbers.setdefault(source, number)  # the first line that has the term
    return Glossary(terms)


def read_words(path: Path) -> list[str]:
    """Return the words or phrases of a file, one a line; blank lines are ignored.

    Raises:
        DataError: the file cannot be read, or is not UTF-8.
    """
    return [line.strip() for _, line in _lines(path)]


def _unquote(column: str) -> str:
    """Return a column without the double quotes that a spreadsheet writes around some."""
    if _QUOTED.fullmatch(column):
        return column[1:-1].replace('""', '"').strip()
    return column


def _check_entry(source: str, target: str, where: str = "") -> None:
    """Check a source term and its translation; `where` begins the message.

    Raises:
        DataError: source or translation is no term; see `check_term`.
    """
    for name, text in (("source term", source), ("translation", target)):
        check_term(text, f"{where}the {name} of {source!r} -> {target!r}")


def check_term(text: str, where: str) -> None:
    """Check that a term is a word or a phrase on one line; `where` begins the error message.

    Raises:
        DataError: the term is blank, or holds a line end or half a surrogate pair.
    """
    if text.isprintable() and text.strip():  # then it has neither line ends nor surrogates
        return
    problem = None
    if not words(text):
        problem = "is blank; write a word or a phrase"
    elif len(text.splitlines()) > 1 or text[-1] in "\n\r":
        problem = "holds a line end; write it on one line"
    if problem:
        raise DataError(f"{where}: the term {text!r} {problem}")
    check_text(text, f"{where}: the term {text!r}")  # raises if it has half a surrogate pair


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file that are not blank, with their numbers from 1."""
    if not path.exists():
        raise DataError(f"{path}: no such file; name a text file of terms")
    for number, line in enumerate(read_lines(path), start=1):
        if line.strip():
            yield number, line


def _words(text: str) -> tuple[str, ...]:
    """Return the words of a text in NFC, in which a letter with its accent is one character."""
    return tuple(words(unicodedata.normalize("NFC", text)))
