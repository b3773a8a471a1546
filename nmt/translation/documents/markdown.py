"""Markdown: CommonMark with tables, footnotes, mathematics and front matter."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nmt.errors import DataError, MissingExtraError, print_warning
from nmt.translation.documents.document import (
    Document,
    DocumentSegment,
    ReadingOptions,
    has_text,
)
from nmt.translation.documents.encodings import TextFile
from nmt.translation.documents.html import html_document, page_text
from nmt.translation.documents.markdown_inline import InlineReader
from nmt.translation.documents.tokens import Token
from nmt.translation.documents.yaml_values import read_yaml
from nmt.translation.line import has_words

_LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n|\Z)")
_CONTAINER = re.compile(r":::|!!!|\?\?\?|\[![A-Za-z]+\][ \t]*$")
"""a line that begins or ends a note of Docusaurus, VuePress or MkDocs, or names one: [!TIP]"""
_FRONT_MATTER = ("title", "subtitle", "description", "summary", "excerpt", "tagline")
"""the keys of front matter whose values are translated, if no others are named"""
_MAX_NESTING = 200
"""of lists and quotations inside each other, of which a list has two; the parser calls itself"""
_BLOCK_START = re.compile(r"(?:[-+*](?=\s|$)|[>#|]|\d{1,9}[.)](?=\s|$)|```|~~~|=+\s*$|-+\s*$|:::)")
"""what would begin another block at the start of a line"""


@dataclass
class _Line:
    """A line of the file."""

    text: str
    end: str
    places: list[tuple[int, int, Token]] = field(default_factory=list)
    """parts of the line that are translated, from left to right, and what stands there now"""
    is_removed: bool = False

    @property
    def source(self) -> str:
        """The line as it is now."""
        if self.is_removed:
            return ""
        source, at = "", 0
        for start, end, token in self.places:
            source += self.text[at:start] + token.source
            at = end
        return source + self.text[at:] + self.end

    def add_place(self, start: int, end: int) -> Token:
        """Return the token of a part of the line."""
        token = Token("text", self.text[start:end])
        self.places.append((start, end, token))
        return token


def read_markdown(file: TextFile, options: ReadingOptions) -> Document:
    """Read a file of Markdown: its paragraphs, headings, cells, and texts in HTML.

    Raises:
        MissingExtraError: the extra `documents` is not installed.
    """
    lines = [_Line(found[1], found[2]) for found in _LINE.finditer(file.text)]
    reader = _MarkdownReader(lines, options)
    segments = list(reader.segments("\n".join(line.text for line in lines)))
    if reader.left:
        at, reason = min(reader.left)
        print_warning(
            f"{file.name}: the text of {len(reader.left)} lines or blocks stays as it is; the "
            f"first is line {at + 1}, which {reason}"
        )

    def write() -> bytes:
        reader.write_inner()
        return file.encode("".join(line.source for line in lines))

    return Document(segments, write)


def _parser() -> Any:
    """Return a parser of the Markdown that people write."""
    try:
        from markdown_it import MarkdownIt
        from mdit_py_plugins.dollarmath import dollarmath_plugin
        from mdit_py_plugins.footnote import footnote_plugin
        from mdit_py_plugins.front_matter import front_matter_plugin
    except ImportError as error:
        raise MissingExtraError("translating Markdown", "documents") from error
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    parser.use(front_matter_plugin).use(footnote_plugin)
    parser.use(dollarmath_plugin, allow_space=False, allow_digits=False)
    return parser.disable("footnote_tail")  # which would move footnotes to the end


@dataclass
class _Block:
    """Lines of a paragraph, of a heading, or a cell of a table: a text, and where it stands."""

    lines: list[_Line]
    tokens: list[Token]
    """the part of each line"""
    is_paragraph: bool
    """whether its lines may be divided elsewhere, and begin other blocks"""
    short_links: Mapping[str, str]

    @property
    def source(self) -> str:
        """The text, with a line end between two lines."""
        return "\n".join(token.source for token in self.tokens)

    def put(self, translation: str) -> None:
        """Write a translation into the lines; there may be fewer or more than before."""
        for source, written in self.short_links.items():
            translation = translation.replace(written, source)
        if translation == re.sub(r"(?<![ \t])[ \t]*\n[ \t]*", " ", self.source):
            return  # the lines stay as they are
        if not self.is_paragraph:
            self.tokens[0].source = translation
            return
        width = max(len(token.source) for token in self.tokens)
        is_one = len(self.lines) == 1
        parts = translation.split("\n")
        rows = [row for part in parts for row in ([part] if is_one else _wrap(part, width))]
        rows = [_escape_start(row) for row in rows]
        prefix = self._prefix()
        for i, (line, token) in enumerate(zip(self.lines, self.tokens, strict=True)):
            if i >= len(rows):
                line.is_removed = True
                continue
            token.source = rows[i]
            if i == len(self.lines) - 1:
                token.source = ((self.lines[0].end or "\n") + prefix).join(rows[i:])
        if len(rows) < len(self.lines):
            self.lines[len(rows) - 1].end = self.lines[-1].end

    def _prefix(self) -> str:
        """Return what stands before each line but the first: quote marks and indentation."""
        line = self.lines[min(1, len(self.lines) - 1)]
        prefix = line.text[: line.places[0][0]]
        is_first = len(self.lines) == 1
        return re.sub(r"[^>\s]", " ", prefix) if is_first else prefix


def _wrap(text: str, width: int) -> list[str]:
    """Divide a text into lines of at most `width` characters, none of which begins a block."""
    lines = [""]
    for word in text.split(" "):
        is_long = len(lines[-1]) + 1 + len(word) > width
        if lines[-1] and (not is_long or _BLOCK_START.match(word)):
            lines[-1] += " " + word
        elif lines[-1]:
            lines.append(word)
        else:
            lines[-1] = word
    return lines


def _escape_start(line: str) -> str:
    """Return a line with a backslash if it would begin a list, a heading or another block."""
    found = _BLOCK_START.match(line)
    if not found:
        return line
    at = found.end() - 1 if found[0][0].isdigit() else 0  # 3\. May
    return line[:at] + "\\" + line[at:]


class _MarkdownReader:
    """Finds the texts of a file."""

    def __init__(self, lines: Sequence[_Line], options: ReadingOptions) -> None:
        self._lines, self._options = lines, options
        self._definitions: dict[str, Any] = {}
        self._parser = _parser()
        self._inner: list[tuple[Sequence[_Line], Document]] = []
        """the front matter and the blocks of HTML"""
        self.left: list[tuple[int, str]] = []
        """the lines whose text stays although it should not, and why"""

    def write_inner(self) -> None:
        """Write the translations of the blocks in other formats into their lines."""
        for lines, inner in self._inner:
            for line in lines[1:]:
                line.is_removed = True
            lines[0].text, lines[0].end = inner.encode().decode(), lines[-1].end

    def segments(self, text: str) -> Iterator[DocumentSegment]:
        """Yield the texts, in the order of the file."""
        self._parser.options["maxNesting"], usual = _MAX_NESTING, self._parser.options["maxNesting"]
        self._parser.disable("inline")  # it reads each text, which `InlineReader` does
        blocks = self._parser.parse(text, self._definitions)
        self._parser.enable("inline")
        self._parser.options["maxNesting"] = usual
        self._note_unread(blocks)
        self._inline = InlineReader(self._parser, self._definitions)  # changes the parser's rules
        kind = ""
        for block in blocks:
            if block.type == "html_block":
                yield from self._html(block)
            elif block.type == "front_matter":
                yield from self._front_matter(block)
            elif block.type == "inline" and block.map:
                yield from self._texts(block, kind)
            kind = block.type

    def _note_unread(self, blocks: Sequence[Any]) -> None:
        """Note the lines with words that the parser has passed over."""
        unread = {i for i, line in enumerate(self._lines) if has_words(line.text)}
        leaves = [block.map for block in blocks if block.map and not block.nesting]
        references = self._definitions.get("references", {}).values()
        for first, end in [*leaves, *(each["map"] for each in references)]:
            unread.difference_update(range(first, end))
        self.left += [(i, "is in too many lists and quotations") for i in sorted(unread)]

    def _texts(self, block: Any, kind: str) -> Iterator[DocumentSegment]:
        """Yield the text of a paragraph, heading or cell, and those of its pictures."""
        if kind in ("th_open", "td_open"):
            yield from self._cell(block)
            return
        rows: list[tuple[_Line, Token]] = []
        first = block.map[0]
        for i, part in enumerate(block.content.split("\n")):
            line = self._lines[first + i]
            start = line.text.rfind(part.strip()) if part.strip() else -1
            if start < 0:  # the parser has replaced a tab or another character
                self.left.append((first + i, "has a character that Markdown does not allow"))
                return
            is_last = i == block.content.count("\n")
            end = start + len(part.strip()) if is_last else len(line.text)
            if _CONTAINER.match(line.text[start:]):
                yield from self._paragraph(rows, kind == "paragraph_open")
                rows = []
            else:
                rows.append((line, line.add_place(start, end)))
        yield from self._paragraph(rows, kind == "paragraph_open")

    def _paragraph(
        self, rows: Sequence[tuple[_Line, Token]], is_paragraph: bool, escaped: str = ""
    ) -> Iterator[DocumentSegment]:
        if rows:
            block = _Block([row[0] for row in rows], [row[1] for row in rows], is_paragraph, {})
            found = self._inline.read(block.source, escaped)
            block.short_links = found.short_links
            if has_text(found.text) or found.alternatives:
                yield from found.alternatives
                yield DocumentSegment(found.text, block.put)

    def _cell(self, block: Any) -> Iterator[DocumentSegment]:
        line = self._lines[block.map[0]]
        cell = block.content.replace("|", "\\|")
        start = line.text.find(cell, line.places[-1][1] if line.places else 0)
        if cell and start >= 0:
            token = line.add_place(start, start + len(cell))
            yield from self._paragraph([(line, token)], False, "|")

    def _html(self, block: Any) -> Iterator[DocumentSegment]:
        """Yield the texts of a block of HTML that is in no other block."""
        lines = self._lines[slice(*block.map)]
        while len(lines) > 1 and not lines[-1].text.strip():
            lines = lines[:-1]
        source = "".join(line.text + line.end for line in lines)
        source = source.removesuffix(lines[-1].end)
        if re.sub(r"\r\n?", "\n", source).strip() != block.content.strip():
            if has_words(page_text(block.content)):
                reason = "is HTML in a quotation or a list, whose marks stand before each line"
                self.left.append((block.map[0], reason))
            return
        yield from self._in_other_format(lines, html_document(source, self._options.languages))

    def _front_matter(self, block: Any) -> Iterator[DocumentSegment]:
        """Yield the texts of the front matter, which is YAML; damaged YAML stays as it is."""
        lines = self._lines[block.map[0] + 1 : block.map[1] - 1]
        if not lines:
            return
        source = "".join(line.text + line.end for line in lines).removesuffix(lines[-1].end)
        keys = self._options.key or tuple(key for key in _FRONT_MATTER if key in source)
        if not keys:
            return
        options = replace(self._options, key=keys)
        try:
            values = read_yaml(TextFile("the front matter", source), options)
        except DataError as error:
            print_warning(f"{error}; it stays as it is")
            return
        yield from self._in_other_format(lines, values)

    def _in_other_format(
        self, lines: Sequence[_Line], inner: Document
    ) -> Iterator[DocumentSegment]:
        """Yield the texts of lines that are a document of another format."""
        if inner.segments:
            self._inner.append((lines, inner))
            yield from inner.segments
