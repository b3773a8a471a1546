"""Subtitles of SRT, WebVTT, SubStation Alpha and YouTube: their times and formatting stay.

What one person says in a cue is one text. A sentence that goes over several cues is translated as a
whole, and divided again.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from nmt.errors import DataError
from nmt.translation.documents.document import Document, DocumentSegment, ReadingOptions, has_text
from nmt.translation.documents.encodings import TextFile
from nmt.translation.documents.marked_text import MarkedText, read_pieces
from nmt.translation.documents.subtitle_text import (
    BREAK,
    DASH,
    MARK,
    TAG,
    divide,
    join_lines,
    subtitle_pieces,
    written_characters,
)
from nmt.translation.documents.tokens import Token, source_of

_TIME = r"-?\d+:[\d:., ]*"
_CUE_TIMES = re.compile(
    rf"\s*({_TIME})-->\s*(-?\d+:[\d:.,]*).*|\s*(\d+:\d+:\d+\.\d+),(\d+:\d+:\d+\.\d+)\s*"
)
"""00:00:01,500 --> 00:00:03,000, and what programs write in its place, as 0:01.5 --> 0:3; YouTube
writes 0:00:01.500,0:00:03.000"""
_LINE_END = re.compile(r"\r\n|\r|\n")
_LINE_PART = re.compile(f"({BREAK})|{MARK}|{TAG}", re.IGNORECASE)
"""a break, or formatting, in which there is none"""
_DRAWING = re.compile(r"\{[^{}]*\\p[1-9]")
"""begins a picture of SubStation Alpha, whose text is drawn"""
_FIELDS = (
    "layer",
    "start",
    "end",
    "style",
    "name",
    "marginl",
    "marginr",
    "marginv",
    "effect",
    "text",
)
"""of a row of dialogue"""
_ENDS_SENTENCE = re.compile(r"[.!?…:;。！？؟؛।።][\"'”’»)\]」』）]*$")
_SONG = re.compile("[♪♫]")
_GOES_ON = re.compile(r"[,、،][\"'”’»)\]]*$")
_MOST_CUES = 6
"""of one sentence"""
_MOST_PAUSE = 1.5
"""seconds between the cues of a sentence"""
_MOST_OVERLAP = 0.5
"""seconds; cues that overlap for longer are shown at the same time"""


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
        return join_lines(self.lines)

    def put(self, translation: str) -> None:
        """Write a translation with the breaks of the text; it may have fewer lines."""
        lines = [line for line in divide(translation, [1] * len(self.lines)) if line] or [""]
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
    prefix: str = ""
    """what stands before the text in its row"""
    start: float = 0.0
    end: float = 0.0
    """when it is shown, in seconds"""

    def read_text(self, text: str) -> None:
        """Divide the text of a cue into its lines, and these into texts: a dash begins one."""
        at = 0
        for part in _LINE_PART.finditer(text):
            if part[1]:  # a break
                self._add(text[at : part.start()])
                self.tail += part[1]
                at = part.end()
        self._add(text[at:])
        for each in self.texts:
            each.token.source = "".join(map(str.__add__, each.breaks, each.lines))

    @property
    def rows(self) -> list[str]:
        """The rows as they are in the file now."""
        if not self.texts and not self.tail and not self.prefix:
            return self.head
        return [*self.head, self.prefix + source_of(text.token for text in self.texts) + self.tail]

    def _add(self, line: str) -> None:
        """Add a line, perhaps a blank one, behind the breaks in `tail`."""
        text = line.strip()
        if not text:
            self.tail += line
            return
        start = line.index(text)
        if not self.texts or DASH.match(text):
            self.texts.append(_Text([], []))
        self.texts[-1].lines.append(text)
        self.texts[-1].breaks.append(self.tail + line[:start])
        self.tail = line[start + len(text) :]


def read_subtitles(file: TextFile, options: ReadingOptions) -> Document:
    """Read the cues of SRT, WebVTT, SubStation Alpha or YouTube; times and formatting stay.

    The lines of a cue are one text, because a sentence does not end where a line does; but a line
    that begins with a dash begins another one. A text has at most as many lines as before. All
    rows end as the first one does. A file that begins with WEBVTT is one of WebVTT, where a blank
    row ends each text: notes, styles and names of cues stay.

    Raises:
        DataError: there is no cue.
    """
    rows = _LINE_END.split(file.text)
    is_substation = any(row.startswith("Dialogue:") for row in rows)
    cues = list(_substation_cues(rows)) if is_substation else _read_cues(rows, file.name)
    segments = list(_segments(cues, rows[0].startswith("WEBVTT")))
    first_end = _LINE_END.search(file.text)
    end = first_end[0] if first_end else "\n"

    def write() -> bytes:
        rows = "\n".join(row for cue in cues for row in cue.rows)
        return file.encode(rows.replace("\n", end))

    return Document(segments, write)


def _read_cues(rows: Sequence[str], name: str) -> list[_Cue]:
    """Cut a file after the text of each cue, which ends at a blank row or the next times.

    Raises:
        DataError: no row has times.
    """
    cues: list[_Cue] = []
    head: list[str] = []
    lines: list[str] = []
    times = [_CUE_TIMES.fullmatch(row) for row in rows]
    if not any(times):
        raise DataError(
            f"{name} has no subtitle; expected lines such as 00:00:01,500 --> 00:00:03,000, each "
            "followed by text; name another text .txt"
        )
    is_webvtt = rows[0].startswith("WEBVTT")
    shown: re.Match[str] | None = None  # the times of the rows that follow
    is_begun = False  # before the first times there is no text
    for i, row in enumerate(rows):
        is_number = row.strip().isdigit() and any(times[i + 1 : i + 2])
        is_begun = times[i] is not None or (is_begun and not (is_webvtt and not row.strip()))
        is_text = is_begun and not (times[i] or is_number or not row.strip())
        if lines and not is_text:
            cues.append(_cue(head, lines, shown))
            head, lines = [], []
        shown = times[i] or shown
        (lines if is_text else head).append(row)
    return [*cues, _cue(head, lines, shown)]


def _cue(head: list[str], lines: Sequence[str], times: re.Match[str] | None) -> _Cue:
    start, end = (times[1] or times[3], times[2] or times[4]) if times else ("", "")
    cue = _Cue(head, [], "", start=_seconds(start), end=_seconds(end))
    cue.read_text("\n".join(lines))
    return cue


def _seconds(time: str) -> float:
    """Return the seconds of a time such as 00:01:02,500; 0 if it is none."""
    seconds = 0.0
    for part in time.replace(",", ".").replace(" ", "").split(":"):
        try:
            seconds = 60 * seconds + float(part)
        except ValueError:
            return 0.0
    return seconds


def _substation_cues(rows: Sequence[str]) -> Iterator[_Cue]:
    """Yield the rows of a file of SubStation Alpha; those of dialogue have a text, the last field.

    The fields are named by a row such as "Format: Layer, Start, End, Style, …, Text".
    """
    names = list(_FIELDS)
    for row in rows:
        kind, colon, value = row.partition(":")
        if kind == "Format":  # of the styles, then of the events
            names = [name.strip().lower() for name in value.split(",")]
        fields = value.split(",", len(names) - 1)
        if kind != "Dialogue" or len(fields) < len(names) or _DRAWING.search(fields[-1]):
            yield _Cue([row], [], "")
            continue
        by_name = dict(zip(names, fields, strict=True))
        start, end = _seconds(by_name.get("start", "")), _seconds(by_name.get("end", ""))
        prefix = kind + colon + ",".join(fields[:-1]) + ","
        cue = _Cue([], [], "", prefix, start, end)
        cue.read_text(fields[-1])
        yield cue


class _Said(NamedTuple):
    """A text, its cue, and its words."""

    cue: _Cue
    text: _Text
    words: MarkedText

    def goes_on(self, after: "_Said") -> bool:
        """Return whether a text of the next cue continues the sentence of this one."""
        is_neighbour = self.cue.texts[-1] is self.text and after.cue.texts[0] is after.text
        is_sung = _SONG.search(self.text.source + after.text.source)
        if not is_neighbour or self.cue is after.cue or is_sung or DASH.match(after.text.source):
            return False
        pause = after.cue.start - self.cue.end
        if self.words.has_tags or after.words.has_tags or not -_MOST_OVERLAP < pause < _MOST_PAUSE:
            return False
        first = after.words.text[0]
        is_inside = not first.isupper() and (first.isalnum() or first in "\"'“‘«(")
        return bool(_GOES_ON.search(self.words.text)) or (
            is_inside and not _ENDS_SENTENCE.search(self.words.text)
        )


def _segments(cues: Sequence[_Cue], is_webvtt: bool) -> Iterator[DocumentSegment]:
    """Yield the texts of the cues; those that are one sentence are one segment."""
    sentence: list[_Said] = []
    for cue in cues:
        for text in cue.texts:
            source = text.source
            words = read_pieces(subtitle_pieces(source), written_characters(source, is_webvtt))
            said = _Said(cue, text, words)
            goes_on = sentence and has_text(words) and sentence[-1].goes_on(said)
            if sentence and not (goes_on and len(sentence) < _MOST_CUES):
                yield _segment(sentence)
                sentence = []
            if has_text(words):
                sentence.append(said)
    if sentence:
        yield _segment(sentence)


def _segment(sentence: list[_Said]) -> DocumentSegment:
    """Return the segment of one text, or of several that are one sentence."""
    if len(sentence) == 1:
        return DocumentSegment(sentence[0].words, sentence[0].text.put)
    text = join_lines([said.words.text for said in sentence])
    written: dict[str, str] = {}
    for said in sentence:
        written |= said.words.written
    return DocumentSegment(MarkedText([], text, [], {}, [], written), partial(_put, sentence))


def _put(sentence: Sequence[_Said], translation: str) -> None:
    """Divide the translation of a sentence among its cues, by their lengths and their times."""
    lengths = [len(said.words.text) for said in sentence]
    times = [max(said.cue.end - said.cue.start, 0.1) for said in sentence]
    shares = [
        length / sum(lengths) + time / sum(times)
        for length, time in zip(lengths, times, strict=True)
    ]
    for said, part in zip(sentence, divide(translation, shares), strict=True):
        said.text.put(source_of(said.words.before) + part + source_of(said.words.after))
