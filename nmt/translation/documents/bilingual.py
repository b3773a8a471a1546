"""A document as XLIFF 1.2, in which a person corrects the translation, and the document made of it.

Each segment of the document is a unit. What is marked inside a text is an element <g>, or <x/> for
a mark between two words; their ids say which one it is. The header has all that is needed to read
the document again, and its digest.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from nmt import __version__
from nmt.data.languages import look_up_language
from nmt.data.text.xml_units import XmlUnit, read_units
from nmt.errors import ConfigError, DataError, print_warning
from nmt.memory.match import Match
from nmt.translation.documents.document import (
    Document,
    DocumentSegment,
    LanguagePair,
    ReadingOptions,
)
from nmt.translation.documents.formats import read_document
from nmt.translation.documents.marked_text import MARKUP, MarkedText
from nmt.translation.documents.match_notes import SUGGESTION, alternative
from nmt.translation.documents.tag_places import InlineTag
from nmt.translation.documents.tokens import UNWRITABLE, Token, source_of
from nmt.translation.documents.xml_tokens import write_text

_SHOWN = 40
"""characters of a mark that a translator is shown, if it has no more"""
_WARNINGS = 10
"""units that are named; of more, their number is told"""
_LINE_BREAK = re.compile(r"[ \t]*[\r\n]\s*")
_ASK_AGAIN = "write a new file with `nmt translate --bilingual`"
_HEADER = """<?xml version="1.0" encoding="UTF-8"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file original={name} source-language={source} target-language={target} datatype={type} tool-id="nmt">
<header><tool tool-id="nmt" tool-name="nmt" tool-version={version}/>
<nmt:document xmlns:nmt="urn:nmt:document" digest={digest} format={format} reading={reading}/></header>
<body>
"""  # noqa: E501 - lines of the file
_UNIT = """<trans-unit id="{}" xml:space="preserve"><source>{}</source>
<target state="needs-review-translation" state-qualifier="{}">{}</target>{}</trans-unit>
"""
_FOOTER = "</body>\n</file>\n</xliff>\n"


@dataclass(frozen=True)
class OriginalFile:
    """The document that a bilingual file is made of, and how it was read."""

    name: str
    content: bytes
    format: str
    reading: ReadingOptions

    def header(self) -> str:
        """Return the beginning of the bilingual file."""
        languages = self.reading.languages
        values = {
            "name": Path(self.name).name,
            "source": look_up_language(languages.source).tag,
            "target": languages.target_tag,
            "type": "html" if self.format == "html" else f"x-{self.format}",
            "version": __version__,
            "digest": _digest(self.content),
            "format": self.format,
            "reading": json.dumps(asdict(self.reading), ensure_ascii=False),
        }
        return _HEADER.format(**{key: _attribute(value) for key, value in values.items()})


def bilingual_document(document: Document, original: OriginalFile) -> Document:
    """Return a document with the same texts, which is written as a bilingual file."""
    units = [_Unit(segment.text) for segment in document.segments]

    def encode() -> bytes:
        rows = (
            _UNIT.format(number, unit.source(), *unit.translated())
            for number, unit in enumerate(units, start=1)
        )
        return "".join([original.header(), *rows, _FOOTER]).encode("utf-8")

    segments = [DocumentSegment(unit.shown, unit.take, unit.take_match) for unit in units]
    return Document(segments, encode, document.is_of_program)


def apply_bilingual(edited: bytes, edited_name: str, content: bytes, name: str) -> bytes:
    """Return a document with the targets of a bilingual file as its texts, without any model.

    `content` is the document from which the file was made. A text keeps its source, with a warning,
    if its unit is missing, has no target or another source, or lacks a mark or has one too many.

    Raises:
        DataError: the file is not one of `bilingual_document`, or was made from another document.
    """
    header, units = _read_bilingual(edited, edited_name)
    if header["digest"] != _digest(content):
        raise DataError(
            f"{edited_name}: was made from another document than {name}, or {name} has changed "
            f"since; give the document of that time, or {_ASK_AGAIN}"
        )
    try:
        values: dict[str, Any] = json.loads(header["reading"])
        languages = LanguagePair(**values.pop("languages"))
        lists = {key: tuple(each) for key, each in values.items() if isinstance(each, list)}
        reading = ReadingOptions(languages, **(values | lists))
        document = read_document(content, name, header["format"], reading)
    except (AttributeError, ConfigError, KeyError, TypeError, ValueError) as error:
        raise DataError(f"{edited_name}: its element nmt:document was changed; {_ASK_AGAIN}") from (
            error
        )
    problems: list[str] = []
    for number, segment in enumerate(document.segments, start=1):
        unit = _Unit(segment.text)
        element = units.pop(str(number), None)
        problem = "is missing" if element is None else unit.problem(element)
        if element is None or problem:
            problems.append(f"unit {number} {problem}; this text of the document stays as it is")
        else:
            segment.put(unit.document_source(element))
    problems += [f"unit {number} is not in the document and is ignored" for number in units]
    _warn(problems, edited_name)
    return document.encode()


class _Unit:
    """A text of a document as a unit of XLIFF."""

    def __init__(self, text: MarkedText) -> None:
        self._text = text
        tags = list(_all_tags(text.tags))
        kept = sorted(text.kept.items())
        numbers = {id(tag): str(number) for number, tag in enumerate(tags, start=1)}
        self._tags = {numbers[id(tag)]: tag for tag in tags}
        self._kept = {
            str(number): tokens for number, (_, tokens) in enumerate(kept, start=1 + len(tags))
        }
        shown: dict[int, InlineTag] = {}
        for tag in reversed(tags):  # what is inside an element before it
            children = [shown[id(child)] for child in tag.children]
            opening, closing = _tag_in_xliff(tag, numbers[id(tag)])
            shown[id(tag)] = replace(tag, opening=opening, closing=closing, children=children)
        spans = {
            span: [_point(number, text.text[slice(*span)])]
            for number, (span, _) in zip(self._kept, kept, strict=True)
        }
        self.shown = MarkedText(
            [], text.text, [shown[id(tag)] for tag in text.tags], spans, [], MARKUP
        )
        """the text with the marks of XLIFF"""
        self.target = ""
        """the translation with these marks"""
        self.match: Match | None = None
        """the pair of a translation memory that it came from"""

    def take(self, target: str) -> None:
        """Take the translation."""
        self.target = target

    def take_match(self, match: Match) -> None:
        """Take the pair of a translation memory that the translation came from."""
        self.match = match

    def translated(self) -> tuple[str, str, str]:
        """Return where the translation came from, the translation, and the pair of a memory."""
        kind = self.match.kind if self.match else SUGGESTION
        return kind, self.target, alternative(self.match)

    def source(self) -> str:
        """Return the text with its marks."""
        return _with_marks(self.shown)

    def problem(self, element: Element) -> str:
        """Return what is wrong with a unit that a person has edited; "" if nothing is."""
        source, target = element.find("source"), element.find("target")
        expected = _parse(self.source())
        if source is None or _without_spaces(_pieces(source)) != _without_spaces(expected):
            return "has another source text"
        found = [] if target is None else list(_pieces(target))
        if not "".join(value for kind, value in found if kind == "text").strip():
            return "has no target"
        marks = Counter(piece for piece in found if piece[0] in ("open", "mark"))
        needed = Counter(piece for piece in expected if piece[0] in ("open", "mark"))
        missing = [
            _tag_name(kind, value)
            for kind, value in needed - marks
            if value not in self._tags or not self._tags[value].needs_space
        ]
        if missing:
            return f"has no {' and no '.join(missing)} in its target"
        extra = [_tag_name(*piece) for piece in marks - needed]
        if extra:
            return f"has {', '.join(extra)} more often in its target than in its source"
        return ""

    def document_source(self, element: Element) -> str:
        """Return the target of a unit as the document writes it."""
        target = element.find("target")
        assert target is not None  # `problem` has found it
        parts = []
        for kind, value in _pieces(target):
            if kind == "text":
                parts.append(self._text.escape(value))
            elif value in self._tags:
                tag = self._tags[value]
                parts.append(source_of(tag.closing if kind == "close" else tag.opening))
            else:
                parts.append(source_of(self._kept[value]))
        inside = "".join(parts)
        return source_of(self._text.before) + inside + source_of(self._text.after)


def _all_tags(tags: Sequence[InlineTag]) -> Iterator[InlineTag]:
    """Yield the tags and those inside them, an element before what is in it."""
    pending = list(reversed(tags))
    while pending:
        tag = pending.pop()
        yield tag
        pending += reversed(tag.children)


def _tag_in_xliff(tag: InlineTag, number: str) -> tuple[list[Token], list[Token]]:
    """Return the start and the end of a tag in XLIFF."""
    if tag.is_element:
        return [Token("start", f'<g id="{number}">')], [Token("end", "</g>")]
    return [_point(number, source_of(tag.opening))], []


def _point(number: str, shown: str) -> Token:
    """Return a mark between two words; `shown` is what it stands for."""
    shown = shown.strip().translate(UNWRITABLE)
    equivalent = f" equiv-text={_attribute(shown)}" if 0 < len(shown) <= _SHOWN else ""
    return Token("empty", f'<x id="{number}"{equivalent}/>')


def _with_marks(text: MarkedText) -> str:
    """Return the source of a text with its marks, as they are in the text itself."""
    parts: list[str] = []
    kept = sorted(text.kept.items(), reverse=True)  # the next one last
    at = 0

    def write_until(end: int) -> None:
        nonlocal at
        while kept and kept[-1][0][1] <= end:
            (start, stop), tokens = kept.pop()
            parts.extend([text.escape(text.text[at:start]), source_of(tokens)])
            at = stop
        parts.append(text.escape(text.text[at:end]))
        at = max(at, end)

    opened: list[tuple[InlineTag | None, Iterator[InlineTag]]] = [(None, iter(text.tags))]
    while opened:
        tag, children = opened[-1]
        child = next(children, None)
        if child is None:
            opened.pop()
            if tag is not None:
                write_until(tag.span[1])
                parts.append(source_of(tag.closing))
            continue
        write_until(child.span[0])
        parts.append(source_of(child.opening))
        if child.is_element:
            opened.append((child, iter(child.children)))
        elif child.replaces_space and text.text[at : at + 1].isspace():
            at += 1
    write_until(len(text.text))
    return "".join(parts)


_Piece = tuple[str, str]
"""text, or the number of a mark: ("text", "a dog"), ("open", "1"), ("close", "1"), ("mark", "2")"""


def _pieces(element: Element) -> Iterator[_Piece]:
    """Yield what is in a source or a target."""
    if element.text:
        yield "text", _LINE_BREAK.sub(" ", element.text)
    for child in element:
        number = child.get("id", "")
        if child.tag == "g":
            yield "open", number
            yield from _pieces(child)
            yield "close", number
        elif child.tag == "mrk":  # a segment or a comment of a translator's program
            yield from _pieces(child)
        else:
            yield "mark", number if child.tag == "x" else f"<{child.tag}>"
        if child.tail:
            yield "text", _LINE_BREAK.sub(" ", child.tail)


def _parse(content: str) -> list[_Piece]:
    """Return the pieces of a content that was written here."""
    whole = BytesIO(f"<source>{content}</source>".encode())
    [unit] = read_units(whole, "a unit", ("source",), ())
    return list(_pieces(unit.element))


def _without_spaces(pieces: Iterator[_Piece] | Sequence[_Piece]) -> list[_Piece]:
    """Return the pieces without white space, which programs change in a source."""
    joined: list[_Piece] = []
    for kind, value in pieces:
        text = "".join(value.split()) if kind == "text" else value
        if kind == "text" and joined and joined[-1][0] == "text":
            joined[-1] = kind, joined[-1][1] + text
        elif text:
            joined.append((kind, text))
    return joined


def _read_bilingual(content: bytes, name: str) -> tuple[Mapping[str, str], dict[str, Element]]:
    """Return what the header says about the document, and the units by their ids."""
    around = ("xliff", "document")
    units: list[XmlUnit] = list(read_units(BytesIO(content), name, ("trans-unit",), around))
    header = units[0].around if units else {}
    if not {"digest", "format", "reading"} <= header.keys():
        raise DataError(
            f"{name}: is no file of `nmt translate --bilingual`, which has units and an element "
            f"nmt:document in its header; {_ASK_AGAIN}"
        )
    return header, {unit.element.get("id", ""): unit.element for unit in units}


def _warn(problems: Sequence[str], name: str) -> None:
    """Warn of the units that are not applied."""
    for problem in problems[:_WARNINGS]:
        print_warning(f"{name}: {problem}")
    if len(problems) > _WARNINGS:
        print_warning(
            f"{name}: {len(problems):,} units in all are not applied, the first {_WARNINGS} are "
            "named above"
        )


def _tag_name(kind: str, value: str) -> str:
    """Return the tag of a piece that is a mark, as the file has it."""
    if value.startswith("<"):  # one that is not written here
        return value
    return f'<g id="{value}">' if kind == "open" else f'<x id="{value}"/>'


def _attribute(value: str) -> str:
    """Return the value of an attribute in quotes."""
    quoted = write_text(value).replace('"', "&quot;")
    return f'"{_LINE_BREAK.sub(" ", quoted)}"'


def _digest(content: bytes) -> str:
    return f"sha256-{hashlib.sha256(content).hexdigest()}"
