"""Translates SRT files: their times and formatting stay, and each text is translated as a whole."""

import asyncio
import re
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape, unescape
from itertools import islice
from typing import Any

from nmt.serving.answers import RequestError

Translate = Callable[[Sequence[str], bool], Awaitable[list[str]]]
"""translates texts, each of several sentences perhaps; the flag says whether they are HTML"""
InThread = Callable[[Callable[[], Any]], Awaitable[Any]]
"""runs a function in a thread, and returns its result"""
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
_NAMED_TAG = re.compile(r"(</?)([a-z]\w*)[^<>]*(?<!/)>", re.IGNORECASE)
"""a start tag or an end tag, but not <br/>, which is both"""
_DASH = re.compile(rf"((?:{_MARK}|{_TAG}|\s)*+)([-–—]+)", re.IGNORECASE)
"""at the start of a line: another person speaks; `*+` remembers no place to come back to, of which
a million take hundreds of megabytes"""
_WORD = re.compile(rf"(?:{_MARK}|{_TAG}|\S)++", re.IGNORECASE)
_START, _END = "<p>", "</p>"
"""tags around each text of a page of HTML: other tags that do not end in a text end there"""
_KEPT = re.compile(r"<(?:!--|/?t-\w+ n=)(\d+)(?:--)?>")
"""what has a number in such a page"""


@dataclass
class _Text:
    """What one person says in a cue: a text of one line or several."""

    lines: list[str]
    breaks: list[str]
    """what stands before each line"""

    @property
    def source(self) -> str:
        """The lines as one text, because a sentence does not end where a line does."""
        return " ".join(self.lines)

    @property
    def is_formatted(self) -> bool:
        """Whether a part of the text is not for the model."""
        text = self.source
        return bool(_FORMATTING.search(text) or _ENTITY.search(text) or _DASH.match(text))

    def written(self, translation: str) -> str:
        """Return a translation with the breaks of the text; it may have fewer lines."""
        lines = _wrap(translation, len(self.lines)) or [""]
        unused = "".join(self.breaks[len(lines) :]).replace("\n", "")  # such as <br/>, which stays
        return "".join(map(str.__add__, self.breaks, lines)) + unused


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
        return cue

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


async def translate_subtitles(
    text: str, translate: Translate, in_thread: InThread = asyncio.to_thread
) -> str:
    """Translate the cues of an SRT file; numbers, times and formatting stay.

    The lines of a cue are one text, because a sentence does not end where a line does; but a line
    that begins with a dash begins another one. A text has at most as many lines as before. All
    rows end as the first one does. A file that begins with WEBVTT is one of WebVTT, where a blank
    row ends each text: notes, styles and names of cues stay. Threads read and write the file, so
    that other requests go on.

    Raises:
        RequestError: there is no cue.
    """
    cues = await in_thread(lambda: _read_cues(text))
    plain, formatted = await in_thread(lambda: _sources(cues))
    found_plain = deque(await translate(plain, False) if plain else [])
    found_formatted = deque[str]()
    if formatted:
        found_formatted.extend(await _translate_formatted(formatted, translate, in_thread))
    first_end = _LINE_END.search(text)
    end = first_end[0] if first_end else "\n"
    written: str = await in_thread(lambda: _write_cues(cues, found_plain, found_formatted, end))
    return written


def _sources(cues: Sequence[_Cue]) -> tuple[list[str], list[str]]:
    """Return the texts without formatting, and those with it."""
    sources: tuple[list[str], list[str]] = [], []
    for cue in cues:
        for each in cue.texts:
            sources[each.is_formatted].append(each.source)
    return sources


def _write_cues(
    cues: Sequence[_Cue], found_plain: deque[str], found_formatted: deque[str], end: str
) -> str:
    """Return the file with its translations, of texts without formatting and of those with it.

    `end` is the line end of the file.
    """
    rows: list[str] = []
    for cue in cues:
        rows += cue.head
        found = (
            each.written((found_formatted if each.is_formatted else found_plain).popleft())
            for each in cue.texts
        )
        if cue.texts or cue.tail:
            rows += ("".join(found) + cue.tail).split("\n")
    return end.join(rows)


