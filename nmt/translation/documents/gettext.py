"""PO and POT, the message files of GNU gettext."""

import codecs
import re
from collections.abc import Sequence

from nmt.data.languages import look_up_language
from nmt.data.text.po_messages import ESCAPED, PoMessage, read_messages
from nmt.errors import DataError, print_warning
from nmt.translation.documents.declared_languages import (
    check_declared_source,
    must_declare_target,
)
from nmt.translation.documents.document import (
    Document,
    DocumentSegment,
    ReadingOptions,
    replace_source,
)
from nmt.translation.documents.plural_forms import PluralForms, declared_forms, plural_forms
from nmt.translation.documents.strings import StringSyntax, string_segments
from nmt.translation.documents.tokens import Token, source_of

_WRITTEN = {ord(sign): f"\\{c}" for c, sign in (ESCAPED | {"\\": "\\", '"': '"'}).items()}
"""how a message writes some characters"""
_CHARSET = re.compile(
    rb'(?:"|\\n)Content-Type:(?:[^\n"\\]|"\s{0,9}"){0,300}?charset=([\w.:-]+)', re.IGNORECASE
)
_END = re.compile(r"\r\n|\n|\r")
_LINE = re.compile(rf"[^\r\n]*(?:{_END.pattern})")
_JOIN = r'"\s{0,9}"'  # between the two strings of a text
_PERCENT = (
    r"%%|%(?:\d+\$|\(\w+\)|<\w+>)?[-+ #0'I]*(?:\*(?:\d+\$)?|\d+)?(?:\.(?:\*(?:\d+\$)?|\d+)?)?"
    r"(?:hh|h|ll|l|L|q|j|z|t|I64|I32)?(?:[a-zA-Z@]|<PRI\w+>)"
)
_BRACES = r"\{\{|\}\}|\{[^{}]*\}"
QT_PLACEHOLDERS = r"%%|%L?\d{1,2}|%L?n"
_SYNTAXES = {
    "c gcc-internal objc python php perl ruby lua awk tcl object-pascal": _PERCENT,
    "python-brace java csharp c++ rust perl-brace": _BRACES,
    "qt qt-plural kde": QT_PLACEHOLDERS,
}
_PLACEHOLDERS = {
    f"{name}-format": pattern for names, pattern in _SYNTAXES.items() for name in names.split()
}
"""the placeholders of a message, by its flag"""


class _Entry:
    """A message, and the tokens of its lines."""

    def __init__(self, message: PoMessage, lines: Sequence[Token]) -> None:
        """`lines` are those of the whole file."""
        self.message, self.texts = message, message.texts
        self.flags = [lines[i] for i in message.flags]
        """the lines of flags, such as "#, c-format" """
        self.first = None if message.first is None else lines[message.first]
        self.lines = {key: [lines[i] for i in numbers] for key, numbers in message.lines.items()}
        """the lines of each keyword"""

    def has_translation(self) -> bool:
        """Return whether one of its translations has a text."""
        return any(text for key, text in self.texts.items() if "msgstr" in key)

    def translation_lines(self) -> list[Token]:
        """Return the lines of all its translations."""
        return [line for key, lines in self.lines.items() if "msgstr" in key for line in lines]


def read_po(content: bytes, name: str, options: ReadingOptions) -> Document:
    """Read a PO file: its messages without a translation, or all of them.

    Raises:
        DataError: it is not in its encoding, a line is not in the format, or it is in other
            languages than those of the options.
    """
    text, encoding = _decode(content, name)
    found_end = _END.search(text)
    end = found_end[0] if found_end else "\n"
    missing = "" if text.endswith(("\r", "\n")) else end  # written after the last line until then
    tokens = [Token("text", line) for line in _LINE.findall(text + missing)]
    messages = read_messages((token.source for token in tokens), name)
    entries = [_Entry(message, tokens) for message in messages]
    header = next((entry for entry in entries if entry.message.is_header), None)
    language = ""
    if header:
        language = _check_languages(header, entries, name, options)
    elif entries:
        header = _add_header(tokens, end)
    forms = _fill_header(header, options.languages.target, end) if header else plural_forms("en")
    segments: list[DocumentSegment] = []
    written: list[tuple[_Entry, dict[str, list[Token]]]] = []
    for entry in entries:
        if entry.message.is_header:
            continue
        values, found = _read_message(entry, forms, options.overwrite)
        if found:
            segments += found
            written.append((entry, values))
            _set_fuzzy(entry, end)

    def write() -> bytes:
        for entry, values in written:
            _write(entry, values, forms.count, end)
        return _encode(tokens, missing, header, encoding, name)

    return Document(segments, write, True, language)


