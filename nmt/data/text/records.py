"""Sentence pairs from one file that holds both sides: TSV, JSON lines or parquet."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nmt.data.text.compressed import SUFFIXES, raw_lines
from nmt.errors import DataError

TRANSLATION = "translation"
"""The key that holds one text a language, in the data sets of the Hugging Face Hub."""

_LINE_BREAKS = re.compile(r"[\r\n]+")

_MISSING = object()

Field = str | int | None
LinePair = tuple[bytes, bytes]


def read_records(
    path: Path, fields: tuple[Field, Field], languages: tuple[str, str]
) -> Iterator[LinePair]:
    """Yield source and target of each record as UTF-8 without line breaks.

    A field is a column number (TSV, counted from 1) or a key, with dots into nested records. None
    means columns 1 and 2, or the language code as the key.

    Raises:
        DataError: an unknown kind of file, or a record without the fields (with its number).
    """
    kind = path.with_suffix("").suffix if path.suffix in SUFFIXES else path.suffix
    if kind in (".tsv", ".tab", ".txt"):
        return _read_tsv(path, fields)
    if kind in (".jsonl", ".json", ".ndjson"):
        return _read_json_lines(path, fields, languages)
    if kind == ".parquet" and path.suffix == kind:
        return _read_parquet(path, fields, languages)
    raise DataError(
        f"{path}: unknown kind of file; expected .tsv, .jsonl (either may be compressed: .gz, .xz "
        "or .zst) or .parquet. Give two line-aligned files as source and target"
    )


def _read_tsv(path: Path, fields: tuple[Field, Field]) -> Iterator[LinePair]:
    source, target = (_column(path, f, default) for f, default in zip(fields, (1, 2), strict=True))
    for number, line in enumerate(raw_lines(path), start=1):
        columns = line.removesuffix(b"\n").removesuffix(b"\r").split(b"\t")
        if max(source, target) > len(columns):
            raise DataError(
                f"{path}:{number}: {len(columns)} column{'s'[: len(columns) != 1]}, expected "
                f"at least {max(source, target)}, separated by tabs; check source_field and "
                "target_field"
            )
        yield columns[source - 1], columns[target - 1]


def _column(path: Path, field: Field, default: int) -> int:
    if isinstance(field, str):
        raise DataError(
            f"{path}: '{field}' is not the number of a column; columns are counted from 1"
        )
    return default if field is None else field


def _read_json_lines(
    path: Path, fields: tuple[Field, Field], languages: tuple[str, str]
) -> Iterator[LinePair]:
    for number, line in enumerate(raw_lines(path), start=1):
        place = f"{path}:{number}"
        if not line.strip():
            continue
        try:
            record = json.loads(line.decode("utf-8-sig", "surrogateescape"))
        except (ValueError, RecursionError) as error:
            raise DataError(f"{place}: not a JSON object on one line ({error})") from error
        yield _sides_of(record, fields, languages, place)


def _read_parquet(
    path: Path, fields: tuple[Field, Field], languages: tuple[str, str]
) -> Iterator[LinePair]:
    import pyarrow
    import pyarrow.parquet

    try:
        file = pyarrow.parquet.ParquetFile(path, memory_map=True)
        number = 0
        for batch in file.iter_batches(batch_size=10_000):
            for record in batch.to_pylist():
                number += 1
                yield _sides_of(record, fields, languages, f"{path}, row {number}")
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file; check the path in the configuration") from error
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        raise DataError(f"{path}: not a parquet file, or a damaged one ({error})") from error


def _sides_of(
    record: Any, fields: tuple[Field, Field], languages: tuple[str, str], place: str
) -> LinePair:
    """Return the two sides of a record, null being an empty text, as one line each."""
    source, target = (
        _text_of(record, field, language, place)
        for field, language in zip(fields, languages, strict=True)
    )
    return _encode(_LINE_BREAKS.sub(" ", source)), _encode(_LINE_BREAKS.sub(" ", target))


def _text_of(record: Any, field: Field, language: str, place: str) -> str:
    key = language if field is None else str(field)
    text = _look_up(record, key)
    if text is _MISSING and field is None:
        text = _look_up(record, f"{TRANSLATION}.{key}")
    if text is None:
        return ""
    if not isinstance(text, str):
        found = ", ".join(map(str, record)) if isinstance(record, dict) else repr(record)[:60]
        raise DataError(
            f"{place}: no text under '{key}', found {found}; "
            "name the keys with source_field and target_field, with dots into nested records"
        )
    return text


def _look_up(record: Any, key: str) -> Any:
    """Return the value under a dotted key, or `_MISSING`."""
    value = record
    for part in key.split("."):
        if not isinstance(value, dict) or part not in value:
            return _MISSING
        value = value[part]
    return value


def _encode(text: str) -> bytes:
    """Return the bytes of a text; bytes that were not UTF-8 when read are the same again."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a JSON escape such as "\ud800"
        return text.encode("utf-8", "surrogatepass")
