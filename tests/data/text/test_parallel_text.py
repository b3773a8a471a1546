"""Pairs are lines of the same number in two files; blocks of them are read in bounded memory."""

from pathlib import Path

import pytest

from nmt.config import TextPair
from nmt.data.text import parallel_text
from nmt.data.text.parallel_text import ParallelText, SentencePair, read_pairs
from nmt.errors import DataError


def test_parallel_text_can_be_read_again(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(b"a\nb\n")
    text = ParallelText(TextPair(source=str(path), target=str(path)))
    assert list(text) == list(text) == [SentencePair("a", "a"), SentencePair("b", "b")]


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (b"a\nb\nc\n", b"a\n", "source.txt has 3 lines, .*target.txt has 1 line; expected as many"),
        (b"a\n", b"a\nb", "source.txt has 1 line, .*target.txt has 2 lines"),
        (b"", b"a\n", "source.txt has 0 lines, .*target.txt has 1 line"),
        (b"", b"", "source.txt and .*target.txt are empty; expected one sentence per line"),
    ],
)
def test_files_that_are_not_aligned_are_refused(
    tmp_path: Path, source: bytes, target: bytes, message: str
) -> None:
    paths = (tmp_path / "source.txt", tmp_path / "target.txt")
    for path, data in zip(paths, (source, target), strict=True):
        path.write_bytes(data)
    with pytest.raises(DataError, match=message):
        list(read_pairs(*paths))


def test_a_block_that_skips_lines_still_numbers_them(tmp_path: Path) -> None:
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
    text = ParallelText(TextPair(source=str(path), target=str(path)))
    blocks = list(text.blocks())
    assert max(len(block.lines) for block in blocks) <= 500
    assert [int(pair.target) for block in blocks for pair in block.pairs()] == list(range(lines))
