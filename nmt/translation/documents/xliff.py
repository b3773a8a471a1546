"""XLIFF 1.2 and 2.x, and what programs write as XLIFF 1.2: SDL Trados, memoQ, Phrase."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from nmt.data.text.bilingual_files import FROM_MACHINE, FROM_MEMORY, OUR_STATE
from nmt.errors import DataError
from nmt.memory.match import Match
from nmt.translation.documents.declared_languages import (
    check_declared_source,
    is_other_language,
    must_declare_target,
)
from nmt.translation.documents.document import (
    Document,
    DocumentSegment,
    ReadingOptions,
    has_text,
    replace_source,
)
from nmt.translation.documents.marked_text import MARKUP, read_pieces
from nmt.translation.documents.match_notes import ORIGIN, SUGGESTION, alternative, percentage
from nmt.translation.documents.tokens import Token, source_of
from nmt.translation.documents.xml_inline import InlineNames, inline_pieces
from nmt.translation.documents.xml_tokens import (
    XmlSource,
    remove_attribute,
    set_attribute,
    text_of_xml,
)

_PREFIXES = {
    "urn:oasis:names:tc:xliff:document:1.1": "",
    "urn:oasis:names:tc:xliff:document:1.2": "",
    "urn:oasis:names:tc:xliff:document:2.0": "",
    "urn:oasis:names:tc:xliff:document:2.1": "",
    "urn:oasis:names:tc:xliff:document:2.2": "",
}
_TO_TRANSLATE = ("initial", "needs-translation", "new")
"""states of a target that is not a translation yet"""
_TRANSLATED = ("final", "reviewed", "signed-off", "translated")
"""states of a target that is a translation, even if it equals its source"""
_CONFIRMED = ("ApprovedSignOff", "ApprovedTranslation", "Translated")
"""what Trados calls these states"""
_CONFIRMED_IN_MEMOQ = ("ConfirmedTranslator", "ManuallyConfirmed", "Proofread")
"""what memoQ calls them"""
_TRADOS_STATE = {"conf": "Draft", "origin": "mt", "origin-system": "nmt"}
"""what Trados says about a segment that a program has translated"""
_TRADOS_EXACT = {"origin": "tm", "percent": "100"}
"""what Trados says about one that a translation memory had"""
_TRADOS_MATCH = ("percent", "struct-match", "text-match")
"""what Trados says about the entry of a translation memory that a segment had"""
_UNCONFIRMED = {
    "approved": "no",
    "mq:status": "PartiallyEdited",
    "m:confirmed": "0",
    "m:trans-origin": "mt",
}
"""attributes by which XLIFF 1.2, memoQ and Phrase say that a person has confirmed a unit, and
their values for a unit that a program has translated"""
_LANGUAGES = (("source-language", "target-language"), ("srcLang", "trgLang"))
"""the attributes of the two languages, in version 1.2 and in 2.x"""


def _is_kept(token: Token) -> bool:
    return token.attribute("translate") == "no" or token.attribute("mtype") == "protected"


_UNITS = ("segment", "trans-unit")
"""the elements of one source and one target, of XLIFF 2.x and 1.2"""
INLINE = InlineNames(
    around=frozenset({"g", "mrk", "pc"}),
    pairs={"bpt": "ept", "bx": "ex", "sc": "ec", "sm": "em"},
    is_kept=_is_kept,
    has_written_tags=True,
)


def read_xliff(content: bytes, name: str, options: ReadingOptions) -> Document:
    """Read an XLIFF file: its segments without a translation, or all of them.

    Raises:
        DataError: it is no well-formed XML, has a unit inside another one, or is in other languages
            than those of the options.
    """
    source = XmlSource(content, name, _PREFIXES)
    _check_units(source, name)
    reader = _UnitReader(source, options)
    segments = list(reader.read())
    language = _declare_languages(source, reader.kept, name, options)
    source.insert(reader.added)
    return Document(segments, source.encode, True, language)


def _declare_languages(
    source: XmlSource, kept: Sequence[int], name: str, options: ReadingOptions
) -> str:
    """Write the target language into each part of a file, once the languages are compared.

    Return the source language that the first part declares. `kept` has the indices of the units
    whose translation stays.

    Raises:
        DataError: the source language is another one, or a translation that stays is in another.
    """
    language = ""
    for i, token in enumerate(source.tokens):
        for source_key, target_key in _LANGUAGES:
            if not token.attribute(source_key):
                continue
            of_part = check_declared_source(token.attribute(source_key), source_key, name, options)
            language = language or of_part
            count = bisect_left(kept, source.end(i)) - bisect_left(kept, i)
            declared = token.attribute(target_key)
            if must_declare_target(declared, target_key, count, name, options):
                set_attribute(token, target_key, options.languages.target_tag, add=True)
    return language


def _check_units(source: XmlSource, name: str) -> None:
    """Raise a DataError for a unit inside another one, whose source would be in both."""
    end = 0
    for i, token in enumerate(source.tokens):
        if token.kind == "start" and token.name in _UNITS:
            if i < end:
                raise DataError(
                    f"{name}: has a <{token.name}> inside another unit, which XLIFF forbids; save "
                    "it again with the program that made it"
                )
            end = source.end(i)


class _UnitReader:
    """Finds the segments of a file."""

    def __init__(self, source: XmlSource, options: ReadingOptions) -> None:
        self._source, self._overwrite = source, options.overwrite
        self._renews_suggestions = options.unconfirmed
        self._languages = options.languages
        self.added: dict[int, list[Token]] = {}
        """tokens to put before a token of the file, by its index: targets that are new"""
        self.kept: list[int] = []
        """the units in which a translation stays, by the index of their tag"""

    def read(self) -> Iterator[DocumentSegment]:
        """Yield the segments of all units."""
        tokens = self._source.tokens
        translated, preserved = [True], [False]  # of each open element, and outside of all
        for i, token in enumerate(tokens):
            if token.kind == "start":
                asked = token.attribute("translate")
                translated.append(asked != "no" if asked else translated[-1])
                space = token.attribute("xml:space")
                preserved.append(space == "preserve" if space else preserved[-1])
                if token.name in _UNITS:
                    is_open = translated[-1] and not _is_locked(token)
                    yield from self._unit(i, preserved[-1], is_open)
            elif token.kind == "end":
                translated.pop()
                preserved.pop()

    def _unit(self, unit: int, preserve: bool, is_open: bool) -> Iterator[DocumentSegment]:
        """Yield the segments of the element of one source and one target.

        The target becomes a copy of the source with its marks, and of what is translated already.
        All stays if the unit is not open to changes.
        """
        source, tokens, partners = self._source, self._source.tokens, self._source.partners
        children: dict[str, int] = {}
        i = unit + 1
        while i < partners[unit]:
            children.setdefault(tokens[i].name, i)
            i = source.end(i)
        start = children.get("seg-source", children.get("source"))
        target = children.get("target")
        if start is None or tokens[start].kind == "empty":
            return
        is_new = self._is_new(unit, target)
        copy = [replace(token) for token in tokens[start : partners[start] + 1]]
        is_changed, pair, texts = False, Token("text", ""), self._texts(start)
        for part, first, end in texts:
            place = copy[first - start : end - start]
            old = [] if target is None else self._part(target, part)
            names = replace(INLINE, preserve=preserve)
            text = read_pieces(inline_pieces(source, first, end, names), MARKUP)
            is_copy = has_text(text) and _text(old) == _text(place)
            is_locked, is_done = self._status(unit, target, part)
            has_translation = bool(_text(old)) and (is_done or not is_copy)
            renewed = is_new or (
                self._renews_suggestions and self._is_suggested(unit, target, part)
            )
            if not is_open or is_locked or (has_translation and not renewed):
                if has_translation and has_text(text):
                    self.kept.append(unit)
                if old:
                    replace_source(place, source_of(old))
                continue
            is_changed |= bool(place)
            self._tell_trados(unit, part)
            if has_text(text):
                # the state is that of the whole unit, which may have several texts
                tags = [tokens[unit], *self._about(unit, part)]
                tell = partial(_tell_match, tags, copy, pair)
                tell_match = tell if len(texts) == 1 else None
                yield DocumentSegment(text, partial(replace_source, place), tell_match)
        if is_changed:
            self._write(unit, start, target, copy, pair)

    def _write(
        self, unit: int, start: int, target: int | None, copy: list[Token], pair: Token
    ) -> None:
        """Put a new target into a unit, in place of the old one or after the source at `start`.

        `pair` stands after it, in place of the pair of an earlier translation.
        """
        source, tokens, partners = self._source, self._source.tokens, self._source.partners
        for i in range(unit, partners[unit]):
            if tokens[i].name == "alt-trans" and tokens[i].attribute("origin") == ORIGIN:
                replace_source(tokens[i : source.end(i)], "")
        for key, value in _UNCONFIRMED.items():
            set_attribute(tokens[unit], key, value)
        is_old_version = tokens[unit].name == "trans-unit"
        if not is_old_version:
            set_attribute(tokens[unit], "state", "translated", add=True)
            set_attribute(tokens[unit], "subState", f"nmt:{SUGGESTION}", add=True)
        old_tag = tokens[target] if target is not None else None
        copy[0], copy[-1] = _target_tags(tokens[start], old_tag, is_old_version)
        if old_tag and is_other_language(old_tag.attribute("xml:lang"), self._languages.target):
            set_attribute(copy[0], "xml:lang", self._languages.target_tag)
        if target is not None:
            replace_source(tokens[target : source.end(target)], "")
            self.added[source.end(target)] = [*copy, pair]
        else:
            space = tokens[unit + 1].source if tokens[unit + 1].kind == "text" else ""
            self.added[partners[start] + 1] = [Token("text", space), *copy, pair]

    def _is_new(self, unit: int, target: int | None) -> bool:
        """Return whether a unit has nothing that stays in its target."""
        tag = self._source.tokens[unit]
        if target is None or self._overwrite:
            return True
        state = self._source.tokens[target].attribute("state") or tag.attribute("state")
        return state in _TO_TRANSLATE and tag.attribute("approved") != "yes"

    def _is_suggested(self, unit: int, target: int | None, part: str) -> bool:
        """Return whether a machine or a memory has suggested a target, and nobody confirmed it."""
        tag = self._source.tokens[unit]
        if tag.name == "segment":  # of version 2, in which such a target has the state `translated`
            is_ours = (tag.attribute("subState") or "").startswith(f"{OUR_STATE}:")
            return is_ours and tag.attribute("state") == "translated"
        origin = target is not None and self._source.tokens[target].attribute("state-qualifier")
        is_done = self._status(unit, target, part)[1]
        return origin in FROM_MACHINE | FROM_MEMORY and not is_done

    def _status(self, unit: int, target: int | None, part: str) -> tuple[bool, bool]:
        """Return whether a part of a unit is locked, and whether a person has translated it."""
        tokens, about = self._source.tokens, self._about(unit, part)
        states = {tokens[i].attribute("state") for i in (unit, unit if target is None else target)}
        is_done = (
            tokens[unit].attribute("approved") == "yes"
            or not states.isdisjoint(_TRANSLATED)
            or tokens[unit].attribute("m:confirmed") not in (None, "0")
            or tokens[unit].attribute("mq:status") in _CONFIRMED_IN_MEMOQ
            or any(tag.attribute("conf") in _CONFIRMED for tag in about)
        )
        return any(map(_is_locked, about)), is_done

    def _about(self, unit: int, part: str) -> list[Token]:
        """Return the tags in which Trados has the state of a part of a unit: one, or none."""
        inside = self._source.tokens[unit : self._source.partners[unit]]
        return [tag for tag in inside if tag.name == "sdl:seg" and tag.attribute("id") == part]

    def _tell_trados(self, unit: int, part: str) -> None:
        """Write that a program has translated a part, if the file is one of Trados."""
        for tag in self._about(unit, part):
            for key, value in _TRADOS_STATE.items():
                set_attribute(tag, key, value, add=True)
            for key in _TRADOS_MATCH:
                remove_attribute(tag, key)

    def _texts(self, start: int) -> list[tuple[str, int, int]]:
        """Return the texts of a source: the number of each, its first token, and after its last."""
        tokens, partners = self._source.tokens, self._source.partners
        if tokens[start].name != "seg-source":
            return [("", start + 1, partners[start])]
        found = [
            (tokens[i].attribute("mid") or "", i + 1, partners[i])
            for i in range(start, partners[start])
            if tokens[i].kind == "start" and tokens[i].attribute("mtype") == "seg"
        ]
        return found or [("", start + 1, partners[start])]

    def _part(self, target: int, part: str) -> Sequence[Token]:
        """Return what a target has for a text of its source."""
        tokens, end = self._source.tokens, self._source.end(target)
        if not part:
            return tokens[target + 1 : end - 1]
        for i in range(target, end):
            if tokens[i].kind == "start" and tokens[i].attribute("mid") == part:
                return tokens[i + 1 : self._source.partners[i]]
        return []


def _is_locked(tag: Token) -> bool:
    """Return whether Trados, memoQ or Phrase let nobody change a unit or a part of one."""
    locks = [value for name, value in tag.attributes if name.rpartition(":")[2] == "locked"]
    return bool(locks) and locks[0] in ("1", "locked", "true")


def _text(tokens: Sequence[Token]) -> str:
    """Return the text of some tokens."""
    return text_of_xml(source_of(token for token in tokens if token.kind == "text")).strip()


def _target_tags(source: Token, old: Token | None, has_state: bool) -> tuple[Token, Token]:
    """Return the tags of a target, with the attributes of the old one, beside those of a source."""
    name = re.sub(r"(seg-)?source$", "target", source.source[1:].split()[0].rstrip("/>"))
    tag = Token("start", f"<{name}>", "target")
    for key, value in old.attributes if old else ():
        set_attribute(tag, key, value or "", add=True)
    if has_state:
        set_attribute(tag, "state", "needs-review-translation", add=True)
        set_attribute(tag, "state-qualifier", SUGGESTION, add=True)
    return tag, Token("end", f"</{name}>", "target")


def _tell_match(tags: Sequence[Token], target: Sequence[Token], pair: Token, match: Match) -> None:
    """Write that a target came from a translation memory: the kind and score of the match.

    `tags` are that of its unit, and those that Trados has about it. `pair` stands after the target.
    """
    unit, *about = tags
    if unit.name == "trans-unit":
        set_attribute(target[0], "state-qualifier", match.kind)
        pair.source = alternative(match)
    else:
        set_attribute(unit, "subState", f"nmt:{match.kind}-{percentage(match)}")
    for tag in about if match.score == 1 else ():
        for key, value in _TRADOS_EXACT.items():
            set_attribute(tag, key, value, add=True)
