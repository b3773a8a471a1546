"""Cuts the source of an XML document into tags, text and the rest, without changing a character.

A parser that builds a tree would write other quotes, prefixes and white space than it has read, and
a document should differ from its source in text alone. So the source is cut here, once Python's own
parser (Expat) has found it well-formed. Document types that declare something are refused, so no
entity is expanded and nothing is loaded.
"""

import re
from collections.abc import Mapping, Sequence
from html import escape, unescape

from nmt.data.text.xml_units import make_parser, xml_errors
from nmt.errors import DataError
from nmt.translation.documents.encodings import marked_encoding, xml_encoding
from nmt.translation.documents.tokens import Token

_TOKEN = re.compile(
    r"(?P<text>[^<]+|<!\[CDATA\[.*?\]\]>)|(?P<other><!--.*?-->|<\?.*?\?>|<![^>]*>)"
    r"""|<(?P<end>/)?(?P<name>[^\s/>]+)(?P<attributes>(?:[^>"'/]++|"[^"]*"|'[^']*'|/(?!>))*+)"""
    r"(?P<empty>/)?>",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(r"""([^\s=]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_CDATA = re.compile(r"<!\[CDATA\[(.*?)\]\]>", re.DOTALL)
_USUAL_ENCODINGS = ("utf-8", "utf-16", "iso-8859-1", "us-ascii")
"""those that all parsers of XML know"""
_WITHOUT_MARK = {b"<\0": "utf-16-le", b"\0<": "utf-16-be"}
"""the beginnings of documents in UTF-16 without a byte order mark"""


class XmlSource:
    """The tokens of an XML document, which may be changed, and its encoding."""

    def __init__(
        self, content: bytes, name: str, prefixes: Mapping[str, str] | None = None
    ) -> None:
        """Cut a document into tokens; messages call it `name`.

        `prefixes` are the usual ones of some namespaces, {URI: prefix}. Names of tokens have these,
        whatever the document uses.

        Raises:
            DataError: it is not well-formed, has declarations of its own, or is not in its
                encoding.
        """
        _check(content, name)
        self._mark, self.encoding = _encoding(content)
        try:
            text = content[len(self._mark) :].decode(self.encoding)
        except (LookupError, UnicodeError) as error:
            raise DataError(
                f"{name}: is no text in {self.encoding}, its encoding; convert it to UTF-8"
            ) from error
        self.tokens = _cut(text, dict(prefixes or {}))
        self.partners = _partners(self.tokens)
        """for each start tag the index of its end tag, and the other way round"""

    def encode(self) -> bytes:
        """Return the document as it is now, in its encoding."""
        text = "".join(token.source for token in self.tokens)
        return self._mark + text.encode(self.encoding, "xmlcharrefreplace")

    def insert(self, added: Mapping[int, Sequence[Token]]) -> None:
        """Put tokens before some others, by the indices of these; `partners` is not right then."""
        tokens: list[Token] = []
        for i, token in enumerate(self.tokens):
            tokens += [*added.get(i, ()), token]
        self.tokens = tokens

    def end(self, start: int) -> int:
        """Return the index after the element of a start tag or an empty tag."""
        return self.partners.get(start, start) + 1


def _check(content: bytes, name: str) -> None:
    """Raise a DataError if a document is not well-formed, has entities, or is nested too deeply."""
    with xml_errors(name):
        make_parser(name).Parse(content, True)


def _encoding(content: bytes) -> tuple[bytes, str]:
    """Return the byte order mark and the encoding that it says, else the declared one or UTF-8."""
    mark, encoding = marked_encoding(content)
    if mark:
        return mark, encoding
    if content[:2] in _WITHOUT_MARK:
        return b"", _WITHOUT_MARK[content[:2]]
    encoding = xml_encoding(content) or "utf-8"
    # what is declared may be a name that other parsers know otherwise, or not at all
    is_sure = encoding.lower() in _USUAL_ENCODINGS or not content.isascii()
    return b"", encoding if is_sure else "ascii"


def _cut(text: str, prefixes: dict[str, str]) -> list[Token]:
    """Return the tokens of a well-formed document."""
    tokens: list[Token] = []
    scopes: list[dict[str, str]] = [{}]
    """for each open element, and outside of all: the prefixes of the document and their usual ones,
    each with its colon"""
    for found in _TOKEN.finditer(text):
        if found["text"] is not None or found["other"] is not None:
            tokens.append(Token("text" if found["text"] is not None else "other", found[0]))
            continue
        attributes = () if found["end"] else _attributes(found["attributes"])
        scope = scopes[-1]
        for key, value in attributes:
            if key.startswith("xmlns") and value in prefixes:
                own = f"{key[6:]}:" if len(key) > 5 else ""
                usual = f"{prefixes[value]}:" if prefixes[value] else ""
                scope = scope | {own: usual}
        name = _usual(found["name"], scope)
        kind = "end" if found["end"] else "empty" if found["empty"] else "start"
        tokens.append(Token(kind, found[0], name, attributes))  # type: ignore[arg-type]
        if kind == "start":
            scopes.append(scope)
        elif kind == "end":
            scopes.pop()
    return tokens


def _attributes(text: str) -> tuple[tuple[str, str | None], ...]:
    return tuple((name, unescape(a or b)) for name, a, b in _ATTRIBUTE.findall(text))


def _usual(name: str, scope: Mapping[str, str]) -> str:
    """Return the name of a tag with the usual prefix of its namespace."""
    prefix, colon, local = name.rpartition(":")
    return scope.get(prefix + colon, prefix + colon) + local


def _partners(tokens: Sequence[Token]) -> dict[int, int]:
    partners: dict[int, int] = {}
    opened: list[int] = []
    for i, token in enumerate(tokens):
        if token.kind == "start":
            opened.append(i)
        elif token.kind == "end":
            start = opened.pop()
            partners[start], partners[i] = i, start
    return partners


def text_of_xml(source: str) -> str:
    """Return the text that a source without tags stands for."""
    parts = _CDATA.split(source)  # every second one is literal
    return "".join(part if i % 2 else unescape(part) for i, part in enumerate(parts))


def write_text(text: str) -> str:
    """Return a text as XML writes it."""
    return escape(text, quote=False)


def set_attribute(token: Token, name: str, value: str, add: bool = False) -> None:
    """Write another value of an attribute into the source of a tag; all else stays.

    With `add`, a tag without the attribute gets it.
    """
    quoted = write_text(value).replace('"', "&quot;")
    pattern = rf"""(\s{re.escape(name)}\s*=\s*)(?:"[^"]*"|'[^']*')"""
    changed, count = re.subn(pattern, lambda found: f'{found[1]}"{quoted}"', token.source, count=1)
    if add and not count:
        changed = re.sub(r"\s*/?>$", lambda found: f' {name}="{quoted}"{found[0].strip()}', changed)
    token.source = changed


def remove_attribute(token: Token, name: str) -> None:
    """Remove an attribute from the source of a tag, if it is there; all else stays."""
    pattern = rf"""\s{re.escape(name)}\s*=\s*(?:"[^"]*"|'[^']*')"""
    token.source = re.sub(pattern, "", token.source, count=1)
