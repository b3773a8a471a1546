"""Texts of Word, PowerPoint and Excel that are in no paragraph: attributes, labels, headers."""

import re
from collections.abc import Iterator, Sequence, Set
from functools import partial

from nmt.errors import print_warning
from nmt.translation.documents.document import DocumentSegment, has_text, replace_source
from nmt.translation.documents.marked_text import MARKUP, Piece, read_pieces
from nmt.translation.documents.strings import string_segments
from nmt.translation.documents.tokens import Token, source_of
from nmt.translation.documents.xml_tokens import XmlSource, text_of_xml, write_text

_ATTRIBUTES: dict[str, dict[str, int]] = {
    # alternative texts
    "docPr": {"descr": 0, "title": 0},
    "cNvPr": {"descr": 0, "title": 0},
    "shape": {"alt": 0},
    "rect": {"alt": 0},
    "tblCaption": {"val": 0},
    "tblDescription": {"val": 0},
    # watermarks, and what lists offer
    "textpath": {"string": 0},
    "listItem": {"displayText": 0},
    "listEntry": {"val": 0},
    # what is shown at the mouse pointer
    "hyperlink": {"tooltip": 255, "display": 0},
    "hlinkClick": {"tooltip": 0},
    "hlinkHover": {"tooltip": 0},
    "dataValidation": {"promptTitle": 32, "prompt": 255, "errorTitle": 32, "error": 225},
}
"""{element: {attribute: most characters}}, without prefixes; 0: any number"""
_ELEMENTS = frozenset({"cx:pt", "cx:v", "dc:description", "dc:subject", "dc:title", "p:text"})
"""elements whose whole content is a text: of charts, properties and comments"""
_LABELS = frozenset({"c:lvl", "c:strCache", "c:strLit"})
"""elements with the texts of a chart, not its numbers"""
_PAGE_TEXTS = frozenset(
    f"{page}{place}" for page in ("odd", "even", "first") for place in ("Header", "Footer")
)
"""of Excel"""
MAX_PAGE_TEXT = 255
"""most characters of one, with its codes"""
_FILE_NAME = re.compile(r"\S+\.[a-z]{3,4}|(?:[A-Z]:|\\\\).*|https?:.*", re.IGNORECASE)
_VALUES = {**MARKUP, '"': "&quot;", "\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}
_NUMBER = re.compile(r"%\d")
_NUMBER_PIECE = re.compile(r"(?P<kept>%\d%?)|(?P<space> (?!\s))|(?P<break>\s+)|(?:(?!%\d)\S)++")
_CODE = re.compile(
    r"&(?:(?P<place>[LCR])|(?P<kept>[PNDTFAZ](?:[+-]\d+)?)"
    r'|"[^"]*"|\d+|K[0-9A-F]{6}|K\d\d[+-]\d{3}|[^&])|(?P<space> (?! ))|(?P<break>[ \r\n\t]+)'
    r"|(?:&&|[^& \r\n\t]++)++"
)
"""a piece of the text at the top or bottom of a page of Excel; && stands for &"""
_SHOWN = {"P": "1", "N": "2", "D": "2030-01-01", "T": "12:00", "F": "1.xlsx", "A": "1", "Z": "/"}
"""what takes the place of a number, date or name in the text that is translated"""
_PAGE_MARKUP = {**MARKUP, "&": "&amp;&amp;"}


def texts_of_tag(token: Token) -> Iterator[DocumentSegment]:
    """Yield the segments of the attributes of a tag."""
    limits = _ATTRIBUTES.get(token.name.rpartition(":")[2], {})
    for name, value in token.attributes if limits else ():
        limit = limits.get(name.rpartition(":")[2])
        if limit is not None and value and not _FILE_NAME.fullmatch(value):
            yield from segments_of_value(token, name, value, limit)
    if token.name == "w:lvlText":
        yield from segments_of_number(token)


def segments_of_number(token: Token) -> Iterator[DocumentSegment]:
    """Yield the segment of an attribute that says how a list counts, such as "Chapter %1:"."""
    for name, value in token.attributes:
        if not value or not _NUMBER.search(value):
            continue
        pieces = []
        for found in _NUMBER_PIECE.finditer(value):
            kind = found.lastgroup or "word"
            written = "".join(_VALUES.get(character, character) for character in found[0])
            shown = {"kept": "1", "word": found[0]}.get(kind, "")
            pieces.append(Piece(kind, [Token("text", written)], shown))  # type: ignore[arg-type]
        text = read_pieces(pieces, _VALUES)
        if has_text(text):
            yield DocumentSegment(text, partial(_write_value, token, name))


def filter_segments(source: XmlSource, texts: Set[str]) -> Iterator[DocumentSegment]:
    """Yield the segments of what filters of a sheet show, for those that are `texts` of cells."""
    for token in source.tokens:
        value = token.attribute("val") if token.name == "filter" else None
        if value and value in texts:
            yield from segments_of_value(token, "val", value)


def segments_of_value(
    token: Token, name: str, value: str, limit: int = 0
) -> Iterator[DocumentSegment]:
    """Yield the segments of an attribute, which may have at most `limit` characters; 0: any."""
    tokens, segments = string_segments(value.replace("_x000a_", "\n"))
    for segment in segments:
        put = partial(_put_in_attribute, token, name, limit, tokens, segment)
        yield DocumentSegment(segment.text, put)


def _put_in_attribute(
    token: Token,
    name: str,
    limit: int,
    tokens: Sequence[Token],
    segment: DocumentSegment,
    source: str,
) -> None:
    """Put a translation into its place in a value, and the value into its tag."""
    segment.put(source)
    value = source_of(tokens)
    if limit and len(value) > limit:
        value = value[: limit - 1].rstrip() + "…"
    _write_value(token, name, "".join(_VALUES.get(character, character) for character in value))


def _write_value(token: Token, name: str, value: str) -> None:
    """Write the source of a value of an attribute."""
    pattern = rf"""(\s{re.escape(name)}\s*=\s*)(?:"[^"]*"|'[^']*')"""
    token.source = re.sub(pattern, lambda m: f'{m[1]}"{value}"', token.source, count=1)


def text_of_element(source: XmlSource, end: int, parents: Sequence[str]) -> list[DocumentSegment]:
    """Return the segments of an element without elements inside, whose end tag is at `end`.

    `parents` are the names of the elements around it.
    """
    start, name = source.partners[end], source.tokens[end].name
    inside = source.tokens[start + 1 : end]
    if not inside or any(token.name for token in inside):
        return []
    text = text_of_xml(source_of(inside))
    if name in _PAGE_TEXTS:
        return list(_page_segments(inside, text))
    is_label = name == "c:v" and (parents[-1:] == ["c:tx"] or not _LABELS.isdisjoint(parents[-2:]))
    is_threaded_comment = name == "tc:text"
    if not (is_label or is_threaded_comment or name in _ELEMENTS):
        return []
    tokens, segments = string_segments(text)

    def put(segment: DocumentSegment, translation: str) -> None:
        segment.put(translation)
        replace_source(inside, write_text(source_of(tokens)))
        if is_threaded_comment:  # mentions of people name characters of the text
            _remove_next(source, end, "tc:mentions")

    return [DocumentSegment(each.text, partial(put, each)) for each in segments]


def _remove_next(source: XmlSource, end: int, name: str) -> None:
    """Remove the next sibling of an element, if it has this name."""
    i = end + 1
    while source.tokens[i].kind == "text":
        i += 1
    if source.tokens[i].name == name and source.tokens[i].kind != "end":
        replace_source(source.tokens[i : source.end(i)], "")


def _page_segments(inside: Sequence[Token], text: str) -> Iterator[DocumentSegment]:
    """Yield the segments of the text at the top or bottom of pages: left, middle and right."""
    parts: list[list[Piece]] = [[]]
    for found in _CODE.finditer(text):
        token = Token("text", write_text(found[0]))
        if found["place"]:
            parts += [[Piece("tag", [token])], []]
        elif found["kept"]:
            parts[-1].append(Piece("kept", [token], _SHOWN[found["kept"][0]]))
        elif found.lastgroup:
            parts[-1].append(Piece("space" if found["space"] else "break", [token]))
        elif found[0].startswith("&") and not found[0].startswith("&&"):
            parts[-1].append(Piece("tag", [token]))
        else:
            parts[-1].append(Piece("word", [token], found[0].replace("&&", "&")))
    sources = [source_of(token for piece in part for token in piece.tokens) for part in parts]
    for i, part in enumerate(parts):
        marked = read_pieces(part, _PAGE_MARKUP)
        if has_text(marked):
            yield DocumentSegment(marked, partial(_put_on_page, inside, sources, i))


def _put_on_page(inside: Sequence[Token], sources: list[str], place: int, source: str) -> None:
    """Put a translation into one of the `sources` of a page, unless the page has no room."""
    was, sources[place] = sources[place], source
    if len(text_of_xml("".join(sources))) > MAX_PAGE_TEXT:
        print_warning(
            f"the header or footer {text_of_xml(was)!r} of a sheet stays: its translation has more "
            f"than the {MAX_PAGE_TEXT} characters that Excel reads"
        )
        sources[place] = was
    replace_source(inside, "".join(sources))
