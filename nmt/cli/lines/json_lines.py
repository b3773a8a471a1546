"""Lines that are JSON objects, in and out."""

import json
import math
from collections.abc import Mapping

from nmt.data.text.lines import check_text
from nmt.errors import DataError


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
        raise DataError(f"{where}: {_described(record)}; {wanted}")
    if "source" not in record:
        raise DataError(f'{where}: an object without "source"; {wanted}')
    source = record["source"]
    if not isinstance(source, str):
        raise DataError(f'{where}: "source" is {_described(source)}; {wanted}')
    check_text(source, f'{where}: "source"')
    return record


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


def _described(value: object) -> str:
    names = {type(None): "null", bool: "a boolean", str: "a string", list: "a list"}
    return names.get(type(value), "an object" if isinstance(value, dict) else "a number")
