"""Translates SRT files: their times and formatting stay, and each text is translated as a whole."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from html import unescape
from itertools import islice

from nmt.errors import DataError
from nmt.translation.documents.document import Document, DocumentSegment, ReadingOptions, has_text
from nmt.translation.documents.encodings import decode_text
from nmt.translation.documents.marked_text import Piece, read_pieces
from nmt.translation.documents.strings import tag_partners
from nmt.translation.documents.tokens import Token, source_of

_CUE_TIME = re.compile(r"\s*-?\d+:[\d:., ]*-->\s*-?\d+:.*")
"""00:00:01,500 --> 00:00:03,000, and what programs write in its place, as 0:01.5 --> 0:3"""
_LINE_END = re.compile(r"\r\n|\r|\n")
_BREAK = r"\n|\||\\[Nn]|<br\s*/?>"
"""what ends a line inside a cue: also the marks of MicroDVD (`|`), SSA (`\\N`) and HTML"""
_TAG = r"</?[a-z][^<>]*>"
"""<i>, <font color="red">, and those of WebVTT, such as <v Tom> and <c.yellow>"""
_MARK = (
    r"<rt\b[^<>]*>[^<>]*(?:</rt\s*>)?"  # how a word is pronounced, above it
    r"|<[!?][^<>]*>|<\d[\d:.,]*>"  # comments; times at which a part of a cue appears
    r"|\{[^{}]*\}|[♪♫]"
)
"""what stands for itself: also commands, such as {\\an8} for the top, and notes of music"""
_FORMATTING = re.compile(f"({_MARK}|{_TAG})", re.IGNORECASE)
_LINE_PART = re.compile(f"({_BREAK})|{_MARK}|{_TAG}", re.IGNORECASE)
"""a break, or formatting, in which there is none"""
_ENTITY = re.compile(r"&(?:#\d{1,7}|#x[\da-f]{1,6}|[a-z][a-z\d]{1,31});|\\h", re.IGNORECASE)
"""a character that WebVTT writes as HTML does; `\\h` is a space of SSA that does not break"""
_DIRECTION_MARKS = "\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_DASH = re.compile(rf"((?:{_MARK}|{_TAG}|\s)*+)([-–—]+)", re.IGNORECASE)
"""at the start of a line: another person speaks; `*+` remembers no place to come back to, of which
a million take hundreds of megabytes"""
_WORD = re.compile(rf"(?:{_MARK}|{_TAG}|\S)++", re.IGNORECASE)
_CHUNK = re.compile(r"(?P<space>\s+)|\S+")


@dataclass
class _Text:
    """What one person says in a cue: a text of one line or several."""

    lines: list[str]
    breaks: list[str]
    """what stands before each line"""
    token: Token = field(default_factory=lambda: Token("text", ""))
    """the text as it is in the file now"""

    @property
    def source(self) -> str:
        """The lines as one text, because a sentence does not end where a line does."""
        return " ".join(self.lines)

    def put(self, translation: str) -> None:
        """Write a translation with the breaks of the text; it may have fewer lines."""
        lines = _wrap(translation, len(self.lines)) or [""]
        unused = "".join(self.breaks[len(lines) :]).replace("\n", "")  # such as <br/>, which stays
        self.token.source = "".join(map(str.__add__, self.breaks, lines)) + unused


@dataclass
class _Cue:
    """The rows of a file up to the next text and with it."""

    head: list[str]
    """rows that stay: blank ones, the number, the times, notes of WebVTT"""
    texts: list[_Text]
    tail: str
    """a break after the last text"""

    @classmethod
    def read(cls, head: list[str], rows: Sequence[str]) -> "_Cue":
        """Divide the rows of a cue into its lines, and these into texts: a dash begins one."""
        cue = cls(head, [], "")
        whole, at = "\n".join(rows), 0
        for part in _LINE_PART.finditer(whole):
            if part[1]:  # a break
                cue._add(whole[at : part.start()])
                cue.tail += part[1]
                at = part.end()
        cue._add(whole[at:])
        for text in cue.texts:
            text.token.source = "".join(map(str.__add__, text.breaks, text.lines))
        return cue

    @property
    def rows(self) -> list[str]:
        """The rows as they are in the file now."""
        if not self.texts and not self.tail:
            return self.head
        return [*self.head, source_of(text.token for text in self.texts) + self.tail]

    def _add(self, line: str) -> None:
        """Add a line, perhaps a blank one, behind the breaks in `tail`."""
        text = line.strip()
        if not text:
            self.tail += line
            return
        start = line.index(text)
        if not self.texts or _DASH.match(text):
            self.texts.append(_Text([], []))
        self.texts[-1].lines.append(text)
        self.texts[-1].breaks.append(self.tail + line[:start])
        self.tail = line[start + len(text) :]


def read_subtitles(content: bytes, name: str, options: ReadingOptions) -> Document:
    """Read a file of SRT or WebVTT; messages call it `name`.

    Raises:
        DataError: there is no cue, or it is not in its encoding.
    """
    text, encode = decode_text(content, name, [options.languages.source])
    return subtitles_document(text, encode, name)


def subtitles_document(
    text: str, encode: Callable[[str], bytes] = str.encode, name: str = "the .srt file"
) -> Document:
    """Read the cues of an SRT file; numbers, times and formatting stay.

    The lines of a cue are one text, because a sentence does not end where a line does; but a line
    that begins with a dash begins another one. A text has at most as many lines as before. All
    rows end as the first one does. A file that begins with WEBVTT is one of WebVTT, where a blank
    row ends each text: notes, styles and names of cues stay.

    Raises:
        DataError: there is no cue.
    """
    cues = _read_cues(text, name)
    segments = []
    for cue in cues:
        for each in cue.texts:
            source = each.source
            found = read_pieces(_pieces(source), _entities(source))
            if has_text(found):
                segments.append(DocumentSegment(found, each.put))
    first_end = _LINE_END.search(text)
    end = first_end[0] if first_end else "\n"

    def write() -> bytes:
        rows = "\n".join(row for cue in cues for row in cue.rows)
        return encode(rows.replace("\n", end))

    return Document(segments, write)


def _parts(text: str) -> Iterator[str]:
    """Yield alternately text and formatting.

    One call of `re` for all parts would hold Python's lock for a second in a large text.
    """
    at = 0
    for found in _FORMATTING.finditer(text):
        yield text[at : found.start()]
        yield found[0]
        at = found.end()
    yield text[at:]


def _without_formatting(text: str) -> str:
    """Return a text without its formatting, such as <i>."""
    return "".join(islice(_parts(text), 0, None, 2))


def _read_cues(text: str, name: str) -> list[_Cue]:
    """Cut an SRT file after the text of each cue, which ends at a blank row or the next times.

    Raises:
        DataError: no row has times.
    """
    rows = _LINE_END.split(text)
    cues: list[_Cue] = []
    head: list[str] = []
    lines: list[str] = []
    has_times = [_CUE_TIME.fullmatch(row) is not None for row in rows]
    if not any(has_times):
        raise DataError(
            f"{name} has no subtitle; expected lines such as 00:00:01,500 --> 00:00:03,000, each "
            "followed by text; name another text .txt"
        )
    is_webvtt = rows[0].startswith("WEBVTT")
    is_begun = False  # before the first times there is no text
    for i, row in enumerate(rows):
        is_number = row.strip().isdigit() and has_times[i + 1 : i + 2] == [True]
        is_begun = has_times[i] or (is_begun and not (is_webvtt and not row.strip()))
        is_text = is_begun and not (has_times[i] or is_number or not row.strip())
        if lines and not is_text:
            cues.append(_Cue.read(head, lines))
            head, lines = [], []
        (lines if is_text else head).append(row)
    return [*cues, _Cue.read(head, lines)]


def _entities(text: str) -> dict[str, str]:
    """Return the characters that a text writes as entities, each with the first such entity."""
    found = _ENTITY.findall(_without_formatting(text))
    entities = {_character(entity): entity for entity in reversed(found)}
    return {char: entity for char, entity in entities.items() if len(char) == 1}


def _pieces(text: str) -> Iterator[Piece]:
    """Yield the pieces of a text: words, entities, formatting, and the dash of a speaker."""
    dash = _DASH.match(text)
    before, mark = text[: dash.start(2)] if dash else "", dash[2] if dash else ""
    rest = text[len(before) + len(mark) :]
    marks = [(part, i % 2 == 1) for i, part in enumerate(_parts(before))]
    marks.append((mark, True))
    marks += [(part, i % 2 == 1) for i, part in enumerate(_parts(rest))]
    # parts, and whether they are marks
    partners = tag_partners([part if is_mark else "" for part, is_mark in marks])
    for i, (part, is_mark) in enumerate(marks):
        token = Token("text", part)
        if i in partners:
            is_start = partners[i] > i
            yield Piece("open" if is_start else "close", [token], element=min(i, partners[i]))
        elif is_mark:
            yield Piece("tag", [token])
        else:
            yield from _plain_pieces(part)


def _plain_pieces(text: str) -> Iterator[Piece]:
    """Yield the words, white space and entities of a text without formatting."""
    for chunk in _CHUNK.finditer(text):
        if chunk["space"]:
            yield Piece("space", [Token("text", " ")])
            continue
        at = 0
        word = chunk[0]
        for entity in _ENTITY.finditer(word):
            if entity.start() > at:
                yield _word(word[at : entity.start()])
            character = _character(entity[0])
            if character == "\u00a0":  # it has no word, and is placed as a mark
                yield Piece("fixed", [Token("text", entity[0])])
            elif character in _DIRECTION_MARKS:
                yield Piece("tag", [Token("text", entity[0])])
            else:
                yield Piece("word", [Token("text", entity[0])], character)
            at = entity.end()
        if at < len(word):
            yield _word(word[at:])


def _word(text: str) -> Piece:
    return Piece("word", [Token("text", text)], text)


def _character(entity: str) -> str:
    """Return the character of an entity; what is none, such as `&nothing;`, stays as it is."""
    character = "\u00a0" if entity.lower() == "\\h" else unescape(entity)
    return character if len(character) == 1 else entity


def _wrap(text: str, count: int) -> list[str]:
    """Divide a text into at most `count` lines of about equal length, not counting formatting."""
    lines: list[str] = []
    words = _WORD.findall(text)
    lengths = [len(_without_formatting(word)) + 1 for word in words]
    start, left = 0, sum(lengths)  # of the words that are in no line yet
    for rest in range(count, 0, -1):
        room = left / rest
        end, length = start, 0
        last = max(start + 1, len(words) - rest + 1)  # each line that follows has a word
        while end < min(last, len(words)) and (
            end == start or rest == 1 or length + lengths[end] / 2 <= room
        ):
            length += lengths[end]
            end += 1
        lines.append(" ".join(words[start:end]))
        start, left = end, left - length
    return [line for line in lines if line]