def _check_languages(
    header: _Entry, entries: Sequence[_Entry], name: str, options: ReadingOptions
) -> str:
    """Compare the languages of a header with those of the options; return the source language.

    Raises:
        DataError: the source language is another one, or a translation that stays is in another.
    """
    fields, key = header.message.fields(), "X-Source-Language"  # as Poedit calls it
    language = check_declared_source(fields.get(key.lower()), key, name, options)
    translated = [
        entry for entry in entries if not entry.message.is_header and entry.has_translation()
    ]
    kept = 0 if options.overwrite else len(translated)
    must_declare_target(fields.get("language"), "Language", kept, name, options)
    return language


def _read_message(
    entry: _Entry, forms: PluralForms, overwrite: bool
) -> tuple[dict[str, list[Token]], list[DocumentSegment]]:
    """Return the tokens of each translation that a message lacks, and their segments."""
    singular, plural = entry.texts["msgid"], entry.texts.get("msgid_plural")
    flags = entry.message.flag_names
    kept = next((pattern for flag, pattern in _PLACEHOLDERS.items() if flag in flags), "")
    sources = {"msgstr": singular}
    if plural is not None:
        sources = {f"msgstr[{i}]": plural for i in range(forms.count)}
        # a form of 1, 21 and 31 needs the placeholder that "one file" does not have
        placeholders = [
            re.findall(kept or rf"{_PERCENT}|{_BRACES}", text) for text in (singular, plural)
        ]
        if forms.count > 1 and (forms.is_singular_exact or placeholders[0] == placeholders[1]):
            sources[f"msgstr[{forms.singular}]"] = singular
    values: dict[str, list[Token]] = {}
    segments: list[DocumentSegment] = []
    for key, source in sources.items():
        if overwrite or not entry.texts.get(key):
            values[key], found = string_segments(source, StringSyntax(kept))
            segments += found
    return values, segments


def _decode(content: bytes, name: str) -> tuple[str, str]:
    """Return the text of a file, and the encoding that its header declares."""
    charset = _CHARSET.search(content)
    encoding = charset[1].decode("ascii") if charset else "utf-8"
    if encoding.upper() == "CHARSET":  # of a template that nobody has filled in
        encoding = "utf-8"
    if content.startswith(codecs.BOM_UTF8):
        encoding = "utf-8-sig"
    try:
        return content.decode(encoding), encoding
    except (LookupError, UnicodeError) as error:
        raise DataError(
            f"{name}: is no text in {encoding}, its encoding; convert it to UTF-8"
        ) from error


def _encode(
    tokens: Sequence[Token], end: str, header: _Entry | None, encoding: str, name: str
) -> bytes:
    """Return a file without `end`, in its encoding, or in UTF-8 if that lacks a character."""
    try:
        return source_of(tokens).removesuffix(end).encode(encoding)
    except UnicodeEncodeError as error:
        print_warning(
            f"{name}: its encoding {encoding} lacks characters of the translation, such as "
            f"{error.object[error.start]!r}; it is written in UTF-8, as its header says now"
        )
    for line in header.translation_lines() if header else ():
        line.source = re.sub(r"(charset=)[\w.:-]+", r"\1UTF-8", line.source)
    return source_of(tokens).removesuffix(end).encode()


