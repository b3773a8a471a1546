"""Sentence pairs from one file that holds both sides: TSV, JSON lines or parquet."""

import itertools
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
        return _sides(_read_json_lines(path), fields, languages)
    if kind == ".parquet" and path.suffix == kind:
        return _sides(_read_parquet(path), fields, languages)
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


def _read_json_lines(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield each record after the words that say where it is."""
    for number, line in enumerate(raw_lines(path), start=1):
        place = f"{path}:{number}"
        if not line.strip():
            continue
        try:
            yield place, json.loads(line.decode("utf-8-sig", "surrogateescape"))
        except (ValueError, RecursionError) as error:
            raise DataError(f"{place}: not a JSON object on one line ({error})") from error


def _read_parquet(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield each record after the words that say where it is."""
    import pyarrow
    import pyarrow.parquet

    try:
        file = pyarrow.parquet.ParquetFile(path, memory_map=True)
        batches = (batch.to_pylist() for batch in file.iter_batches(batch_size=10_000))
        for number, record in enumerate(itertools.chain.from_iterable(batches), start=1):
            yield f"{path}, row {number}", record
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file; check the path in the configuration") from error
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        raise DataError(f"{path}: not a parquet file, or a damaged one ({error})") from error


def _sides(
    records: Iterator[tuple[str, Any]], fields: tuple[Field, Field], languages: tuple[str, str]
) -> Iterator[LinePair]:
    """Yield the two sides of each record, null being an empty text, as one line each."""
    (source, target), (source_language, target_language) = fields, languages
    for place, record in records:
        yield (
            _encode(_text_of(record, source, source_language, place)),
            _encode(_text_of(record, target, target_language, place)),
        )


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
        value = value.get(part, _MISSING) if isinstance(value, dict) else _MISSING
    return value


def _encode(text: str) -> bytes:
    """Return a text as one line; bytes that were not UTF-8 when read are the same again."""
    text = _LINE_BREAKS.sub(" ", text)
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a JSON escape such as "\ud800"
        return text.encode("utf-8", "surrogatepass")
