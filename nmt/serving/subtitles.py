"""Translates SRT files: their times and formatting stay, and each text is translated as a whole."""

import re
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from html import escape, unescape

from nmt.serving.answers import RequestError

Translate = Callable[[Sequence[str], bool], Awaitable[list[str]]]
"""translates texts, each of several sentences perhaps; the flag says whether they are HTML"""
_CUE_TIME = re.compile(r"\s*-?\d+:[\d:., ]*-->\s*-?\d+:.*")
"""00:00:01,500 --> 00:00:03,000, and what programs write in its place, as 0:01.5 --> 0:3"""
_LINE_END = re.compile(r"\r\n|\r|\n")
# the lengths are limited because each start is searched for an end
_TAG = r"</?(?:b|i|u|s|font)\b[^<>]{0,200}>"
_MARK = r"\{\\[^{}]{0,200}\}|[♪♫]"
"""what stands for itself: a command, such as {\\an8} for a cue at the top, and notes of music"""
_FORMATTING = re.compile(f"({_TAG}|{_MARK})", re.IGNORECASE)
_TAG_NAME = re.compile(r"<(\w+)")
_DASH = re.compile(rf"((?:{_TAG}|{_MARK}|\s)*)([-–—]+)", re.IGNORECASE)
"""at the start of a line: another person speaks"""
_WORD = re.compile(rf"(?:{_TAG}|{_MARK}|\S)+", re.IGNORECASE)
_START, _END = "<p>", "</p>"
"""tags around each text of a page of HTML: other tags that do not end in a text end there"""
_KEPT = re.compile(r"<(?:!--|\w+ n=)(\d+)(?:--)?>")
"""what has a number in such a page"""


@dataclass(frozen=True)
class _Cue:
    head: list[str]
    """lines that stay: blank ones, the number, the times"""
    lines: list[str]
    """lines of text"""

    @property
    def texts(self) -> list[list[str]]:
        """The lines of each person who speaks: one begins with a dash."""
        texts: list[list[str]] = []
        for line in self.lines:
            if not texts or _DASH.match(line):
                texts.append([])
            texts[-1].append(line)
        return texts


async def translate_subtitles(text: str, translate: Translate) -> str:
    """Translate the cues of an SRT file; numbers, times and formatting stay.

    The lines of a cue are one text, because a sentence does not end where a line does; but a line
    that begins with a dash begins another one. A text has at most as many lines as before. All
    lines end as the first one does.

    Raises:
        RequestError: there is no cue.
    """
    first_end = _LINE_END.search(text)
    end = first_end[0] if first_end else "\n"
    cues = _cues(_LINE_END.split(text))
    texts = [" ".join(lines) for cue in cues for lines in cue.texts]
    plain = [each for each in texts if not _is_formatted(each)]
    formatted = [each for each in texts if _is_formatted(each)]
    found_plain = deque(await translate(plain, False) if plain else [])
    found_formatted = deque(await _translate_formatted(formatted, translate) if formatted else [])
    rows: list[str] = []
    for cue in cues:
        rows += cue.head
        for lines in cue.texts:
            found = found_formatted if _is_formatted(" ".join(lines)) else found_plain
            rows += _wrap(found.popleft(), len(lines))
    return end.join(rows)


def subtitle_text(text: str) -> str:
    """Return the text of all cues of an SRT file without formatting.

    Raises:
        RequestError: there is no cue.
    """
    lines = [line for cue in _cues(_LINE_END.split(text)) for line in cue.lines]
    return _FORMATTING.sub("", "\n".join(lines))


def _cues(rows: Sequence[str]) -> list[_Cue]:
    """Cut the lines of an SRT file after each text, which a blank line or the next times end.

    Raises:
        RequestError: no line has times.
    """
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
    is_begun = False  # before the first times there is no text
    for i, row in enumerate(rows):
        is_number = row.strip().isdigit() and has_times[i + 1 : i + 2] == [True]
        is_begun = is_begun or has_times[i]
        is_text = is_begun and not (has_times[i] or is_number or not row.strip())
        if lines and not is_text:
            cues.append(_Cue(head, lines))
            head, lines = [], []
        (lines if is_text else head).append(row)
    return [*cues, _Cue(head, lines)]


def _is_formatted(text: str) -> bool:
    return bool(_FORMATTING.search(text) or _DASH.match(text))


async def _translate_formatted(texts: Sequence[str], translate: Translate) -> list[str]:
    """Translate texts with formatting as one page of HTML, where it is tags and comments.

    What stands at the start or the end of a text stays there; inside, it goes with its words.
    """
    kept: list[str] = []  # what has a number in the page

    def keep(part: str) -> str:
        if part.startswith("</"):
            return part
        kept.append(part)
        name = _TAG_NAME.match(part)
        return f"<{name[1]} n={len(kept) - 1}>" if name else f"<!--{len(kept) - 1}-->"

    def mark_up(text: str) -> str:
        parts = _FORMATTING.split(text)  # alternately text and formatting
        return "".join(keep(p) if i % 2 else escape(p, quote=False) for i, p in enumerate(parts))

    def html_of(text: str) -> str:
        dash = _DASH.match(text)
        if not dash:
            return mark_up(text)
        return mark_up(dash[1]) + keep(dash[2]) + mark_up(text[dash.end() :])

    def text_of(part: str) -> str:
        parts = _KEPT.split(part)  # alternately text and a number
        return "".join(kept[int(p)] if i % 2 else unescape(p) for i, p in enumerate(parts))

    paragraphs = [_START + html_of(text) + _END for text in texts]
    [page] = await translate(["".join(paragraphs)], True)
    parts = page.removeprefix(_START).removesuffix(_END).split(_END + _START)
    return [text_of(part) for part in parts]


def _wrap(text: str, count: int) -> list[str]:
    """Divide a text into at most `count` lines of about equal length, not counting formatting."""
    lines: list[str] = []
    words = _WORD.findall(text)
    lengths = [len(_FORMATTING.sub("", word)) + 1 for word in words]
    start, left = 0, sum(lengths)  # of the words that are in no line yet
    for rest in range(count, 0, -1):
        room = left / rest
        end, length = start, 0
        while end < len(words) and (end == start or rest == 1 or length + lengths[end] / 2 <= room):
            length += lengths[end]
            end += 1
        lines.append(" ".join(words[start:end]))
        start, left = end, left - length
    return [line for line in lines if line]