def _add_header(tokens: list[Token], end: str) -> _Entry:
    """Put a header before the first line of a file, and return it."""
    text = 'msgstr ""\n"MIME-Version: 1.0\\n"\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
    text += '"Content-Transfer-Encoding: 8bit\\n"\n'
    lines = [Token("text", line.replace("\n", end)) for line in _LINE.findall(text)]
    tokens[:0] = [Token("text", f'msgid ""{end}'), *lines, Token("text", end)]
    numbers = {"msgstr": list(range(len(lines)))}
    return _Entry(PoMessage(texts={"msgid": "", "msgstr": ""}, lines=numbers), lines)


def _fill_header(entry: _Entry, target: str, end: str) -> PluralForms:
    """Write the target language into a header, and return its plural forms.

    A file keeps its country and its plural forms if it is in the target language already.
    """
    lines, fields = entry.translation_lines(), entry.message.fields()
    forms = declared_forms(fields.get("plural-forms", ""))
    if target != "und":
        tag = look_up_language(target).tag
        declared = fields.get("language", "")
        if _is_same_language(declared, target):
            tag = declared
        else:
            tag = tag.replace("-", "_")
            _set_field(lines, "Language", tag, end)
            forms = None
        if forms is None:
            forms = plural_forms(tag.partition("@")[0])
            rule = f"nplurals={forms.count}; plural=({forms.rule});"
            _set_field(lines, "Plural-Forms", rule, end)
    for line in lines:
        line.source = line.source.replace("charset=CHARSET", "charset=UTF-8")
    if "charset=" not in source_of(lines):
        _set_field(lines, "Content-Type", "text/plain; charset=UTF-8", end)
    for flags in entry.flags:  # a template's header is marked
        others = re.sub(r",\s*fuzzy\b", "", flags.source)
        flags.source = others if "," in others else ""
    return forms or plural_forms("en")


def _is_same_language(declared: str, target: str) -> bool:
    """Return whether a header declares the target language, perhaps with a country."""
    code, _, modifier = declared.partition("@")
    modifier = {"latin": "_Latn", "cyrillic": "_Cyrl"}.get(modifier, "")
    found, wanted = look_up_language(code + modifier), look_up_language(target)
    names_script = any(len(part) == 4 for part in wanted.tag.split("-"))
    return found.base == wanted.base and (not names_script or found.script == wanted.script)


def _set_field(lines: list[Token], name: str, value: str, end: str) -> None:
    """Write a field of a header, which may have several lines; it is added if it is missing."""
    source = source_of(lines)
    pattern = rf'("|\\n){name}:(?:{_JOIN}|[^"\\]|\\[^n])*+(\\n)?'
    changed, count = re.subn(
        pattern, lambda found: f"{found[1]}{name}: {value}\\n", source, count=1, flags=re.IGNORECASE
    )
    if not count:
        changed = source.rstrip()
        if not changed.endswith(('\\n"', '""')):  # the last field has no end
            changed = changed[:-1] + '\\n"'
        changed += f'{end}"{name}: {value}\\n"{end}'
    replace_source(lines, changed)


def _set_fuzzy(entry: _Entry, end: str) -> None:
    """Mark a message as one whose translation a person has to check."""
    if "fuzzy" in entry.message.flag_names:
        return
    if entry.flags:
        entry.flags[0].source = entry.flags[0].source.replace("#,", "#, fuzzy,", 1)
    elif entry.first:
        entry.first.source = f"#, fuzzy{end}" + entry.first.source


def _write(entry: _Entry, values: dict[str, list[Token]], count: int, end: str) -> None:
    """Write the translations of a message: new ones, and those that it had in these forms."""
    is_plural = "msgid_plural" in entry.texts
    source = ""
    for key in [f"msgstr[{i}]" for i in range(count)] if is_plural else ["msgstr"]:
        if key in values:
            source += _written(key, source_of(values[key]), end)
        else:
            source += source_of(entry.lines[key])
    replace_source(entry.translation_lines(), source)


def _written(key: str, text: str, end: str) -> str:
    """Return a value as a file writes it, a line for each line of its text."""
    rows = re.findall(r"[^\n]*\n|[^\n]+", text) or [""]
    written = f'{key} ""{end}' if len(rows) > 1 else f"{key} "
    return written + "".join(f'"{row.translate(_WRITTEN)}"{end}' for row in rows)
