"""Lines of JSON: those that `nmt translate --json-input` reads, and those that `--json` writes."""

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nmt.data.text.lines import check_text
from nmt.errors import DataError

if TYPE_CHECKING:
    from nmt.translation.line import Terminology, Translation

TERMINOLOGY_KEYS = ("terms", "forbidden", "target_prefix")
# names of JSON's types in messages; a value of another type is a number
KINDS = {type(None): "null", bool: "a boolean", str: "a string", list: "a list", dict: "an object"}


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits}: JSON has no such number")
    return number


_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_finite)


def read_record(line: str, where: str) -> dict[str, Any]:
    """Parse a line of --json-input, an object with a "source", and return it with all its keys.

    Raises:
        DataError: The line is not such an object. The message begins with `where`, "FILE:LINE".
    """
    expected = 'expected a JSON object with the key "source", a string: {"source": "A dog."}'
    try:
        record = _DECODER.decode(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: no JSON ({error}); {expected}") from error
    if not isinstance(record, dict):
        kind = KINDS.get(type(record), "a number")
        raise DataError(f"{where}: {kind}; {expected}")
    if "source" not in record:
        raise DataError(f'{where}: an object without "source"; {expected}')
    source = record["source"]
    if not isinstance(source, str):
        kind = KINDS.get(type(source), "a number")
        raise DataError(f'{where}: "source" is {kind}; {expected}')
    check_text(source, f'{where}: "source"')
    return record


def format_record(record: Mapping[str, object]) -> str:
    r"""Return an object as one line of JSON; with half a surrogate pair all in ASCII, as "\ud83d".

    Raises:
        DataError: The object is nested too deeply to be written.
    """
    try:
        line = json.dumps(record, ensure_ascii=False)
        line.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(record)
    except RecursionError as error:
        raise DataError(
            f"{str(record.get('source'))[:60]!r}: another key of its object is nested too deeply "
            "to be written; leave it out"
        ) from error
    return line


def translation_record(translation: "Translation") -> dict[str, object]:
    """Return the text and score of a translation, and the match of a memory if it has one."""
    record: dict[str, object] = {"text": translation.text, "score": round(translation.score, 4)}
    if match := translation.match:
        record["match"] = {"type": match.kind, "score": round(match.score, 4)}
    return record


def line_terminology(record: Mapping[str, Any], where: str) -> "Terminology | None":
    """Return the constraints of a JSON line, or None if it has none of `TERMINOLOGY_KEYS`.

    Raises:
        DataError: A value has another type. The message begins with `where`, "FILE:LINE".
    """
    if not any(key in record for key in TERMINOLOGY_KEYS):
        return None
    from nmt.translation.line import Terminology

    def check(key: str, is_valid: bool, expected: str) -> None:
        if not is_valid:
            value = json.dumps(record[key])[:60]
            raise DataError(f'{where}: "{key}" is {value}; expected {expected}')

    terms, forbidden = record.get("terms", []), record.get("forbidden", [])
    # "terms" is a glossary of the source, or words that the translation must have
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
