"""Cuts the source of an HTML page into tags, text and the rest, without changing a character.

A translated page must differ from its source in text only. A parser that builds a tree would write
other entities, quotes and white space than it has read, and would mend what it takes for broken. So
the tags are found by Python's own parser, and everything keeps its source. No entity of a document
type is expanded and nothing is loaded.
"""

import re
from html.parser import HTMLParser

from nmt.translation.documents.tokens import Token

# a tag or a comment that the parser has ignored, or has passed on as text
_BROKEN_TAG = re.compile("(<[a-zA-Z/!?][^>]*>?)")
_SCRIPT = re.compile(r"<script[\s/>]", re.IGNORECASE)


def read_tokens(html: str) -> list[Token]:
    """Return the tokens of a page or of a part of one; their sources together are the page."""
    # A tag that never ends is no tag. The parser would search for each of many such ends through
    # the whole page. So it reads the page up to the last end of a tag, and what follows is divided
    # here: a text, and then an endless tag or comment.
    last_tag_end = html.rfind(">") + 1
    endless_tag = _BROKEN_TAG.search(html, last_tag_end)
    text_end = endless_tag.start() if endless_tag else len(html)
    reader = _TokenReader()
    tokens = reader.read(html[:last_tag_end])
    if reader.is_in_comment:
        text_end = last_tag_end
    tokens += [Token("text", html[last_tag_end:text_end]), Token("other", html[text_end:])]
    return [token for token in tokens if token.source]


class _TokenReader(HTMLParser):
    """Notes where each tag, comment and text begins."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._found: list[tuple[tuple[int, int], Token]] = [((1, 0), Token("text", ""))]
        """(line from 1, column from 0) of the start of each token"""
        self.is_in_comment = False
        """whether the page ends in a comment, which began and never ended"""
        self._script_at = 0
        """up to where the present script has been read"""
        self._is_in_script_comment = False
        """whether a `<!--` of the present script has not ended there"""

    def read(self, html: str) -> list[Token]:
        """Return the tokens of a page."""
        self.feed(html)
        self.close()
        line_starts = [0, *(found.end() for found in re.finditer("\n", html))]
        starts = [line_starts[line - 1] + column for (line, column), _ in self._found]
        ends = [*starts[1:], len(html)]
        tokens: list[Token] = []
        for start, end, (_, token) in zip(starts, ends, self._found, strict=True):
            token.source = html[start:end]
            if token.kind == "text":
                parts = enumerate(_BROKEN_TAG.split(token.source))  # every second one is broken
                tokens += [Token("other" if i % 2 else "text", part) for i, part in parts]
            else:
                tokens.append(token)
        return tokens

    def parse_html_declaration(self, i: int) -> int:
        """Return the end of the declaration at `i`, or -1 if it has none; the parser calls this.

        Up to Python 3.13, one that begins with "<![" may raise an AssertionError.
        """
        position = self.lineno, self.offset
        try:
            return super().parse_html_declaration(i)
        except AssertionError:
            self.lineno, self.offset = position
            self._note(Token("other", ""))
            return self.rawdata.find(">", i) + 1 or -1

    def parse_comment(self, i: int, report: bool = True) -> int:
        """Return the end of the comment at `i`, which is that of the page if it never ends.

        The parser calls this, but not in scripts and style sheets, where `<!--` is no comment.
        """
        end = super().parse_comment(i, report)
        if end < 0:
            self._note(Token("other", ""))
            self.is_in_comment = True
        return len(self.rawdata) if end < 0 else end

    def parse_starttag(self, i: int) -> int:
        """Return the end of the start tag at `i`; the parser calls this."""
        end = super().parse_starttag(i)
        self._script_at, self._is_in_script_comment = end, False
        return end

    def parse_endtag(self, i: int) -> int:
        """Return the end of the end tag at `i`; the parser calls this.

        As in browsers, a script does not end at the `</script>` that follows `<!--` and `<script>`
        in it (HTML Standard, 13.2.5.27, "script data double escaped state").
        """
        if self.cdata_elem == "script":
            part = self.rawdata[self._script_at : i]
            self._script_at = i
            *before, comment = part.split("-->")
            if before or not self._is_in_script_comment:  # the comment ended, or there was none
                _, start, comment = comment.partition("<!--")
                self._is_in_script_comment = bool(start)
            if self._is_in_script_comment and _SCRIPT.search(comment):
                return i + len("</")
        return super().parse_endtag(i)

    def _note(self, token: Token) -> None:
        self._found.append((self.getpos(), token))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note(Token("start", "", tag, tuple(attrs)))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        self._note(Token("end", "", tag))

    def handle_data(self, data: str) -> None:
        self._note(Token("text", ""))

    def handle_comment(self, data: str) -> None:
        self._note(Token("other", ""))

    def handle_decl(self, decl: str) -> None:
        self._note(Token("other", ""))

    def handle_pi(self, data: str) -> None:
        self._note(Token("other", ""))

    def unknown_decl(self, data: str) -> None:
        self._note(Token("other", ""))