def subtitle_text(text: str) -> str:
    """Return the text of all cues of an SRT file without formatting.

    Raises:
        RequestError: there is no cue.
    """
    texts = [each.source for cue in _read_cues(text) for each in cue.texts]
    return _without_formatting("\n".join(texts))


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


def _read_cues(text: str) -> list[_Cue]:
    """Cut an SRT file after the text of each cue, which ends at a blank row or the next times.

    Raises:
        RequestError: no row has times.
    """
    rows = _LINE_END.split(text)
    cues: list[_Cue] = []
    head: list[str] = []
    lines: list[str] = []
    has_times = [_CUE_TIME.fullmatch(row) is not None for row in rows]
    if not any(has_times):
        raise RequestError(
            400,
            "Invalid request: the .srt file has no subtitle; expected lines such as 00:00:01,500 "
            "--> 00:00:03,000, each followed by text; name another text .txt",
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


async def _translate_formatted(
    texts: Sequence[str], translate: Translate, in_thread: InThread
) -> list[str]:
    """Translate texts with formatting as one page of HTML, where it is tags and comments.

    What stands at the start or the end of a text stays there; inside, it goes with its words.
    """
    kept: list[str] = []  # the parts for which a tag or a comment with their index stands

    def keep(part: str) -> str:
        kept.append(part)
        tag = _NAMED_TAG.fullmatch(part)
        # a name that HTML does not know: it would take <p> or <code> for what they are in a page
        return f"{tag[1]}t-{tag[2]} n={len(kept) - 1}>" if tag else f"<!--{len(kept) - 1}-->"

    def mark_up(text: str) -> str:
        parts = enumerate(_parts(text))
        return "".join(keep(p) if i % 2 else _html_of_text(p, keep) for i, p in parts)

    def html_of(text: str) -> str:
        dash = _DASH.match(text)
        if not dash:
            return mark_up(text)
        return mark_up(dash[1]) + keep(dash[2]) + mark_up(text[dash.end() :])

    def text_of(part: str, source: str) -> str:
        found = _ENTITY.findall(_without_formatting(source))
        entities = {_character(entity): entity for entity in reversed(found)}
        written = {ord(char): entity for char, entity in entities.items() if len(char) == 1}
        parts = _KEPT.split(part)  # alternately text and a number
        return "".join(
            kept[int(p)] if i % 2 else unescape(p).translate(written) for i, p in enumerate(parts)
        )

    def page_of_texts() -> str:
        return "".join(_START + html_of(text) + _END for text in texts)

    def texts_of(page: str) -> list[str]:
        parts = page.removeprefix(_START).removesuffix(_END).split(_END + _START)
        return [text_of(part, text) for part, text in zip(parts, texts, strict=True)]

    [page] = await translate([await in_thread(page_of_texts)], True)
    written: list[str] = await in_thread(lambda: texts_of(page))
    return written


def _character(entity: str) -> str:
    """Return the character of an entity; what is none, such as `&nothing;`, stays as it is."""
    character = "\u00a0" if entity.lower() == "\\h" else unescape(entity)
    return character if len(character) == 1 else entity


def _html_of_text(text: str, keep: Callable[[str], str]) -> str:
    """Return a text without formatting as HTML; marks of direction are kept."""
    if not text:
        return ""
    parts: list[str] = []
    at = 0
    for found in _ENTITY.finditer(text):
        parts.append(escape(text[at : found.start()], quote=False))
        character = _character(found[0])
        if character in _DIRECTION_MARKS:
            parts.append(keep(found[0]))
        else:  # a non-breaking space has no word: the page places it as a tag
            parts.append("&nbsp;" if character == "\u00a0" else escape(character, quote=False))
        at = found.end()
    return "".join([*parts, escape(text[at:], quote=False)])


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
