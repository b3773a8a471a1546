"""Every pair stays together, however its text is stored; what cannot be read is named."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.data.text import parallel_text
from nmt.data.text.parallel_text import ParallelText, SentencePair, check_has_text, read_pairs
from nmt.errors import DataError
from nmt.recipe.config import TextPair
from tests.data.text.test_lines import COMPRESS

STRANGE = "\r\x00\ufeff\u2028\u2029\x0b\x0c\x85\x1c\x1d\x1e\u200b\u00a0 é漢😀"
PAIRS = [
    SentencePair("a dog\u2028.", "ein Hund"),
    SentencePair("", "nichts"),
    SentencePair("c", ""),
]


def write_records(path: Path, records: list[dict[str, Any]]) -> None:
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(records), path)
    else:
        path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")


def pairs_of(path: Path, **fields: Any) -> list[SentencePair]:
    return list(ParallelText(TextPair(file=str(path), **fields), ("en", "de")))


characters = st.sampled_from(STRANGE) | st.characters(exclude_categories=["Cs"])
lines_of_text = st.text(characters).map(lambda text: re.sub(r"[\n\t]", " ", text))


@settings(max_examples=150, deadline=None)
@given(st.lists(lines_of_text, min_size=1, max_size=30), st.data())
def test_every_pair_keeps_its_number(
    tmp_path_factory: pytest.TempPathFactory, rows: list[str], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("corpus")
    layout = data.draw(st.sampled_from(["two files", "tsv", "jsonl"]), "layout")
    suffix = data.draw(st.sampled_from(sorted(COMPRESS)), "suffix")
    end, last_end = data.draw(st.sampled_from([b"\n", b"\r\n"])), data.draw(st.booleans())

    def write(name: str, lines: Iterable[str]) -> str:
        path = folder / f"{name}{suffix.replace('.txt', '')}"
        text = end.join(line.encode() for line in lines) + end * last_end
        path.write_bytes(COMPRESS[suffix](text))
        return str(path)

    pairs = [(f"{n} {text}|", f"{n} {text[::-1]}|") for n, text in enumerate(rows)]
    if layout == "two files":
        sources, targets = zip(*pairs, strict=True)
        text = TextPair(source=write("a.en", sources), target=write("a.de", targets))
    elif layout == "tsv":
        text = TextPair(file=write("a.tsv", ["\t".join(pair) for pair in pairs]))
    else:
        lines = [json.dumps({"source": source, "target": target}) for source, target in pairs]
        text = TextPair(file=write("a.jsonl", lines))
        # where a record is a line, a carriage return would be a break
        pairs = [(re.sub(r"\r+", " ", s), re.sub(r"\r+", " ", t)) for s, t in pairs]
    assert list(ParallelText(text)) == list(ParallelText(text)) == pairs


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (b"a\nb\nc\n", b"a\n", "source.txt has 3 lines, .*target.txt has 1 line; expected as many"),
        (b"a\n", b"a\nb", "source.txt has 1 line, .*target.txt has 2 lines"),
        (b"", b"a\n", "source.txt has 0 lines, .*target.txt has 1 line"),
        (b"", b"", "source.txt and .*target.txt are empty; expected one sentence per line"),
        (b"a\nb\n", b"a\n\xff\n", r"target\.txt:2: not valid UTF-8 \(byte 0xff\)"),
    ],
)
def test_files_that_are_not_aligned_or_not_utf8_are_refused(
    tmp_path: Path, source: bytes, target: bytes, message: str
) -> None:
    paths = (tmp_path / "source.txt", tmp_path / "target.txt")
    for path, data in zip(paths, (source, target), strict=True):
        path.write_bytes(data)
    with pytest.raises(DataError, match=message):
        list(read_pairs(*paths))


def test_a_file_whose_name_is_not_utf8_is_told(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"\\udce9\.en': the name of this file or folder is not UTF"
    ):
        read_pairs(tmp_path / "\udce9.en", tmp_path / "target.txt")


def test_a_part_of_a_block_still_numbers_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(b"".join(b"%d\n" % n if n != 8 else b"\xe4\n" for n in range(1, 20)))
    (block,) = ParallelText(TextPair(source=str(path), target=str(path))).blocks()
    assert [pair.source for pair in block[1::5].pairs()] == ["2", "7", "12", "17"]
    with pytest.raises(DataError, match=r"text\.txt:8: not valid UTF-8"):
        block[1::3].pairs()


@pytest.mark.parametrize("lines", [3, 1700])
def test_blocks_of_long_lines_are_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: int
) -> None:
    monkeypatch.setattr(parallel_text, "BLOCK_BYTES", 5000)
    path = tmp_path / "text.txt"
    path.write_bytes(b"".join(b"%0100d\n" % n for n in range(lines)))
    blocks = list(ParallelText(TextPair(source=str(path), target=str(path))).blocks())
    assert max(len(block) for block in blocks) <= 500
    assert [int(pair.target) for block in blocks for pair in block.pairs()] == list(range(lines))


@pytest.mark.parametrize("name", ["a.tsv", "a.txt", "a.tab"])
def test_columns_of_a_tsv(tmp_path: Path, name: str) -> None:
    lines = [f"{pair.source}\t{pair.target}\tCC-BY\r\n" for pair in PAIRS]
    (tmp_path / name).write_text("\ufeff" + "".join(lines), "utf-8", newline="")
    assert pairs_of(tmp_path / name) == PAIRS
    turned = pairs_of(tmp_path / name, source_field=2, target_field=1)
    assert turned == [SentencePair(p.target, p.source) for p in PAIRS]
    assert {p.target for p in pairs_of(tmp_path / name, target_field=3)} == {"CC-BY"}


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
def test_keys_of_records(tmp_path: Path, name: str) -> None:
    flat = [{"en": p.source, "de": p.target or None, "x": {"deep": "down"}} for p in PAIRS]
    nested = [{"id": n, "translation": record} for n, record in enumerate(flat)]
    for records, fields in (
        (flat, {}),
        (nested, {}),
        (flat, {"source_field": "en", "target_field": "de"}),
        (nested, {"source_field": "translation.en", "target_field": "translation.de"}),
    ):
        write_records(tmp_path / name, records)
        assert pairs_of(tmp_path / name, **fields) == PAIRS
    assert pairs_of(tmp_path / name, source_field="translation.x.deep")[0].source == "down"
    write_records(tmp_path / name, [*nested, {"id": 0, "translation": None}])
    assert pairs_of(tmp_path / name) == [*PAIRS, SentencePair("", "")]


def test_json_lines_may_be_blank_and_a_line_break_inside_is_a_space(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    record = '{"en": "one\\r\\ntwo\\nthree\\u2028", "de": "eins\\r"}'
    path.write_text(record + '\n\n{"en": "", "de": ""}\n')
    assert pairs_of(path) == [SentencePair("one two three\u2028", "eins "), SentencePair("", "")]


def test_bytes_that_are_not_utf8_in_a_record_are_refused_by_line_or_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"en": "a", "de": "b"}\n{"en": "gr\xf6n", "de": "\\ud800"}\n')
    text = ParallelText(TextPair(file=str(path)), ("en", "de"))
    with pytest.raises(DataError, match=r"a\.jsonl:2: not valid UTF-8 \(byte 0xf6\)"):
        list(text)
    (block,) = text.blocks()
    assert block.pairs("surrogateescape")[1].source == "gr\udcf6n"


@pytest.mark.parametrize(
    ("name", "text", "fields", "message"),
    [
        ("a.tsv", "a\tb\nc\n", {}, r"a\.tsv:2: 1 column, expected at least 2, separated by tabs"),
        ("a.tsv", "a\tb\n", {"target_field": 4}, r"a\.tsv:1: 2 columns, expected at least 4"),
        ("a.tsv", "a\tb\n", {"target_field": "de"}, "'de' is not the number of a column"),
        ("a.tsv", "", {}, r"a\.tsv is empty; expected one sentence pair a record"),
        ("a.jsonl", '{"en": "a"}\n', {}, r"a\.jsonl:1: no text under 'de', found en; name the key"),
        ("a.jsonl", '{"en": 1, "de": ""}\n', {}, r"a\.jsonl:1: no text under 'en', found 1; "),
        ("a.jsonl", "[1, 2]\n", {}, r"l:1: not a JSON object on one line \(found \[1, 2\]\)"),
        ("a.jsonl", '{"en": "a", "de": "b"}\nno\n', {}, r"a\.jsonl:2: not a JSON object on one"),
        ("a.parquet", "no", {}, r"a\.parquet: not a parquet file, or a damaged one"),
        ("a.docx", "a", {}, r"a\.docx: unknown kind of file; expected \.tsv"),
        ("a.parquet.gz", "a", {}, "unknown kind of file"),
        ("a.tsv", None, {}, r"a\.tsv: no such file; check the path"),
        ("a.jsonl", None, {}, r"a\.jsonl: no such file; check the path"),
        ("a.parquet", None, {}, r"a\.parquet: no such file; check the path"),
    ],
)
def test_records_that_cannot_be_read_are_named(
    tmp_path: Path, name: str, text: str | None, fields: dict[str, Any], message: str
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=message):
        pairs_of(tmp_path / name, **fields)


@pytest.mark.parametrize(
    ("source", "target", "accepted"),
    [
        ("a\n", "b\n", True),
        ("\na\n", "\nb\n", True),
        ("\n", "b\n", False),
        ("a\n \n", "\nb\n", False),
    ],
)
def test_a_text_whose_pairs_are_blank_on_a_side_is_refused(
    tmp_path: Path, source: str, target: str, accepted: bool
) -> None:
    (tmp_path / "a.en").write_text(source)
    (tmp_path / "a.de").write_text(target)
    text = ParallelText(TextPair(source=str(tmp_path / "a.en"), target=str(tmp_path / "a.de")))
    if accepted:
        check_has_text(text)
        return
    with pytest.raises(DataError, match=r"a\.en and .*a\.de: no pair has text on both sides;"):
        check_has_text(text)
