"""HTML in, HTML out: the text of a page is translated, and everything else stays as it is."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from html import unescape

from nmt.data.text.lines import check_text
from nmt.translation.documents.addresses import is_address
from nmt.translation.documents.document import (
    ANY_LANGUAGE,
    Document,
    DocumentSegment,
    LanguagePair,
    ReadingOptions,
    has_text,
    replace_source,
    text_beside_kept,
)
from nmt.translation.documents.html_attributes import (
    attribute_source,
    declare_target,
    replace_attribute,
    spoken_attributes,
)
from nmt.translation.documents.html_blocks import Block, Elements, find_blocks
from nmt.translation.documents.html_page import HtmlPage
from nmt.translation.documents.html_source import read_tokens
from nmt.translation.documents.marked_text import (
    BREAK_REFERENCE,
    MARKUP,
    MarkedText,
    Piece,
    read_pieces,
)
from nmt.translation.documents.tokens import Token, source_of
from nmt.translation.documents.xml_tokens import text_of_xml, write_text
from nmt.translation.line import has_words

XHTML_PREFIXES = {
    "http://www.w3.org/1999/xhtml": "",
    "http://www.w3.org/2000/svg": "",
    "http://www.w3.org/1998/Math/MathML": "",
}
"""those of the elements that this room knows, in pages of XHTML"""
_FIXED = r"&(?:nbsp|#160|#[xX]0*[aA]0);"
_BREAK = rf"(?:{BREAK_REFERENCE}|&(?:Tab|NewLine);)"
_CONTROL = r"&#(?:0*(?:[0-8]|1[1245-9]|2\d|3[01]|127)|[xX]0*(?:[0-8bBcCeEfF]|1[\da-fA-F]|7[fF]));"
"""references to control characters, which are no white space and part of no word"""
_SOFT_HYPHEN = "\u00ad"
_CHUNKS = re.compile(
    rf"(?P<space>[ \t\n\r\f]+)|(?P<fixed>{_FIXED})|(?P<break>{_BREAK})|(?P<tag>{_CONTROL})"
    rf"|[^ \t\n\r\f&{_SOFT_HYPHEN}]++(?: [^ \t\n\r\f&{_SOFT_HYPHEN}]++)*+"
    rf"|(?:(?!{_FIXED}|{_BREAK}|{_CONTROL})[^ \t\n\r\f])++"
)
_ENTITY = re.compile(r"&#?\w+;")


def read_html(content: bytes, name: str, options: ReadingOptions) -> Document:
    """Read a page; messages call it `name`.

    Raises:
        DataError: it is no text of its encoding, or in another format than HTML.
    """
    page = HtmlPage.decode(name, content)
    return html_document(page.html, options.languages, page.encode)


def html_document(
    html: str,
    languages: LanguagePair = ANY_LANGUAGE,
    encode: Callable[[str], bytes] = str.encode,
) -> Document:
    """Read a page, or a part of one: its text, and the attributes that a reader sees.

    All other characters of the source stay. Elements whose `lang` is another language than the
    source stay as they are, and those of the source get the target's. `encode` makes a file of it.

    Raises:
        DataError: `html` has half a surrogate pair.
    """
    check_text(html, "the page")
    tokens = read_tokens(html)
    segments = page_segments(tokens, Elements(tokens, languages), languages)
    return Document(segments, lambda: encode(source_of(tokens)))


def page_segments(
    tokens: Sequence[Token], elements: Elements, languages: LanguagePair
) -> list[DocumentSegment]:
    """Return the segments of a page of HTML or XHTML, and let its elements declare the target.

    `elements` are those of `tokens`.
    """
    segments = [*_attributes(tokens, elements), *_blocks(tokens, elements)]
    for token, is_translated in zip(tokens, elements.content_translated, strict=True):
        if token.kind in ("start", "empty") and is_translated:
            declare_target(languages, token)
    return segments


def _blocks(tokens: Sequence[Token], elements: Elements) -> Iterator[DocumentSegment]:
    """Yield the blocks to translate."""
    for block in find_blocks(tokens, elements):
        text = read_block(tokens, elements.partners, block)
        if has_text(text) and not is_address(text_beside_kept(text)):
            place = tokens[block[0].first : block[-1].end]
            yield DocumentSegment(text, partial(replace_source, place))


def _attributes(tokens: Sequence[Token], elements: Elements) -> Iterator[DocumentSegment]:
    """Yield the attributes to translate, each as a text on one line."""
    for i, token in enumerate(tokens):
        if token.kind in ("start", "empty") and elements.attributes_translated[i]:
            for name in spoken_attributes(token):
                yield from attribute_segments(token, name)


def attribute_segments(token: Token, name: str) -> Iterator[DocumentSegment]:
    """Yield the texts of an attribute: one, or the lines that references such as &#10; separate."""
    source = " ".join((attribute_source(token, name) or "").split())
    value = "\n".join(" ".join(line.split()) for line in unescape(source).split("\n"))
    if not has_words(value) or is_address(value):
        return
    # what is put is plain text, and becomes the source of the attribute at last
    tokens = [Token("text", part) for part in re.split("(\n+)", value)]

    def put(part: Token, translation: str) -> None:
        part.source = translation
        replace_attribute(token, name, source_of(tokens))

    for part in tokens:
        if has_words(part.source):
            yield DocumentSegment(MarkedText([], part.source, [], {}, [], {}), partial(put, part))


