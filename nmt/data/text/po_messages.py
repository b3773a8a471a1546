"""The messages of a PO file of GNU gettext, read line by line."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from nmt.errors import DataError

CHARSET = re.compile(rb"Content-Type:[^\n]*?charset=([\w.:-]+)", re.IGNORECASE)
"""the encoding that a header declares; CHARSET in a template that nobody has filled in"""
_KEYWORD = re.compile(r"(msgctxt|msgid_plural|msgid|msgstr(?:\[(\d+)\])?)\s+(?=\")")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


@dataclass
class PoMessage:
    """A message with its translations; numbers of lines count from 0."""

    flags: int | None = None
    """the line of flags"""
    is_fuzzy: bool = False
    """whether a flag says that a person has to check the translation"""
    first: int | None = None
    """the line of its first keyword"""
    texts: dict[str, str] = field(default_factory=dict)
    """the text of each keyword, such as "msgid" and "msgstr[0]" """
    lines: dict[str, list[int]] = field(default_factory=dict)
    """the lines of each keyword"""

    @property
    def is_header(self) -> bool:
        """Whether it has the fields of the file in place of a translation."""
        texts = self.texts
        return texts.get("msgid") == "" and "msgstr" in texts and "msgctxt" not in texts


def read_messages(lines: Iterable[str], name: str) -> Iterator[PoMessage]:
    """Yield the messages of a file, without comments and obsolete ones.

    Raises:
        DataError: a line is not in the format; messages call the file `name`.
    """
    message, key = PoMessage(), ""
    for number, whole in enumerate(lines):
        line = whole.strip()
        keyword = _KEYWORD.match(line)
        is_next = line.startswith("#") or (keyword and keyword[1] in ("msgctxt", "msgid"))
        if is_next and "msgstr" in key:
            yield message
            message, key = PoMessage(), ""
        if line.startswith("#,"):
            message.flags = number
            message.is_fuzzy = "fuzzy" in re.split(r"[,\s]+", line)
        if not line or line.startswith("#"):
            continue
        if keyword:
            key = keyword[1]
            if "msgstr" in key and "msgid" not in message.texts:
                raise DataError(
                    f"{name}: line {number + 1} has a msgstr, expected its msgid before it"
                )
            message.texts[key], message.lines[key] = "", []
            message.first = number if message.first is None else message.first
        strings = _STRING.findall(line)
        if not key or not strings or _STRING.sub("", line).replace(key, "").strip():
            raise DataError(
                f"{name}: line {number + 1} is {line[:60]!r}, expected a string in double quotes, "
                "or msgid or msgstr and one; check the file with `msgfmt -c`"
            )
        message.texts[key] += "".join(_ESCAPE.sub(_unescape, string) for string in strings)
        message.lines[key].append(number)
    if "msgid" in message.texts and "msgstr" in key:
        yield message


def _unescape(found: re.Match[str]) -> str:
    octal, hexadecimal, character = found.groups()
    if octal or hexadecimal:
        return chr(int(octal, 8) if octal else int(hexadecimal, 16))
    return _ESCAPED.get(character, character)
