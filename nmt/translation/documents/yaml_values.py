"""YAML: the scalars that are texts, at their places; comments, anchors and all else stay."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import yaml

from nmt.errors import DataError
from nmt.translation.documents.chosen_values import ChosenValues
from nmt.translation.documents.data_values import (
    MAX_DEPTH,
    DataValue,
    data_document,
    language_key,
)
from nmt.translation.documents.document import Document, LanguagePair, ReadingOptions
from nmt.translation.documents.encodings import TextFile
from nmt.translation.documents.yaml_scalars import TEXT_TAG, ScalarSource, is_plain_text
from nmt.translation.spans import Edit, Span

_Parser = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""the one in C is twenty times as fast, and is missing where PyYAML was built without it"""
_PROPERTIES = re.compile(r"(?:(?:[&!]\S*|#[^\n]*)\s+)*")
"""an anchor and a tag before a scalar"""


@dataclass(frozen=True, slots=True)
class _Scalar:
    """A scalar of a file, key or value."""

    path: tuple[str, ...]
    """the keys on the way to it; that of a key ends with itself"""
    span: Span
    text: str
    is_key: bool
    is_text: bool
    """whether it is a string, and no number, date or such"""
    in_flow: bool
    """whether it is between brackets or braces"""


@dataclass
class _Collection:
    """A mapping or a list that is not closed yet."""

    is_mapping: bool
    in_flow: bool
    is_key: bool
    """whether it is a key itself, or inside one"""
    path: list[str] = field(default_factory=list)
    at_key: bool = True
    """whether a key comes next, in a mapping"""


def read_yaml(file: TextFile, options: ReadingOptions) -> Document:
    """Read a YAML file of one document or several, such as the locale files of Rails.

    A single key at the top that is the source language becomes the target language.

    Raises:
        DataError: it is damaged, or has over `MAX_DEPTH` values inside each other.
    """
    text = file.text
    if text.startswith("\ufeff"):  # the parser would not count it
        raise file.error(0, "a second mark of the byte order, U+FEFF; delete it")
    scalars = list(_scalars(file))
    is_ascii = text.isascii() and re.search(r'"[^"\n]*\\(?:u|x[89a-fA-F])', text) is not None
    values = (
        DataValue(each.path, each.span, each.text, partial(_write, file, each, is_ascii))
        for each in scalars
        if each.is_text and not each.is_key
    )
    edits = _root_key(file, scalars, options.languages)
    return data_document(file, ChosenValues(options).among(values, file.name), edits)


def _write(file: TextFile, scalar: _Scalar, is_ascii: bool, text: str) -> str:
    source = ScalarSource(file.text[slice(*scalar.span)], scalar.text, scalar.in_flow)
    return source.write(text, is_ascii)


def _root_key(file: TextFile, scalars: list[_Scalar], languages: LanguagePair) -> list[Edit]:
    """Return the edit of a key at the top that is the source language, if it is the only one."""
    keys = [each for each in scalars if each.is_key and len(each.path) == 1]
    if len(keys) != 1 or not any(len(each.path) > 1 for each in scalars):
        return []
    target = language_key(keys[0].text, languages)
    return [Edit(keys[0].span, _write(file, keys[0], False, target))] if target else []


def _scalars(file: TextFile) -> Iterator[_Scalar]:
    """Yield the scalars of a file, keys as well.

    Raises:
        DataError: the file is damaged, or has too many values inside each other.
    """
    opened: list[_Collection] = []
    try:
        for event in yaml.parse(file.text, Loader=_Parser):
            if isinstance(event, yaml.CollectionEndEvent):
                opened.pop()
                _end_node(opened, "")
            elif isinstance(event, yaml.CollectionStartEvent):
                if len(opened) == MAX_DEPTH:
                    raise file.error(
                        _index(event.start_mark),
                        f"more than {MAX_DEPTH} values are inside each other; divide the file",
                    )
                opened.append(_collection(event, opened))
            elif isinstance(event, yaml.ScalarEvent):
                yield _scalar(event, file.text, opened)
                _end_node(opened, event.value)
            elif isinstance(event, yaml.AliasEvent):
                _end_node(opened, "")
    except yaml.YAMLError as error:
        raise _readable(file, error) from error


def _end_node(opened: list[_Collection], text: str) -> None:
    """Go on behind a node, which was a key or a value of the innermost collection."""
    if opened and opened[-1].is_mapping:
        parent = opened[-1]
        if parent.at_key:
            parent.path[-1] = text
        parent.at_key = not parent.at_key


def _collection(event: "yaml.CollectionStartEvent", opened: list[_Collection]) -> _Collection:
    is_mapping = isinstance(event, yaml.MappingStartEvent)
    is_key = bool(opened) and (opened[-1].is_key or (opened[-1].is_mapping and opened[-1].at_key))
    path = opened[-1].path if opened else []
    in_flow = bool(event.flow_style) or (bool(opened) and opened[-1].in_flow)
    return _Collection(is_mapping, in_flow, is_key, [*path, ""] if is_mapping else path)


def _scalar(event: "yaml.ScalarEvent", text: str, opened: list[_Collection]) -> _Scalar:
    parent = opened[-1] if opened else _Collection(False, False, False)
    is_key = parent.is_key or (parent.is_mapping and parent.at_key)
    path = (*parent.path[:-1], event.value) if is_key and parent.path else tuple(parent.path)
    start, end = _index(event.start_mark), _index(event.end_mark)
    if event.anchor or event.tag:
        properties = _PROPERTIES.match(text, start, end)
        start = properties.end() if properties else start
    is_text = event.tag in (None, "!", TEXT_TAG)
    if is_text and not event.tag and not event.style:
        is_text = is_plain_text(event.value)
    return _Scalar(path, (start, end), event.value, is_key, is_text, parent.in_flow)


def _index(mark: Any) -> int:
    """Return the character of a mark of PyYAML, whose types say that there may be none."""
    return int(mark.index)


def _readable(file: TextFile, error: "yaml.YAMLError") -> DataError:
    """Return an error that says where the file is no YAML."""
    problem = str(getattr(error, "problem", None) or getattr(error, "reason", None) or error)
    mark = getattr(error, "problem_mark", None)
    at = mark.index if mark else getattr(error, "position", 0)
    at = min(at if isinstance(at, int) else 0, len(file.text))
    return file.error(at, f"is no YAML: {problem}; check the file with `yamllint`")
