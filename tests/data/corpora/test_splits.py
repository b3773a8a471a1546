"""A corpus without held-out sets gets them, and nothing of them is learnt."""

from pathlib import Path

import pytest

from nmt.data.corpora import held_out, splits
from nmt.data.corpora.splits import complete_splits
from nmt.data.text.parallel_text import SentencePair, read_pairs
from nmt.errors import DataError

PAIRS = [(f"the sentence number {n}", f"la phrase numero {n}") for n in range(2000)]


def write(folder: Path, split: str, pairs: list[tuple[str, str]]) -> None:
    folder.mkdir(exist_ok=True)
    for side, language in enumerate(("en", "fr")):
        text = "".join(f"{pair[side]}\n" for pair in pairs)
        (folder / f"{split}.{language}").write_text(text)


def read(folder: Path, split: str) -> list[SentencePair]:
    return list(read_pairs(folder / f"{split}.en", folder / f"{split}.fr"))


def test_missing_sets_are_cut_from_the_training_text_and_it_is_said(tmp_path: Path) -> None:
    write(tmp_path, "train", PAIRS)
    log: list[str] = []
    complete_splits(tmp_path, ("en", "fr"), log.append)
    parts = [read(tmp_path, split) for split in splits.SPLITS]
    assert sorted(sum(parts, [])) == sorted(SentencePair(*pair) for pair in PAIRS)
    assert all(20 < len(part) < 60 for part in parts[1:])
    assert log == [
        "no validation and no test set upstream: cut from the training text by a hash of each "
        f"sentence (validation {len(parts[1])}, test {len(parts[2])}; {len(parts[0]):,} of 2,000 "
        "pairs stay to learn from)"
    ]


def test_both_directions_are_cut_alike(tmp_path: Path) -> None:
    for name, languages in (("there", ("en", "fr")), ("back", ("fr", "en"))):
        write(tmp_path / name, "train", PAIRS)
        complete_splits(tmp_path / name, languages, lambda message: None)
    for path in (tmp_path / "there").iterdir():
        assert path.read_bytes() == (tmp_path / "back" / path.name).read_bytes()


def test_set_that_is_there_is_left_alone(tmp_path: Path) -> None:
    write(tmp_path, "train", PAIRS)
    write(tmp_path, "validation", [("mine", "mien")])
    complete_splits(tmp_path, ("en", "fr"), lambda message: None)
    assert read(tmp_path, "validation") == [("mine", "mien")]
    test, train = read(tmp_path, "test"), read(tmp_path, "train")
    assert len(test) + len(train) == len(PAIRS) and not set(test) & set(train)


def test_whole_corpus_is_not_even_read(tmp_path: Path) -> None:
    for split in splits.SPLITS[1:]:
        write(tmp_path, split, [("a", "b")])
    complete_splits(tmp_path, ("en", "fr"), lambda message: None)


def test_large_corpus_gets_sets_that_can_be_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_out, "LARGEST", 10)
    write(tmp_path, "train", PAIRS)
    complete_splits(tmp_path, ("en", "fr"), lambda message: None)
    parts = [read(tmp_path, split) for split in splits.SPLITS]
    assert all(3 <= len(part) <= 20 for part in parts[1:])
    assert sorted(sum(parts, [])) == sorted(SentencePair(*pair) for pair in PAIRS)


def test_text_that_is_too_small_is_told(tmp_path: Path) -> None:
    write(tmp_path, "train", PAIRS[:3])
    message = "too small to cut a validation set from .3 pairs.; choose a larger corpus, or give"
    with pytest.raises(DataError, match=message):
        complete_splits(tmp_path, ("en", "fr"), lambda message: None)
