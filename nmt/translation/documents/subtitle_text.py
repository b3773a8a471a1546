"""The text of subtitles: its formatting and entities, and how it is divided into lines."""

import re
from collections.abc import Iterator, Sequence
from html import unescape
from itertools import islice
from typing import Literal

from nmt.translation.documents.marked_text import Piece
from nmt.translation.documents.strings import tag_partners
from nmt.translation.documents.tokens import Token

BREAK = r"\n|\||(?<!:)\\[Nn]|\[br\]|<br\s*/?>"
"""what ends a line inside a cue: also the marks of MicroDVD (`|`), SSA (`\\N`, but not that of a
path such as C:\\new), YouTube and HTML"""
TAG = r"</?[a-z][^<>]*>"
"""<i>, <font color="red">, and those of WebVTT, such as <v Tom> and <c.yellow>"""
MARK = (
    r"<rt\b[^<>]*>[^<>]*(?:</rt\s*>)?"  # how a word is pronounced, above it
    r"|<[!?][^<>]*>|<\d[\d:.,]*>"  # comments; times at which a part of a cue appears
    r"|\{[^{}]*\}|[♪♫]"
)
"""what stands for itself: also commands, such as {\\an8} for the top, and notes of music"""
_FORMATTING = re.compile(f"({MARK}|{TAG})", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:#\d{1,7}|#x[\da-f]{1,6}|[a-z][a-z\d]{1,31});|\\h", re.IGNORECASE)
"""a character that WebVTT writes as HTML does; `\\h` is a space of SSA that does not break"""
_DIRECTION_MARKS = "\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
DASH = re.compile(rf"((?:{MARK}|{TAG}|\s)*+)([-–—]+|>>+)", re.IGNORECASE)
"""at the start of a line: another person speaks (`>>` in subtitles of television); `*+` remembers
no place to come back to, of which a million take hundreds of megabytes"""
_WORD = re.compile(rf"(?:{MARK}|{TAG}|\S)++", re.IGNORECASE)
_CHUNK = re.compile(r"(?P<space>\s+)|\S+")
_IDEOGRAPHS = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""Han, Hiragana and Katakana, whose words have no spaces between them"""
_WIDE = re.compile(rf"[{_IDEOGRAPHS}\u3000-\u303f\uff00-\uffef]")
_NOT_AT_END = r"「『（【〈《〔［｛“‘(\["
_NOT_AT_START = (
    r"、。，．・：；！？」』）】〉》〕］｝”’…ー々ゝゞぁぃぅぇぉっゃゅょァィゥェォッャュョ,.:;!?)\]"
)
_IDEOGRAPHIC_BREAK = re.compile(
    rf"(?<![{_NOT_AT_END}])(?=[{_IDEOGRAPHS}{_NOT_AT_END}])(?![{_NOT_AT_START}])"
    rf"|(?<=[{_IDEOGRAPHS}、。，！？」』）])(?![{_NOT_AT_START}])"
)
"""between two characters where a line of Chinese or Japanese may end"""
_CLAUSE_END = re.compile(r"[.,;:!?…。、，！？؟،।][\"'”’»)\]]*$")
_EARLY = 0.7
"""a line ends at a clause's end that is at least at this share of its length"""


def join_lines(lines: Sequence[str]) -> str:
    """Return lines as one text, because a sentence does not end where a line does."""
    text = ""
    for line in lines:
        is_wide = text and _WIDE.match(text[-1]) and _WIDE.match(line)
        text += line if not text or is_wide else " " + line
    return text


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


def without_formatting(text: str) -> str:
    """Return a text without its formatting, such as <i>."""
    return "".join(islice(_parts(text), 0, None, 2))


def written_characters(text: str, is_webvtt: bool = False) -> dict[str, str]:
    """Return the characters that a text writes as entities, each with the first such entity.

    In WebVTT, `<` and `&` are always written so, unless the text has them as they are.
    """
    if not is_webvtt and "&" not in text and "\\" not in text:
        return {}
    plain = without_formatting(text)
    found = _ENTITY.findall(plain)
    entities = {_character(entity): entity for entity in reversed(found)}
    written = {char: entity for char, entity in entities.items() if len(char) == 1}
    if is_webvtt:
        rest = _ENTITY.sub("", plain)
        usual = {"&": "&amp;", "<": "&lt;"}
        written |= {c: usual[c] for c in usual if c not in rest and c not in written}
    return written


def subtitle_pieces(text: str) -> Iterator[Piece]:
    """Yield the pieces of a text: words, entities, formatting, and the dash of a speaker."""
    dash = DASH.match(text)
    before, mark = text[: dash.start(2)] if dash else "", dash[2] if dash else ""
    rest = text[len(before) + len(mark) :]
    marks = [
        *((part, i % 2 == 1) for i, part in enumerate(_parts(before)) if part),
        (mark, True),
        *((part, i % 2 == 1) for i, part in enumerate(_parts(rest)) if part),
    ]
    # parts, and whether they are marks
    partners = tag_partners([part if is_mark else "" for part, is_mark in marks])
    alone = ""  # marks without a partner that follow each other
    for i, (part, is_mark) in enumerate(marks):
        if is_mark and i not in partners:
            alone += part
            continue
        if alone:
            yield Piece("tag", [Token("text", alone)])
            alone = ""
        if is_mark:
            kind: Literal["open", "close"] = "open" if partners[i] > i else "close"
            yield Piece(kind, [Token("text", part)], element=min(i, partners[i]))
        else:
            yield from _plain_pieces(part)
    if alone:
        yield Piece("tag", [Token("text", alone)])


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


def divide(text: str, shares: Sequence[float]) -> list[str]:
    """Divide a text into as many parts as there are shares, between words.

    The lengths of the parts, formatting not counted, are about in proportion to the shares, of
    which each is positive. A part rather ends after a comma or a full stop that is near. Only the
    last parts are empty, if the text has too few words.
    """
    words = _breakable_words(text)
    lengths = [len(without_formatting(word)) for word in words]
    parts: list[str] = []
    start, left, left_shares = 0, sum(lengths), sum(shares)
    for i, share in enumerate(shares):
        if i == len(shares) - 1:
            end = len(words)
        else:
            most = max(start + 1, len(words) - (len(shares) - i - 1))  # others need a word each
            room = left * share / left_shares
            end = _end_of_part(words, lengths, (start, min(most, len(words))), room)
        parts.append("".join(words[start:end]).strip())
        left, left_shares, start = left - sum(lengths[start:end]), left_shares - share, end
    return parts


def _end_of_part(
    words: Sequence[str], lengths: Sequence[int], within: tuple[int, int], room: float
) -> int:
    """Return where a part of about `room` characters ends that begins with the word `within[0]`."""
    start, last = within
    end, length, clause = start, 0, 0
    while end < last and (end == start or length + lengths[end] / 2 <= room):
        length += lengths[end]
        end += 1
        if length >= _EARLY * room and _CLAUSE_END.search(words[end - 1].strip()):
            clause = end
    if not clause and end < last and length + lengths[end] <= room / _EARLY:
        clause = end + 1 if _CLAUSE_END.search(words[end].strip()) else 0
    return clause or end


def _breakable_words(text: str) -> list[str]:
    """Return the parts of a text behind which a line may end, with the spaces behind them."""
    words: list[str] = []
    for found in _WORD.finditer(text):
        word = found[0]
        pieces = [word]
        if _WIDE.search(word) and not _FORMATTING.search(word):
            pieces = [piece for piece in _IDEOGRAPHIC_BREAK.split(word) if piece]
        pieces[-1] += " "
        words += pieces
    if words:
        words[-1] = words[-1].rstrip()
    return words
