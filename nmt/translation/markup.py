"""HTML in, HTML out: the text of a page is translated, and everything else stays as it is."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from html import unescape

from nmt.data.text.lines import check_text
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
from nmt.translation.documents.marked_text import MarkedText
from nmt.translation.documents.tokens import Token, source_of
from nmt.translation.html.addresses import is_address
from nmt.translation.html.attributes import replace_attribute, spoken_attributes
from nmt.translation.html.blocks import Elements, find_blocks
from nmt.translation.html.languages import declare_target
from nmt.translation.html.page import HtmlPage
from nmt.translation.html.source import read_tokens
from nmt.translation.html.text import read_block
from nmt.translation.line import has_words


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
    elements = Elements(tokens, languages)
    segments = [*_attributes(tokens, elements), *_blocks(tokens, elements)]
    for token, is_translated in zip(tokens, elements.content_translated, strict=True):
        if token.kind == "start" and is_translated:
            declare_target(languages, token)
    return Document(segments, lambda: encode(source_of(tokens)))


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
        if token.kind == "start" and elements.attributes_translated[i]:
            for name in spoken_attributes(token):
                value = " ".join((token.attribute(name) or "").split())
                if has_words(value) and not is_address(value):
                    # it is written as plain text, and becomes the source of an attribute at last
                    text = MarkedText([], value, [], {}, [], {})
                    yield DocumentSegment(text, partial(replace_attribute, token, name))


def page_text(html: str) -> str:
    """Return the text of a page that is translated, without the markup; attributes are left out."""
    tokens = read_tokens(html)
    is_translated = Elements(tokens).text_translated
    pairs = zip(tokens, is_translated, strict=True)
    return unescape("".join(token.source for token, yes in pairs if yes and token.kind == "text"))
