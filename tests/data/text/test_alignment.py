"""Whatever a corpus is made of: every pair stays with its own, or the text is refused by name."""

import gzip
import json
import lzma
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.config import CleaningConfig, TextPair, TokenizerConfig
from nmt.data.text.parallel_text import ParallelText
from nmt.data.tokens.encoding import encode_blocks
from nmt.data.tokens.vocabulary import learn_vocabulary
from nmt.errors import DataError

STRANGE = "\r\x00\ufeff\u2028\u2029\x0b\x0c\x85\x1c\x1d\x1e\u200b\u00a0 é漢😀"
texts = st.lists(
    st.text(st.sampled_from(STRANGE) | st.characters(exclude_categories=["Cs"])).map(
        lambda text: re.sub(r"[\n\t]", " ", text)
    ),
    min_size=1,
    max_size=30,
)
WRAP: dict[str, Callable[[bytes], bytes]] = {
    "": lambda data: data,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
}


def written(
    folder: Path, rows: list[str], layout: str, wrap: str, line_end: bytes, last_end: bool
) -> TextPair:
    """A corpus whose lines begin with their numbers on both sides."""

    def lines(sides: list[str]) -> bytes:
        end = line_end if last_end or not sides[-1] else b""
        return line_end.join(side.encode() for side in sides) + end

    def file(name: str, sides: list[str]) -> str:
        path = folder / f"{name}{wrap}"
        path.write_bytes(WRAP[wrap](lines(sides)))
        return str(path)

    sources = [f"{n} {text}|" for n, text in enumerate(rows)]
    targets = [f"{n} {text[::-1]}|" for n, text in enumerate(rows)]
    pairs = list(zip(sources, targets, strict=True))
    if layout == "two files":
        return TextPair(source=file("a.source", sources), target=file("a.target", targets))
    if layout == "tsv":
        return TextPair(file=file("a.tsv", [f"{s}\t{t}" for s, t in pairs]))
    records = [json.dumps({"source": s, "target": t}) for s, t in pairs]
    return TextPair(file=file("a.jsonl", records))


@settings(max_examples=150, deadline=None)
@given(
    rows=texts,
    layout=st.sampled_from(["two files", "tsv", "jsonl"]),
    wrap=st.sampled_from(sorted(WRAP)),
    line_end=st.sampled_from([b"\n", b"\r\n"]),
    last_end=st.booleans(),
)
def test_every_pair_keeps_its_number(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[str],
    layout: str,
    wrap: str,
    line_end: bytes,
    last_end: bool,
) -> None:
    folder = tmp_path_factory.mktemp("corpus")
    pairs = list(ParallelText(written(folder, rows, layout, wrap, line_end, last_end)))
    assert len(pairs) == len(rows)
    for number, (pair, text) in enumerate(zip(pairs, rows, strict=True)):
        expected = (f"{number} {text}|", f"{number} {text[::-1]}|")
        if layout == "jsonl":  # where a record is a line, a carriage return would be a break
            assert pair == tuple(re.sub(r"\r+", " ", side) for side in expected)
        else:
            assert pair == expected


@settings(max_examples=60, deadline=None)
@given(
    rows=texts.filter(lambda rows: len(rows) > 1),
    side=st.sampled_from(["source", "target"]),
    wrap=st.sampled_from(sorted(WRAP)),
    damage=st.sampled_from(["missing line", "extra line", "not UTF-8", "cut short", "empty"]),
    data=st.data(),
)
def test_a_damaged_side_is_refused_by_name(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[str],
    side: str,
    wrap: str,
    damage: str,
    data: st.DataObject,
) -> None:
    folder = tmp_path_factory.mktemp("corpus")
    text = written(folder, rows, "two files", wrap, b"\n", True)
    path = folder / f"a.{side}{wrap}"
    lines = (folder / f"a.source{wrap}").read_bytes()
    plain = {"": lambda d: d, ".gz": gzip.decompress, ".xz": lzma.decompress}[wrap](lines)
    whole = plain.split(b"\n")[:-1]
    place = data.draw(st.integers(0, len(whole) - 1))
    message = f"{len(rows)} lines"
    if damage == "missing line":
        del whole[place]
    elif damage == "extra line":
        whole.insert(place, b"x")
    elif damage == "not UTF-8":
        whole[place] += b"\xff"
        message = rf"a\.{side}{re.escape(wrap)}:{place + 1}: not valid UTF-8 \(byte 0xff\)"
    elif damage == "empty":
        whole = []
    packed = WRAP[wrap](b"".join(line + b"\n" for line in whole))
    if damage == "cut short" and wrap:
        packed = packed[:-5]
        message = rf"a\.{side}{re.escape(wrap)}: damaged or cut short"
    elif damage == "cut short":
        packed = b"".join(line + b"\n" for line in whole[:place])
    path.write_bytes(packed)
    with pytest.raises(DataError, match=message):
        list(ParallelText(text))


def test_lines_of_a_megabyte_are_kept_or_counted(tmp_path: Path) -> None:
    """SentencePiece learns nothing from such lines, but nothing may break or be lost."""
    rows = ["a b c " * 10, "long " * 200_000, "d e f " * 10, "x" * 1_000_000]
    text = ParallelText(written(tmp_path, rows, "two files", "", b"\n", True))
    tokenizer = learn_vocabulary(text, TokenizerConfig(vocabulary_size=40))
    tokenizer.save(tmp_path / "tokenizer")
    blocks = encode_blocks(text.blocks(), tmp_path / "tokenizer", CleaningConfig(), 1)
    (encoded,) = [encoded for _, encoded in blocks]
    assert encoded.counts.read == 4
    assert encoded.counts.dropped["too_long"] == encoded.counts.read - encoded.counts.kept == 2
    assert encoded.lines.tolist() == [0, 2]
    assert [len(e["source"]) for e in encoded.counts.examples["too_long"]] == [200, 200]
