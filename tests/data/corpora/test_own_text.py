"""One's own text, divided without leaks."""

from pathlib import Path

import pytest

from nmt.config import TextPair
from nmt.data.corpora.own_text import divide_text, split_files
from nmt.data.text.parallel_text import ParallelText, SentencePair, read_pairs
from nmt.errors import DataError

NAMES = ("validation", "test")


def own_text(folder: Path, pairs: list[SentencePair]) -> ParallelText:
    for name, side in (("all.en", 0), ("all.de", 1)):
        (folder / name).write_text("".join(f"{pair[side]}\n" for pair in pairs), "utf-8")
    text = TextPair(source=str(folder / "all.en"), target=str(folder / "all.de"))
    return ParallelText(text, ("en", "de"))


def test_no_sentence_stands_in_two_parts(tmp_path: Path) -> None:
    pairs = [SentencePair(f"the dog number {n}", f"der Hund Nummer {n}") for n in range(1500)]
    pairs += [SentencePair(f"The dog, number {n}!", "ein anderer Satz hier") for n in range(1500)]
    pairs += [SentencePair(f"quite another {n} here", f"der Hund Nummer {n}") for n in range(1500)]
    folder = tmp_path / "split"
    counts = divide_text(own_text(tmp_path, pairs), len(pairs), NAMES, folder)
    files = split_files(folder, ("train", *NAMES), ("en", "de"))
    parts = {name: list(read_pairs(*map(Path, text.paths))) for name, text in files.items()}
    assert {name: len(part) for name, part in parts.items()} == counts
    assert all(counts.values())
    for side in (0, 1):
        words = [
            {"".join(c for c in pair[side].lower() if c.isalnum()) for pair in part}
            for part in parts.values()
        ]
        assert not words[0] & words[1] and not words[0] & words[2] and not words[1] & words[2]


def test_a_text_of_one_sentence_cannot_be_divided(tmp_path: Path) -> None:
    text = own_text(tmp_path, [SentencePair("one two three", "eins zwei drei")] * 1200)
    with pytest.raises(DataError, match="no sentence is left for a .* set"):
        divide_text(text, 1200, NAMES, tmp_path / "split")
    assert not (tmp_path / "split").exists()
