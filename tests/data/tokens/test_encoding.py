"""Processes change nothing but the time."""

import os
from pathlib import Path

import pytest

from nmt.data.text import parallel_text
from nmt.data.text.augmentation import Augmenter
from nmt.data.text.cleaning import TrainingText
from nmt.data.text.duplicates import DuplicateFinder
from nmt.data.text.parallel_text import ParallelText
from nmt.data.tokens import encoding
from nmt.data.tokens.encoding import CleanedBlock, clean_blocks
from nmt.data.tokens.tokenizer import Tokenizer
from nmt.data.tokens.vocabulary import learn_vocabulary
from nmt.errors import DataError
from nmt.recipe.config import AugmentationConfig, CleaningConfig, TextPair, TokenizerConfig

LINES = [f"{'the small dog ' * (n % 5)}number {n} ." for n in range(50)]
LINES[7] = LINES[20] = ""
CLEANING = CleaningConfig(max_length=12)


@pytest.fixture
def text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ParallelText:
    monkeypatch.setattr(parallel_text, "BLOCK", 8)
    return written(tmp_path, LINES, 60)


def written(folder: Path, lines: list[str], vocabulary_size: int) -> ParallelText:
    path = folder / "text.en"
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    text = ParallelText(TextPair(source=str(path), target=str(path)))
    config = TokenizerConfig(vocabulary_size=vocabulary_size)
    learn_vocabulary((pair for pair in text if pair.source), config).save(folder / "tokenizer")
    return text


def encoded(
    text: ParallelText,
    folder: Path,
    processes: int,
    cleaning: CleaningConfig = CLEANING,
    rates: AugmentationConfig = AugmentationConfig(),  # noqa: B008 - it is frozen
) -> list[CleanedBlock]:
    tokenizer = Tokenizer.load(folder / "tokenizer")
    training_text = TrainingText(text, cleaning, augmenter=Augmenter(rates))
    blocks = clean_blocks(training_text, tokenizer, DuplicateFinder(cleaning), processes)
    return [block for _, block in blocks]


def test_two_processes_give_the_blocks_of_one_in_order(text: ParallelText, tmp_path: Path) -> None:
    """They name what is left out, and stop at bytes that are not UTF-8 unless a rule drops them."""
    path = tmp_path / "text.en"
    path.write_bytes(path.read_bytes().replace(b"number 33", b"number \xe4"))
    for processes in (1, 2):
        with pytest.raises(DataError, match=r"text\.en:34: not valid UTF-8 \(byte 0xe4\)"):
            encoded(text, tmp_path, processes)
    cleaning = CleaningConfig(max_length=12, duplicates=True, invalid_utf8=True)
    alone, together = (encoded(text, tmp_path, processes, cleaning) for processes in (1, 2))
    assert len(alone) == len(together) == 7
    for one, other in zip(alone, together, strict=True):
        for a, b in ((one.source, other.source), (one.target, other.target)):
            assert a.ids.tolist() == b.ids.tolist()
            assert a.lengths.tolist() == b.lengths.tolist()
        assert one.indices.tolist() == other.indices.tolist()
        assert one.hashes.tolist() == other.hashes.tolist()
        assert one.counts == other.counts
    tokenizer = Tokenizer.load(tmp_path / "tokenizer")
    for number, block in enumerate(alone):
        rows = [block.source.sentence(i).tolist() for i in range(len(block.indices))]
        kept = [LINES[8 * number + line] for line in block.indices]
        assert tokenizer.source.decode(rows) == kept
    assert sum(block.counts.read for block in alone) == 50
    dropped = {
        reason: [example for block in alone for example in block.counts.examples[reason]]
        for reason in ("empty", "too_long", "invalid_utf8")
    }
    assert [(e["line"], e["source"]) for e in dropped["empty"]] == [(8, ""), (21, "")]
    assert {e["file"] for e in dropped["empty"]} == {str(path)}
    assert all(LINES[e["line"] - 1] == e["source"] for e in dropped["too_long"])
    assert dropped["too_long"]
    assert [(e["line"], "\\udce4" in e["source"]) for e in dropped["invalid_utf8"]] == [(34, True)]


def test_blocks_and_processes_change_no_augmented_pair(
    text: ParallelText, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates = AugmentationConfig(no_final_punctuation=0.3, typos=0.3)
    found = []
    for size, processes in ((8, 1), (8, 2), (50, 1)):
        monkeypatch.setattr(parallel_text, "BLOCK", size)
        blocks = encoded(text, tmp_path, processes, rates=rates)
        ids = [
            block.source.sentence(i).tolist() for block in blocks for i in range(len(block.indices))
        ]
        found.append((ids, [change for block in blocks for change in block.changes]))
    assert found[0] == found[1] == found[2]
    assert set(found[0][1]) == {None, "no_final_punctuation", "typos"}


def _die(block: object) -> None:
    os._exit(1)


def test_a_process_that_dies_is_reported(
    text: ParallelText, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoding, "_call_in_worker", _die)
    with pytest.raises(DataError, match="a process that encodes text died, most likely because"):
        encoded(text, tmp_path, 2)


def test_lines_of_a_megabyte_are_kept_or_counted(tmp_path: Path) -> None:
    """SentencePiece learns nothing from such lines, but nothing may break or be lost."""
    lines = ["a b c " * 10, "long " * 200_000, "d e f " * 10, "x" * 1_000_000]
    (block,) = encoded(written(tmp_path, lines, 40), tmp_path, 1, CleaningConfig())
    assert block.counts.read - block.counts.kept == block.counts.dropped["too_long"] == 2
    assert block.indices.tolist() == [0, 2]
    assert [len(e["source"]) for e in block.counts.examples["too_long"]] == [200, 200]
