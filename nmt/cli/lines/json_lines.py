"""Lines that are JSON objects, in and out, and what such a line asks of its translation."""

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nmt.data.text.lines import check_text
from nmt.errors import DataError

if TYPE_CHECKING:
    from nmt.translation.line import Terminology

TERMINOLOGY_KEYS = ("terms", "forbidden", "target_prefix")
NAMES = {type(None): "null", bool: "a boolean", str: "a string", list: "a list", dict: "an object"}


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits} is no number that JSON can hold")
    return number


_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_finite)


def read_record(line: str, where: str) -> dict[str, object]:
    """Return the object of a line, whose "source" is the text to translate.

    Raises:
        DataError: The line is no such object; the message names `where`, the file and line.
    """
    wanted = 'expected a JSON object with the key "source", a string: {"source": "A dog."}'
    try:
        record = _DECODER.decode(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: no JSON ({error}); {wanted}") from error
    if not isinstance(record, dict):
        raise DataError(f"{where}: {_kind(record)}; {wanted}")
    if "source" not in record:
        raise DataError(f'{where}: an object without "source"; {wanted}')
    source = record["source"]
    if not isinstance(source, str):
        raise DataError(f'{where}: "source" is {_kind(source)}; {wanted}')
    check_text(source, f'{where}: "source"')
    return record


def _kind(value: object) -> str:
    return NAMES.get(type(value), "a number")


def written_record(record: Mapping[str, object]) -> str:
    """Return a record as one line of JSON, with escapes for what UTF-8 cannot hold.

    Raises:
        DataError: The record is nested too deeply to be written.
    """
    try:
        line = json.dumps(record, ensure_ascii=False)
    except RecursionError as error:
        raise DataError(
            f"{str(record.get('source'))[:60]!r}: another key of its object is nested too deeply "
            "to be written; leave it out"
        ) from error
    try:
        line.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(record)
    return line


def line_terminology(record: Mapping[str, Any], where: str) -> "Terminology | None":
    """Return what a JSON line asks of its own translation; None if it asks nothing.

    Raises:
        DataError: A key has a value of another form; the message names `where`, the file and line.
    """
    if not any(key in record for key in TERMINOLOGY_KEYS):
        return None
    from nmt.translation.line import Terminology

    def check(key: str, is_right: bool, expected: str) -> None:
        if not is_right:
            value = json.dumps(record[key])[:60]
            raise DataError(f'{where}: "{key}" is {value}; expected {expected}')

    terms, forbidden = record.get("terms", []), record.get("forbidden", [])
    glossary, words = (terms, []) if isinstance(terms, dict) else ({}, terms)
    check(
        "terms",
        _are_texts(words) and _are_texts(list(glossary.values())),
        'source terms with their translations, as {"dog": "Hund"}, or a list of words of the '
        'translation, as ["Hund"]',
    )
    check("forbidden", _are_texts(forbidden), 'a list of words, as ["Hund"]')
    prefix = record.get("target_prefix", "")
    check("target_prefix", isinstance(prefix, str), 'a string, as "Ein Hund "')
    try:
        return Terminology.of(glossary, words, forbidden, prefix)
    except DataError as error:
        raise DataError(f"{where}: {error}") from error


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)
