"""The messages of a PO file of GNU gettext, read line by line."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from nmt.errors import DataError

CHARSET = re.compile(rb"Content-Type:[^\n]*?charset=([\w.:-]+)", re.IGNORECASE)
"""the encoding that a header declares; CHARSET in a template that nobody has filled in"""
ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_KEYWORD = re.compile(r"(msgctxt|msgid_plural|msgid|msgstr(?:\[(\d{1,3})\])?)\s*(?=\")")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*+)"')
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|(.))", re.DOTALL)
_SPACE = " \t\r\n\f\v"


@dataclass
class PoMessage:
    """A message with its translations; numbers of lines count from 0."""

    flags: list[int] = field(default_factory=list)
    """the lines of flags, such as "#, c-format" """
    flag_names: set[str] = field(default_factory=set)
    first: int | None = None
    """the line of its first keyword, or of the message that it was before"""
    texts: dict[str, str] = field(default_factory=dict)
    """the text of each keyword, such as "msgid" and "msgstr[0]" """
    lines: dict[str, list[int]] = field(default_factory=dict)
    """the lines of each keyword"""

    @property
    def is_header(self) -> bool:
        """Whether it has the fields of the file in place of a translation."""
        return self.texts["msgid"] == "" and "msgctxt" not in self.texts

    @property
    def is_fuzzy(self) -> bool:
        """Whether a flag says that a person has to check the translation."""
        return "fuzzy" in self.flag_names

    def fields(self) -> Mapping[str, str]:
        """Return the fields of a header, with names in small letters."""
        pairs = (line.partition(":") for line in self.texts.get("msgstr", "").split("\n"))
        return {name.strip().lower(): value.strip() for name, _, value in pairs}

    def read_comment(self, line: str, number: int) -> None:
        """Take from a comment before a message what it says about that."""
        if line.startswith("#~"):  # the flags before it are those of an obsolete message
            self.flags, self.flag_names, self.first = [], set(), None
        elif line.startswith("#,"):
            self.flags.append(number)
            self.flag_names |= {*re.split(r"[,\s]+", line[2:].strip())}
        elif line.startswith("#|"):
            self.first = number if self.first is None else self.first


def read_messages(lines: Iterable[str], name: str) -> Iterator[PoMessage]:
    """Yield the messages of a file, without comments and obsolete ones.

    Raises:
        DataError: a line is not in the format; messages call the file `name`.
    """
    message, key, number, line = PoMessage(), "", 0, ""
    for number, whole in enumerate(lines):
        line = whole.strip(_SPACE)
        keyword = _KEYWORD.match(line)
        is_next = line.startswith("#") or (keyword and keyword[1] in ("msgctxt", "msgid"))
        if is_next and "msgstr" in key:
            yield message
            message, key = PoMessage(), ""
        if not line or line.startswith("#"):
            message.read_comment(line, number)
            continue
        if keyword:
            key = keyword[1]
            if not _may_follow(key, message.texts):
                expected = "a msgid, its msgid_plural if it has one, and then a msgstr of each form"
                raise _error(name, number, line, expected)
            message.texts[key], message.lines[key] = "", []
            message.first = number if message.first is None else message.first
        strings = _STRING.findall(line)
        if not key or not strings or _STRING.sub("", line).replace(key, "").strip():
            expected = "a string in double quotes, or msgid or msgstr and one"
            raise _error(name, number, line, expected)
        message.texts[key] += "".join(_ESCAPE.sub(_unescape, string) for string in strings)
        message.lines[key].append(number)
    if "msgstr" in key:
        yield message
    elif key:
        raise _error(name, number, line, "a msgstr after it")


def _error(name: str, number: int, line: str, expected: str) -> DataError:
    return DataError(
        f"{name}: line {number + 1} is {line[:60]!r}, expected {expected}; check the file with "
        "`msgfmt -c`"
    )


def _may_follow(key: str, texts: dict[str, str]) -> bool:
    """Return whether a keyword may come after those of a message."""
    last = next(reversed(texts), "")
    if key in texts:
        return False
    if key == "msgid":
        return last in ("", "msgctxt")
    if key in ("msgid_plural", "msgstr"):
        return last == "msgid"
    if key.startswith("msgstr["):
        return last == "msgid_plural" or last.startswith("msgstr[")
    return not texts


def _unescape(found: re.Match[str]) -> str:
    octal, hexadecimal, character = found.groups()
    if octal or hexadecimal:
        return chr(int(octal, 8) if octal else int(hexadecimal, 16))
    return ESCAPED.get(character, character)
