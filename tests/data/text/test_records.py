"""Files that hold both sides: what is found where, and what is said where it is not."""

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from nmt.config import TextPair
from nmt.data.text.parallel_text import ParallelText, SentencePair
from nmt.errors import DataError

PAIRS = [
    SentencePair("a dog\u2028.", "ein Hund"),
    SentencePair("", "nichts"),
    SentencePair("c", ""),
]


def pairs_of(path: Path, **fields: Any) -> list[SentencePair]:
    return list(ParallelText(TextPair(file=str(path), **fields), ("en", "de")))


def json_lines(path: Path, *records: Any) -> Path:
    path.write_text("".join(json.dumps(r) + "\n" for r in records), "utf-8")
    return path


@pytest.mark.parametrize("name", ["a.tsv", "a.txt", "a.tab", "a.tsv.gz"])
def test_columns_of_a_tsv(tmp_path: Path, name: str) -> None:
    data = "".join(f"{p.source}\t{p.target}\tCC-BY\n" for p in PAIRS).encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    assert pairs_of(tmp_path / name) == PAIRS
    turned = pairs_of(tmp_path / name, source_field=2, target_field=1)
    assert turned == [SentencePair(p.target, p.source) for p in PAIRS]
    assert {p.target for p in pairs_of(tmp_path / name, target_field=3)} == {"CC-BY"}


def test_windows_marks_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_bytes(b"\xef\xbb\xbfone\teins\r\ntwo\tzwei\r\n")
    assert pairs_of(tmp_path / "a.tsv") == [
        SentencePair("one", "eins"),
        SentencePair("two", "zwei"),
    ]


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
def test_keys_of_records(tmp_path: Path, name: str) -> None:
    flat = [{"en": p.source, "de": p.target, "x": {"deep": "down"}} for p in PAIRS]
    nested = [{"id": n, "translation": record} for n, record in enumerate(flat)]
    for records, fields in (
        (flat, {}),
        (nested, {}),
        (flat, {"source_field": "en", "target_field": "de"}),
        (nested, {"source_field": "translation.en", "target_field": "translation.de"}),
    ):
        write(tmp_path / name, records)
        assert pairs_of(tmp_path / name, **fields) == PAIRS
    assert pairs_of(tmp_path / name, source_field="translation.x.deep")[0].source == "down"


def write(path: Path, records: list[dict[str, Any]]) -> None:
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(records), path)
    else:
        json_lines(path, *records)


def test_a_line_break_inside_a_record_is_a_space(tmp_path: Path) -> None:
    path = json_lines(tmp_path / "a.jsonl", {"en": "one\r\ntwo\nthree\u2028", "de": "eins\r"})
    assert pairs_of(path) == [SentencePair("one two three\u2028", "eins ")]


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
def test_null_is_an_empty_text(tmp_path: Path, name: str) -> None:
    write(tmp_path / name, [{"en": "a", "de": None}, {"en": "b", "de": "c"}])
    assert pairs_of(tmp_path / name) == [SentencePair("a", ""), SentencePair("b", "c")]


def test_bytes_that_are_not_utf8_are_refused_by_line_or_left_to_a_rule(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"en": "a", "de": "b"}\n{"en": "gr\xf6n", "de": "\\ud800"}\n')
    text = ParallelText(TextPair(file=str(path)), ("en", "de"))
    with pytest.raises(DataError, match=r"a\.jsonl:2: not valid UTF-8 \(byte 0xf6\)"):
        list(text)
    (block,) = text.blocks()
    assert block.pairs("surrogateescape")[1].source == "gr\udcf6n"


def test_blank_lines_between_json_records_are_none(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"en": "a", "de": "b"}\n\n{"en": "c", "de": "d"}\n \n')
    assert pairs_of(tmp_path / "a.jsonl") == [SentencePair("a", "b"), SentencePair("c", "d")]


@pytest.mark.parametrize(
    ("name", "text", "fields", "message"),
    [
        ("a.tsv", "a\tb\nc\n", {}, r"a\.tsv:2: 1 column, expected at least 2, separated by tabs"),
        ("a.tsv", "a\tb\n", {"target_field": 4}, r"a\.tsv:1: 2 columns, expected at least 4"),
        ("a.tsv", "a\tb\n", {"target_field": "de"}, "'de' is not the number of a column"),
        ("a.tsv", "", {}, r"a\.tsv is empty; expected one sentence pair a record"),
        (
            "a.jsonl",
            '{"en": "a"}\n',
            {},
            r"a\.jsonl:1: no text under 'de', found en; name the keys",
        ),
        ("a.jsonl", '{"en": 1, "de": ""}\n', {}, r"a\.jsonl:1: no text under 'en'"),
        ("a.jsonl", "[1, 2]\n", {}, r"no text under 'en', found \[1, 2\]"),
        ("a.jsonl", '{"en": "a", "de": "b"}\nno\n', {}, r"a\.jsonl:2: not a JSON object on one"),
        ("a.parquet", "no", {}, r"a\.parquet: not a parquet file, or a damaged one"),
        ("a.docx", "a", {}, r"a\.docx: unknown kind of file; expected \.tsv"),
        ("a.parquet.gz", "a", {}, "unknown kind of file"),
    ],
)
def test_records_that_cannot_be_read_are_named(
    tmp_path: Path, name: str, text: str, fields: dict[str, Any], message: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=message):
        pairs_of(tmp_path / name, **fields)


@pytest.mark.parametrize("name", ["a.tsv", "a.jsonl", "a.parquet"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match=rf"{name}: no such file; check the path"):
        pairs_of(tmp_path / name)