def page_text(html: str) -> str:
    """Return the text of a page that is translated, without the markup; attributes are left out."""
    tokens = read_tokens(html)
    is_translated = Elements(tokens).text_translated
    pairs = zip(tokens, is_translated, strict=True)
    return unescape("".join(token.source for token, yes in pairs if yes and token.kind == "text"))


def read_block(tokens: Sequence[Token], partners: dict[int, int], block: Block) -> MarkedText:
    """Read the text of a block, whose entities become characters.

    `partners` are those of `Elements`.
    """
    parts = list(_parts(tokens, partners, block))
    written = dict(MARKUP)
    for part in parts:
        if part.kind == "word":
            written.update(_entities(part.tokens[0]))
    return read_pieces(parts, written)


def _parts(tokens: Sequence[Token], partners: dict[int, int], block: Block) -> Iterator[Piece]:
    """Yield the parts of a block, in order; `partners` has the start tag of each end tag."""
    for item in block:
        inside = list(tokens[item.first : item.end])
        if item.kind == "text":
            source = inside[0].source
            if source.startswith("<"):  # CDATA of XHTML
                source = write_text(text_of_xml(source))
            for chunk in _CHUNKS.finditer(source):
                kind = chunk.lastgroup or "word"
                text = text_of(chunk[0]) if kind == "word" else ""
                yield Piece(kind, [Token("text", chunk[0])], text)  # type: ignore[arg-type]
        elif item.kind == "kept":
            text = text_of(" ".join(t.source for t in inside if t.kind == "text"))
            yield Piece("kept", inside, " ".join(text.split()))
        elif item.kind == "tag":
            yield Piece("break" if inside[0].name == "br" else "tag", inside)
        else:
            start = partners[item.first] if item.kind == "close" else item.first
            yield Piece(item.kind, inside, element=start)


def _entities(token: Token) -> Iterator[tuple[str, str]]:
    """Yield (character, entity) for each entity in a text that stands for one character."""
    for entity in _ENTITY.findall(token.source):
        character = unescape(entity)
        if len(character) == 1 and character != _SOFT_HYPHEN:
            yield character, entity


def text_of(source: str) -> str:
    """Return the text that an HTML source without tags stands for, on one line."""
    return unescape(source).replace(_SOFT_HYPHEN, "").replace("\n", " ")
