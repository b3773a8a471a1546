"""A file of data, such as JSON: the texts among its values are translated, all else stays."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from nmt.data.languages import look_up_language
from nmt.data.text.icu_messages import find_messages
from nmt.errors import DataError, print_warning
from nmt.translation.documents.document import (
    Document,
    DocumentSegment,
    LanguagePair,
    has_text,
    replace_source,
)
from nmt.translation.documents.marked_text import MarkedText
from nmt.translation.documents.strings import string_segments
from nmt.translation.documents.tokens import UNWRITABLE, Token, source_of
from nmt.translation.spans import Edit, Span, apply_edits, overlap

MAX_DEPTH = 256
"""of values inside each other"""
_CONTROL = re.compile(
    f"[{''.join(map(re.escape, map(chr, UNWRITABLE)))}\ud800-\udfff\u0085\u2028\u2029]"
)
"""characters that a translation would lose, and halves of a surrogate pair"""


@dataclass(frozen=True, slots=True)
class DataValue:
    """A text in a file of data."""

    path: tuple[str, ...]
    """the keys on the way to it; the elements of a list have those of the list"""
    span: Span
    """where the file has it, with its quotation marks"""
    text: str
    write: Callable[[str], str]
    """returns a translation as the file writes it"""


@dataclass(frozen=True)
class DataFile:
    """The text of a file of data, and what encodes its translation."""

    name: str
    """what messages call it"""
    text: str
    encode: Callable[[str], bytes]

    def error(self, at: int, problem: str) -> DataError:
        """Return an error that says where in the file it is."""
        line = self.text.count("\n", 0, at) + 1
        column = at - self.text.rfind("\n", 0, at)
        return DataError(f"{self.name}: line {line}, column {column}: {problem}")


def data_document(
    file: DataFile,
    values: Iterable[DataValue],
    edits: Sequence[Edit] = (),
    is_of_program: bool = True,
) -> Document:
    """Return a document of some values, in order; `edits` are changes that need no translation.

    A value whose translation is the same stays as the file writes it. One with control characters
    stays, with a warning, because a translation would lose them. `is_of_program` is that of
    `Document`.
    """
    segments: list[DocumentSegment] = []
    places: list[tuple[DataValue, list[Token]]] = []
    with_control: list[DataValue] = []
    for value in values:
        if _CONTROL.search(value.text):
            with_control.append(value)
            continue
        tokens, inside = _segments(_with_line_feeds(value.text))
        if inside:
            segments += inside
            places.append((value, tokens))
    if with_control:
        at = file.error(with_control[0].span[0], "the first one")
        print_warning(
            f"{len(with_control)} of the texts have control characters, which a translation would "
            f"lose, and stay as they are; {at}"
        )

    def write() -> bytes:
        done = list(edits)
        for value, tokens in places:
            new = source_of(tokens)
            if new != _with_line_feeds(value.text):
                end = "\r\n" if "\r\n" in value.text else "\n"
                done.append(Edit(value.span, value.write(new.replace("\n", end))))
        return file.encode(apply_edits(file.text, sorted(done)))

    return Document(segments, write, is_of_program)


def _segments(text: str) -> tuple[list[Token], list[DocumentSegment]]:
    """Return the tokens and segments of a text.

    The tags and line breaks in an ICU message belong to the texts of its branches. So a text with
    such a message is cut at the other line breaks only.
    """
    messages = [message.span for message in find_messages(text)]
    if not any(re.search("[<\n]", text[slice(*span)]) for span in messages):
        return string_segments(text, {})
    tokens: list[Token] = []
    segments: list[DocumentSegment] = []
    at = 0
    for found in [*re.finditer(r"\s*\n\s*|\s*\Z", text)]:
        if found.start() < at or any(overlap(found.span(), span) for span in messages):
            continue
        inside = text[at : found.start()]
        part = MarkedText([], inside, [], {}, [], {})
        tokens += [Token("text", inside), Token("text", found[0])]
        if has_text(part):
            segments.append(DocumentSegment(part, partial(replace_source, tokens[-2:-1])))
        at = found.end()
    return tokens, segments


def _with_line_feeds(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def language_key(key: str, languages: LanguagePair) -> str | None:
    """Return what a key that is the code of the source language becomes; None: it is no such code.

    `en` and `en-GB` both become `de` for a model from English to German.
    """
    source, target = look_up_language(languages.source), languages.target_tag
    if "und" in (source.code, languages.target) or len(key) > len("zh_Hant_TW"):
        return None
    found = look_up_language(key)
    if found.codes and source.base in (found.base, found.code):
        return target.replace("-", "_") if "_" in key else target
    return None
