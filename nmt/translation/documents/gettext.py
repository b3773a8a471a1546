"""PO and POT, the message files of GNU gettext."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from nmt.data.languages import look_up_language
from nmt.errors import DataError
from nmt.translation.documents.document import Document, DocumentSegment, ReadingOptions
from nmt.translation.documents.strings import string_segments
from nmt.translation.documents.tokens import Token, source_of

WRITTEN = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
"""how a message writes some characters"""
_CHARSET = re.compile(rb"Content-Type:[^\n]*?charset=([\w.:-]+)", re.IGNORECASE)
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_KEYWORD = re.compile(r"(msgctxt|msgid_plural|msgid|msgstr(?:\[(\d+)\])?)\s+(?=\")")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_SLAVIC = "n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2"
_PLURALS = {
    "id ja ko lo ms th vi zh": (1, "0"),
    "fa fil fr oc pt-BR ti tr uz wa": (2, "n > 1"),
    "be bs hr ru sr uk": (3, f"n%10==1 && n%100!=11 ? 0 : {_SLAVIC}"),
    "cs sk": (3, "n==1 ? 0 : n>=2 && n<=4 ? 1 : 2"),
    "pl": (3, f"n==1 ? 0 : {_SLAVIC}"),
    "lt": (3, "n%10==1 && n%100!=11 ? 0 : n%10>=2 && (n%100<10 || n%100>=20) ? 1 : 2"),
    "lv": (3, "n%10==1 && n%100!=11 ? 0 : n != 0 ? 1 : 2"),
    "ro": (3, "n==1 ? 0 : n==0 || (n%100>0 && n%100<20) ? 1 : 2"),
    "sl": (4, "n%100==1 ? 0 : n%100==2 ? 1 : n%100==3 || n%100==4 ? 2 : 3"),
    "ga": (5, "n==1 ? 0 : n==2 ? 1 : n<7 ? 2 : n<11 ? 3 : 4"),
    "ar": (
        6,
        "n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : n%100>=11 ? 4 : 5",
    ),
}
"""the rules of gettext's manual: languages, how many forms they have, and which a number takes"""
_TWO_FORMS = (2, "n != 1")
"""of all other languages"""


@dataclass
class _Entry:
    """A message with its translations."""

    flags: Token | None = None
    """the line of flags, such as "#, c-format" """
    first: Token | None = None
    """the line of its first keyword"""
    texts: dict[str, str] = field(default_factory=dict)
    """the text of each keyword, such as "msgid" and "msgstr[0]" """
    lines: dict[str, list[Token]] = field(default_factory=dict)
    """the lines of each keyword"""


def read_po(content: bytes, name: str, options: ReadingOptions) -> Document:
    """Read a PO file: its messages without a translation, or all of them.

    Raises:
        DataError: it is not in its encoding, or a line is not in the format.
    """
    text, encoding = _decode(content, name)
    tokens = [Token("text", line) for line in _LINE.findall(text)]
    entries = list(_entries(tokens, name))
    segments: list[DocumentSegment] = []
    values: list[tuple[_Entry, str, list[Token]]] = []  # tokens of each value that is translated
    count = 2
    for entry in entries:
        if entry.texts["msgid"] == "" and "msgctxt" not in entry.texts:
            count = _fill_header(entry, options.languages.target)
            continue
        plural = entry.texts.get("msgid_plural")
        keys: list[str] = ["msgstr"] if plural is None else [f"msgstr[{i}]" for i in range(count)]
        is_translated = any(value for key, value in entry.texts.items() if "msgstr" in key)
        if is_translated and not options.overwrite:
            continue
        found: list[DocumentSegment] = []
        written: list[tuple[_Entry, str, list[Token]]] = []
        for key in keys:
            is_singular = plural is None or (key == "msgstr[0]" and count > 1)
            source = entry.texts["msgid"] if is_singular else plural or ""
            value, inside = string_segments(source, WRITTEN)
            written.append((entry, key, value))
            found += inside
        if found:
            segments += found
            values += written
            _set_fuzzy(entry)

    def write() -> bytes:
        for entry in {id(entry): entry for entry, _, _ in values}.values():
            _remove_forms(entry, count)
        for entry, key, value in values:
            _write(entry, key, source_of(value))
        return source_of(tokens).encode(encoding)

    return Document(segments, write, is_of_program=True)


