"""Text in capitals: the model gets small letters, and what it writes is put into capitals.

A model spells a word in capitals by its letters, and makes up words; also one that has learnt a
share of its text in capitals (`augmentation.upper`).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from nmt.data.tokens.tokenizer import SubwordModel
from nmt.recipe.config import DataConfig
from nmt.translation.line import EncodedLine, Line, Terminology, Translation
from nmt.translation.spans import Edit, Link, apply_edits, overlap, span_after

MIN_LETTERS = 4
"""letters of a word in a text in capitals: what has shorter ones alone may be an abbreviation"""
_ENGLISH_I = re.compile(r"(?<![\w.])i(?![\w.])")
_TURKIC = ("tr", "az")
_TURKIC_LOWER, _TURKIC_UPPER = str.maketrans("Iİ", "ıi"), str.maketrans("ıi", "Iİ")


@dataclass(frozen=True)
class CapitalsTransform:
    """Before the search, puts lines in capitals into small letters; after it, restores capitals."""

    data: DataConfig
    """the languages of the model"""
    source: SubwordModel
    """makes the ids of lines"""
    terminology: Terminology
    """constraints on all lines; their terms stay as they are written"""

    def mark(self, lines: Sequence[Line]) -> list[Line]:
        """Return the lines, marked if they are in capitals, before they are split."""
        return [
            line if self._in_small_letters(line) is None else replace(line, capitals=True)
            for line in lines
        ]

    def lower(self, lines: Sequence[Line]) -> list[Line]:
        """Return the lines, those that are marked or in capitals themselves in small letters."""
        return [self._in_small_letters(line) or line for line in lines]

    def restore(
        self, lines: Sequence[EncodedLine], translations: list[list[Translation]]
    ) -> list[list[Translation]]:
        """Return the translations, those of lines in capitals in capitals, except their terms."""
        return [
            [self._upper(encoded, translation) for translation in row]
            if encoded.line.capitals
            else row
            for encoded, row in zip(lines, translations, strict=True)
        ]

    def _in_small_letters(self, line: Line) -> Line | None:
        """Return a line in capitals in small letters.

        None: the line is to stay, as it is not in capitals, all its words are short, it has more
        tokens in small letters, or the model has learnt capitals. Only a marked line is lowered
        always.
        """
        if line.capitals:
            return self._lower(line)
        text = line.text[line.tag_length :]
        if not text.isupper():
            return None
        if all(sum(map(str.isupper, word)) < MIN_LETTERS for word in text.split()):
            return None
        lower = self._lower(line)
        before, after = self.source.encode([line.text, lower.text])
        return lower if len(after) <= len(before) else None

    def _lower(self, line: Line) -> Line:
        """Return a line in small letters with a capital at its beginning, of the same length.

        A glossary's term stays in capitals if it is not found in small letters.
        """
        language = self.data.source_language
        tags, text = line.text[: line.tag_length], line.text[line.tag_length :]
        lower = tags + self._known(_sentence_case(text, language), _small_letters(text, language))
        kept = [span for span, _ in line.parts]
        for terminology in (self.terminology, line.terminology):
            if terminology:
                found = set(terminology.glossary.spans(lower))
                kept += [s for s in terminology.glossary.spans(line.text) if s not in found]
        for start, end in kept:
            lower = lower[:start] + line.text[start:end] + lower[end:]
        return replace(line, text=lower, ids=None, capitals=True)

    def _known(self, text: str, lower: str) -> str:
        """Return a text, or without its capital if the vocabulary has small letters alone."""
        is_known = not self.source.unknown_characters(text) or len(text) != len(lower)
        return text if is_known or self.source.unknown_characters(lower) else lower

    def _upper(self, encoded: EncodedLine, translation: Translation) -> Translation:
        """Return a translation in capitals, except for required terms and the prefix."""
        language = self.data.target_language
        text = translation.text
        fixed = encoded.constraints.text.places(text) if encoded.constraints else []
        edits = []
        for i, letter in enumerate(text):
            capital = upper(letter, language)
            if capital != letter and not any(overlap((i, i + 1), span) for span in fixed):
                edits.append(Edit((i, i + 1), capital))
        new = apply_edits(text, edits)
        alignment = translation.alignment
        if alignment:
            growing = [edit for edit in edits if edit.growth]  # such as ß, which becomes SS
            links = tuple(Link(s, span_after(t, growing)) for s, t in alignment.links)
            alignment = replace(alignment, links=links)
        return replace(translation, text=new, alignment=alignment)


def upper(text: str, language: str) -> str:
    """Return a text in capitals, as its language writes them: "i" is "İ" in Turkish."""
    return (text.translate(_TURKIC_UPPER) if language[:2] in _TURKIC else text).upper()


def _small_letters(text: str, language: str) -> str:
    """Return a text in small letters of the same length."""
    turkic = text.translate(_TURKIC_LOWER) if language[:2] in _TURKIC else text
    lower = turkic.lower()  # with the final sigma of Greek
    same_length = len(lower) == len(text)
    return lower if same_length else "".join(letter.lower()[:1] for letter in turkic)


def _sentence_case(text: str, language: str) -> str:
    """Return a text in small letters of the same length, with a capital at its beginning."""
    lower = _small_letters(text, language)
    if language[:2] == "en":
        lower = _ENGLISH_I.sub("I", lower)
    first = next((i for i, letter in enumerate(lower) if letter.isalpha()), None)
    if first is None:
        return lower
    size = 2 if language[:2] == "nl" and lower[first : first + 2] == "ij" else 1
    return lower[:first] + text[first : first + size] + lower[first + size :]
