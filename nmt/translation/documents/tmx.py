"""TMX, the files of translation memories: units have a variant of their text in each language."""

import functools
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from nmt import __version__
from nmt.data.languages import look_up_language
from nmt.errors import DataError
from nmt.translation.documents.declared_languages import check_declared_source
from nmt.translation.documents.document import (
    Document,
    DocumentSegment,
    ReadingOptions,
    has_text,
    replace_source,
)
from nmt.translation.documents.marked_text import MARKUP, read_pieces
from nmt.translation.documents.tokens import Token
from nmt.translation.documents.xml_inline import InlineNames, inline_pieces
from nmt.translation.documents.xml_tokens import XmlSource, set_attribute

INLINE = InlineNames(
    around=frozenset({"hi"}), pairs={"bpt": "ept"}, preserve=True, has_written_tags=True
)
"""it, ph and ut are marks, with the texts of programs inside them (sub)"""


def read_tmx(content: bytes, name: str, options: ReadingOptions) -> Document:
    """Read a translation memory: its units in the source language without a translation, or all.

    A translation becomes a variant of its own, with this program as the tool that made it and the
    time, or SOURCE_DATE_EPOCH, as its date.

    Raises:
        DataError: it is no well-formed XML, the target language is unknown, its header declares
            another source language, or no unit is in the source language.
    """
    if not options.languages.target_tag:
        raise DataError(f"{name}: name the language of the translation, which a TMX file needs")
    source = XmlSource(content, name)
    reader = _MemoryReader(source, options)
    language = check_declared_source(reader.declared, "srclang", name, options)
    segments = list(reader.read())
    if reader.count == 0 and reader.other_languages:
        found = ", ".join(sorted(reader.other_languages))
        raise DataError(
            f"{name}: no unit has a text in {options.languages.source}, which the model reads; the "
            f"file has {found}"
        )
    source.insert(reader.added)
    return Document(segments, source.encode, True, language)


class _MemoryReader:
    """Finds the units to translate, and gives each a variant in the target language."""

    def __init__(self, source: XmlSource, options: ReadingOptions) -> None:
        self._source, self._overwrite = source, options.overwrite
        self._target = options.languages.target_tag
        headers = (token for token in source.tokens if token.name == "header")
        self.declared = next(headers, Token("empty", "")).attribute("srclang") or ""
        """the source language of the header, which may be *all*"""
        if options.languages.source == "und":
            self._language = _base(self.declared)
        else:
            self._language = _base(options.languages.source)
        self.count = 0
        """how many units have a text in the source language"""
        self.other_languages: set[str] = set()
        """those of the units without one"""
        self.added: dict[int, list[Token]] = {}
        """tokens to put before a token of the file, by its index"""

    def read(self) -> Iterator[DocumentSegment]:
        """Yield the texts to translate."""
        for i, token in enumerate(self._source.tokens):
            if token.kind == "start" and token.name == "tu":
                yield from self._unit(i)

    def _unit(self, unit: int) -> Iterator[DocumentSegment]:
        """Yield the text of a unit, unless there is nothing to translate."""
        tokens = self._source.tokens
        variants = self._variants(unit)
        sources = [i for i, language in variants.items() if _base(language) == self._language]
        if not sources:
            self.other_languages |= {*variants.values()}
            return
        self.count += 1
        declared = tokens[unit].attribute("srclang") or self.declared
        # of several, such as those of two countries, the one that the file names
        variant = next((i for i in sources if variants[i] == declared), sources[0])
        segment = self._segment(variant)
        if segment is None or tokens[segment].kind == "empty":
            return
        end = self._source.end(segment) - 1
        copy = [replace(token) for token in tokens[segment + 1 : end]]
        if not copy or not self._add(variant, variants, copy):
            return
        text = read_pieces(inline_pieces(self._source, segment + 1, end, INLINE), MARKUP)
        if has_text(text):
            yield DocumentSegment(text, partial(replace_source, copy))

    def _variants(self, unit: int) -> dict[int, str]:
        """Return the variants of a unit, each with its language as the file writes it."""
        variants = {}
        i = unit + 1
        while i < self._source.partners[unit]:
            token = self._source.tokens[i]
            if token.name == "tuv" and token.kind == "start":
                # lang in versions before 1.3
                variants[i] = token.attribute("xml:lang") or token.attribute("lang") or ""
            i = self._source.end(i)
        return variants

    def _segment(self, variant: int) -> int | None:
        """Return where the text of a variant begins."""
        inside = range(variant + 1, self._source.partners[variant])
        return next((i for i in inside if self._source.tokens[i].name == "seg"), None)

    def _add(self, variant: int, variants: dict[int, str], text: list[Token]) -> bool:
        """Give a unit a text in the target language, and return whether it had none that stays."""
        tokens = self._source.tokens
        target = _base(self._target)
        old = next((i for i, language in variants.items() if _base(language) == target), None)
        if old is None:
            last = self._source.partners[max(variants)]
            self.added[last + 1] = self._new_variant(variant, text)
            return True
        segment = self._segment(old)
        if segment is None:
            return False
        end = self._source.end(segment)
        inside = tokens[segment + 1 : end - 1]
        has_translation = any(token.source.strip() for token in inside)
        if has_translation and not self._overwrite:
            return False
        _sign(tokens[old])
        replace_source(tokens[segment:end], "")
        self.added[end] = [Token("start", "<seg>"), *text, Token("end", "</seg>")]
        return True

    def _new_variant(self, variant: int, text: list[Token]) -> list[Token]:
        """Return a variant with white space as another one has it."""
        tokens, partners = self._source.tokens, self._source.partners
        key = "xml:lang" if tokens[variant].attribute("xml:lang") else "lang"
        start = Token("start", f'<tuv {key}="{self._target}">')
        _sign(start)
        segment = self._segment(variant)
        assert segment is not None  # it has the text
        spaces = [
            Token("text", tokens[i].source if tokens[i].source.isspace() else "")
            for i in (variant - 1, segment - 1, partners[variant] - 1)
        ]
        content = [spaces[1], Token("start", "<seg>"), *text, Token("end", "</seg>"), spaces[2]]
        return [spaces[0], start, *content, Token("end", "</tuv>")]


@functools.lru_cache(1000)
def _base(language: str) -> str:
    """Return the code of a language without its script and country."""
    return look_up_language(language).base


def _sign(variant: Token) -> None:
    """Write into the tag of a variant what has made it, and when."""
    now = int(os.environ.get("SOURCE_DATE_EPOCH") or time.time())
    date = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
    tool = {"creationtool": "nmt", "creationtoolversion": __version__, "changedate": date}
    for name, value in tool.items():
        set_attribute(variant, name, value, add=True)
