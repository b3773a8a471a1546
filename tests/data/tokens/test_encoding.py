"""Processes change nothing but the time; what is dropped is counted where it stands."""

import os
from pathlib import Path

import numpy as np
import pytest

from nmt.config import CleaningConfig, TextPair, TokenizerConfig
from nmt.data.text import parallel_text
from nmt.data.text.parallel_text import ParallelText
from nmt.data.tokens import encoding
from nmt.data.tokens.encoding import EncodedBlock, encode_blocks
from nmt.data.tokens.token_store import Sentences
from nmt.data.tokens.tokenizer import Tokenizer
from nmt.data.tokens.vocabulary import learn_vocabulary
from nmt.errors import DataError

LINES = [f"{'the small dog ' * (n % 5)}number {n} ." for n in range(50)]
LINES[7] = LINES[20] = ""
CLEANING = CleaningConfig(max_length=12, duplicates=True)


@pytest.fixture
def text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ParallelText:
    monkeypatch.setattr(parallel_text, "BLOCK", 8)
    path = tmp_path / "text.en"
    path.write_text("".join(f"{line}\n" for line in LINES), "utf-8")
    text = ParallelText(TextPair(source=str(path), target=str(path)))
    config = TokenizerConfig(vocabulary_size=60)
    tokenizer = learn_vocabulary((pair for pair in text if pair.source), config)
    tokenizer.save(tmp_path / "tokenizer")
    return text


def encoded(text: ParallelText, folder: Path, processes: int) -> list[EncodedBlock]:
    blocks = encode_blocks(text.blocks(), folder / "tokenizer", CLEANING, processes)
    return [block for _, block in blocks]


def test_two_processes_give_the_blocks_of_one_in_order(text: ParallelText, tmp_path: Path) -> None:
    alone, together = (encoded(text, tmp_path, processes) for processes in (1, 2))
    assert len(alone) == len(together) == 7
    for one, other in zip(alone, together, strict=True):
        for a, b in ((one.source, other.source), (one.target, other.target)):
            assert a.ids.tolist() == b.ids.tolist()
            assert a.lengths.tolist() == b.lengths.tolist()
        assert one.lines.tolist() == other.lines.tolist()
        assert one.hashes.tolist() == other.hashes.tolist()
        assert one.counts == other.counts


def test_what_is_left_out_is_named_by_file_and_line(text: ParallelText, tmp_path: Path) -> None:
    counts = [block.counts for block in encoded(text, tmp_path, 1)]
    assert sum(c.read for c in counts) == 50
    empty = [example for c in counts for example in c.examples["empty"]]
    assert [(e["line"], e["source"]) for e in empty] == [(8, ""), (21, "")]
    assert {e["file"] for e in empty} == {str(tmp_path / "text.en")}
    long = [example for c in counts for example in c.examples["too_long"]]
    assert all(LINES[example["line"] - 1] == example["source"] for example in long) and long


def test_kept_lines_point_to_their_ids(text: ParallelText, tmp_path: Path) -> None:
    tokenizer = Tokenizer.load(tmp_path / "tokenizer")
    for number, block in enumerate(encoded(text, tmp_path, 1)):
        rows = np.split(block.source.ids, np.cumsum(block.source.lengths)[:-1])
        texts = tokenizer.target.decode([row.tolist() for row in rows if len(block.lines)])
        assert texts == [LINES[8 * number + line] for line in block.lines]


@pytest.mark.parametrize("processes", [1, 2])
def test_bytes_that_are_not_utf8_are_named_or_counted(
    text: ParallelText, tmp_path: Path, processes: int
) -> None:
    path = tmp_path / "text.en"
    path.write_bytes(path.read_bytes().replace(b"number 33", b"number \xe4"))
    with pytest.raises(DataError, match=r"text\.en:34: not valid UTF-8 \(byte 0xe4\)"):
        encoded(text, tmp_path, processes)
    rule = CleaningConfig(invalid_utf8=True)
    blocks = encode_blocks(text.blocks(), tmp_path / "tokenizer", rule, processes)
    examples = [e for _, b in blocks for e in b.counts.examples["invalid_utf8"]]
    assert [(e["line"], "\\udce4" in e["source"]) for e in examples] == [(34, True)]


def _die(block: object) -> None:
    os._exit(1)


def test_a_process_that_dies_is_reported(
    text: ParallelText, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoding, "_encode_in_worker", _die)
    with pytest.raises(DataError, match="a process that encodes text died, most likely because"):
        encoded(text, tmp_path, 2)


def test_gathered_sentences_keep_their_ids() -> None:
    chosen = Sentences.of([[1, 2, 3], [4, 3], [5, 6, 3]]).gather(np.array([0, 2]))
    assert (chosen.ids.tolist(), chosen.lengths.tolist()) == ([1, 2, 3, 5, 6, 3], [3, 3])
    assert Sentences.of([]).ids.tolist() == []