def _decode(content: bytes, name: str) -> tuple[str, str]:
    """Return the text of a file, and the encoding that its header declares."""
    charset = _CHARSET.search(content)
    encoding = charset[1].decode("ascii") if charset else "utf-8"
    if encoding.upper() == "CHARSET":  # of a template that nobody has filled in
        encoding = "utf-8"
    try:
        text = content.decode("utf-8-sig" if encoding.lower() == "utf-8" else encoding)
    except (LookupError, UnicodeError) as error:
        raise DataError(
            f"{name}: is no text in {encoding}, its encoding; convert it to UTF-8"
        ) from error
    return text, encoding


def _entries(tokens: list[Token], name: str) -> Iterator[_Entry]:
    """Yield the messages of a file; comments and obsolete messages stay as they are."""
    entry, key = _Entry(), ""
    for number, token in enumerate(tokens, start=1):
        line = token.source.strip()
        keyword = _KEYWORD.match(line)
        is_next = line.startswith("#") or (keyword and keyword[1] in ("msgctxt", "msgid"))
        if is_next and "msgstr" in key:
            yield entry
            entry, key = _Entry(), ""
        if line.startswith("#,"):
            entry.flags = token
        if not line or line.startswith("#"):
            continue
        if keyword:
            key = keyword[1]
            entry.texts[key], entry.lines[key] = "", []
            entry.first = entry.first or token
        strings = _STRING.findall(line)
        if not key or not strings or _STRING.sub("", line).replace(key, "").strip():
            raise DataError(
                f"{name}: line {number} is {line[:60]!r}, expected a string in double quotes, or "
                "msgid or msgstr and one; check the file with `msgfmt -c`"
            )
        entry.texts[key] += "".join(_ESCAPE.sub(_unescape, string) for string in strings)
        entry.lines[key].append(token)
    if "msgid" in entry.texts and "msgstr" in key:
        yield entry


def _unescape(found: re.Match[str]) -> str:
    octal, hexadecimal, character = found.groups()
    if octal or hexadecimal:
        return chr(int(octal, 8) if octal else int(hexadecimal, 16))
    return _ESCAPED.get(character, character)


def _fill_header(entry: _Entry, target: str) -> int:
    """Write the target language into a header, and return how many plural forms it has then."""
    lines, header = entry.lines["msgstr"], entry.texts["msgstr"]
    declared = re.search(r"^Language: *(\S*)", header, re.MULTILINE)
    rule = re.search(r"nplurals *= *(\d+)", header)
    count = int(rule[1]) if rule else 2
    if target != "und":
        tag = look_up_language(target).tag
        if not rule or not declared or look_up_language(declared[1]).tag != tag:
            known = (rule for codes, rule in _PLURALS.items() if {tag, tag[:2]} & {*codes.split()})
            count, plural = next(known, _TWO_FORMS)
            _set_header(lines, "Plural-Forms", f"nplurals={count}; plural=({plural});")
        _set_header(lines, "Language", tag.replace("-", "_"))
    for line in lines:
        line.source = line.source.replace("charset=CHARSET", "charset=UTF-8")
    if entry.flags:  # a template's header is marked
        entry.flags.source = entry.flags.source.replace("#, fuzzy", "#,", 1)
    return count


def _set_header(lines: list[Token], name: str, value: str) -> None:
    """Write a field of a header, whose lines have one field each; it is added if it is missing."""
    written = f'"{name}: {value}\\n"'
    for line in lines:
        if f'"{name}:' in line.source:
            line.source = re.sub(rf'"{name}:.*?"', lambda _: written, line.source)
            return
    lines[-1].source += written + "\n"


def _set_fuzzy(entry: _Entry) -> None:
    """Mark a message as one whose translation a person has to check."""
    if entry.flags and "fuzzy" not in entry.flags.source:
        entry.flags.source = entry.flags.source.replace("#,", "#, fuzzy,", 1)
    elif not entry.flags and entry.first:
        entry.first.source = "#, fuzzy\n" + entry.first.source


def _remove_forms(entry: _Entry, count: int) -> None:
    """Remove the plural forms that the target language does not have."""
    for key in [key for key in entry.lines if key.startswith("msgstr[")]:
        if int(key[7:-1]) >= count:
            for line in entry.lines.pop(key):
                line.source = ""


def _write(entry: _Entry, key: str, source: str) -> None:
    """Write a value, a line for each line of its text."""
    rows = re.findall(r"(?:(?!\\n)(?:\\.|[^\\]))*(?:\\n|$)", source)[:-1]
    rows = rows if len(rows) > 1 else [source]
    written = f'{key} ""\n' if len(rows) > 1 else f"{key} "
    written += "".join(f'"{row}"\n' for row in rows)
    if key in entry.lines:
        for i, token in enumerate(entry.lines[key]):
            token.source = written if i == 0 else ""
    else:  # a plural form that the file does not have
        last = next(reversed(entry.lines.values()))[0]
        last.source += written
