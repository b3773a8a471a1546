from pathlib import Path

import pytest

from nmt.config import DataConfig, TextPair
from nmt.evaluation import training_text
from nmt.evaluation.training_text import local_training_words, training_words


def own_text(folder: Path, target: bytes) -> DataConfig:
    pair = TextPair(source=str(folder / "text.en"), target=str(folder / "text.de"))
    (folder / "text.en").write_bytes(b"x\n" * target.count(b"\n"))
    (folder / "text.de").write_bytes(target)
    return DataConfig(train=[pair], validation=pair, test=pair)


def test_words_of_the_target_side_are_counted(tmp_path: Path) -> None:
    config = own_text(tmp_path, "Ein Hund.\nEin \u2028 Baum.\n".encode())
    assert training_words(config).counts == {"Ein": 2, "Hund": 1, "Baum": 1, ".": 2}


def test_damaged_bytes_do_not_stop_it(tmp_path: Path) -> None:
    found = training_words(own_text(tmp_path, b"Ein \xff Hund\nEin\n"))
    assert found.counts["Ein"] == 2
    assert (found.pairs, str(found)) == (2, "the training text")


def test_the_start_of_a_large_text_is_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training_text, "MOST_PAIRS", 2)
    assert training_words(own_text(tmp_path, b"a\nb\nc\n")).counts == {"a": 1, "b": 1}


def test_missing_text_has_no_words(tmp_path: Path) -> None:
    config = own_text(tmp_path, b"a\n")
    (tmp_path / "text.de").unlink()
    assert local_training_words(config) is None


def test_nothing_is_downloaded(tmp_path: Path) -> None:
    config = DataConfig(corpus="wmt14", directory=str(tmp_path / "data"))
    assert local_training_words(config) is None
    assert local_training_words(DataConfig(corpus="no such corpus")) is None
    assert list(tmp_path.iterdir()) == []


def test_a_downloaded_corpus_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "demo" / "de-en"
    folder.mkdir(parents=True)
    for split in ("train", "validation", "test"):
        (folder / f"{split}.en").write_text("a dog\n", "utf-8")
        (folder / f"{split}.de").write_text("ein Hund\n", "utf-8")
    config = DataConfig(corpus="demo", directory=str(tmp_path))
    assert training_words(config).counts == {"ein": 1, "Hund": 1}
