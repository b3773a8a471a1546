"""A file of keys and values, such as JSON or properties: texts are translated, all else stays."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from nmt.data.languages import look_up_language
from nmt.errors import print_warning
from nmt.translation.documents.document import (
    Document,
    DocumentSegment,
    LanguagePair,
)
from nmt.translation.documents.encodings import TextFile
from nmt.translation.documents.strings import USUAL_SYNTAX, StringSyntax, string_segments
from nmt.translation.documents.tokens import UNWRITABLE, Token, source_of
from nmt.translation.spans import Edit, Span, apply_edits

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
    """what `write` replaces"""
    text: str
    write: Callable[[str], str]
    """returns a translation as the file writes it"""
    syntax: StringSyntax = USUAL_SYNTAX


def data_document(
    file: TextFile,
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
        tokens, inside = string_segments(value.text, value.syntax)
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
            if new != value.text:
                done.append(Edit(value.span, value.write(new)))
        return file.encode(apply_edits(file.text, sorted(done)))

    return Document(segments, write, is_of_program)


def join_surrogates(text: str) -> str:
    """Return a text in which two escapes of a character beyond U+FFFF have become that one."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


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
