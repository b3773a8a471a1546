"""The fingerprint changes with all that shapes the data, and with nothing else."""

import hashlib
import mmap
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nmt.data import fingerprint as tested
from nmt.data.text.cleaning import TrainingText
from nmt.data.text.contamination import HeldOutPairs
from nmt.data.text.parallel_text import ParallelText, SentencePair
from nmt.errors import DataError
from nmt.recipe.config import Config, TextPair


@pytest.fixture
def text(tmp_path: Path) -> TextPair:
    for name, line in (("a.en", "dog\n"), ("a.de", "Hund\n")):
        (tmp_path / name).write_text(line)
        settle(tmp_path / name)
    return TextPair(source=str(tmp_path / "a.en"), target=str(tmp_path / "a.de"))


def fingerprint(
    config: Config, files: list[TextPair], directory: Path, held_out: HeldOutPairs | None = None
) -> str:
    cleaning = config.data.cleaning
    texts = [TrainingText(ParallelText(each), cleaning, held_out) for each in files]
    return tested.fingerprint(config, texts, directory)


def settle(path: Path, seconds: int = 1_000_000_000) -> None:
    """Give a file a time of change long ago."""
    os.utime(path, (seconds, seconds))


@pytest.mark.parametrize(
    ("section", "settings", "counts"),
    [
        ("data", {"cleaning": {"max_length": 255}}, True),
        ("data", {"cleaning": {"max_length_ratio": 3.0}}, True),
        ("data", {"cleaning": {"duplicates": True}}, True),
        ("tokenizer", {"kind": "unigram"}, True),
        ("tokenizer", {"vocabulary_size": 8001}, True),
        ("tokenizer", {"character_coverage": 0.9995}, True),
        ("tokenizer", {"byte_fallback": True}, True),
        ("tokenizer", {"normalization": "identity"}, True),
        ("training", {"batch_tokens": 1}, False),
        ("data", {"directory": "elsewhere"}, False),
        ("data", {"source_language": "de", "target_language": "en"}, False),
        ("data", {"tokenized": True}, False),
    ],
)
def test_settings_that_shape_the_data_count_and_others_do_not(
    tmp_path: Path, text: TextPair, section: str, settings: dict[str, Any], counts: bool
) -> None:
    name = fingerprint(Config(seed=2), [text], tmp_path)
    config = Config.model_validate({section: settings})
    assert (fingerprint(config, [text], tmp_path) != name) == counts


def test_the_seed_counts_only_if_pairs_are_augmented(tmp_path: Path, text: TextPair) -> None:
    def name_of(seed: int, upper: float) -> str:
        data = {"augmentation": {"upper": upper}}
        config = Config.model_validate({"data": data, "seed": seed})
        return fingerprint(config, [text], tmp_path)

    assert name_of(1, 0) == name_of(2, 0)
    assert len({name_of(1, 0), name_of(1, 0.25), name_of(2, 0.25), name_of(2, 0.5)}) == 4


def test_contents_order_and_fields_count_and_places_and_weights_do_not(
    tmp_path: Path, text: TextPair
) -> None:
    before = fingerprint(Config(), [text], tmp_path)
    assert len(before) == 16 and int(before, 16) > 0
    other = TextPair(source=text.target, target=text.target)
    turned = TextPair(source=text.target, target=text.source)
    texts = ([text], [turned], [text, text], [text, other], [other, text])
    assert len({fingerprint(Config(), list(t), tmp_path) for t in texts}) == 5
    moved = tmp_path / "moved.en"
    Path(text.paths[0]).rename(moved)
    same = TextPair(source=str(moved), target=text.target)
    assert fingerprint(Config(), [same], tmp_path) == before
    moved.write_text("cat\n")
    assert fingerprint(Config(), [same], tmp_path) != before

    def of_records(**settings: Any) -> str:
        return fingerprint(Config(), [TextPair(file=str(moved), **settings)], tmp_path)

    assert of_records(weight=2.0) == of_records() != of_records(source_field=2, target_field=1)
    assert of_records(languages=["en", "de"]) == of_records() != of_records(languages=["en", "fr"])


def test_the_languages_of_a_text_count_where_a_rule_reads_them(
    tmp_path: Path, text: TextPair
) -> None:
    french = text.model_copy(update={"languages": ["en", "fr"]})
    cleaned = Config.model_validate({"data": {"cleaning": {"language": True}}})
    assert fingerprint(Config(), [french], tmp_path) == fingerprint(Config(), [text], tmp_path)
    assert fingerprint(cleaned, [french], tmp_path) != fingerprint(cleaned, [text], tmp_path)


def test_it_counts_which_texts_are_compared_with_the_held_out_ones(
    tmp_path: Path, text: TextPair
) -> None:
    def name_with(folders: int) -> str:
        """Return the fingerprint of three texts, of which the last ones are synthetic."""
        synthetic = [{"folder": "made"}] * folders
        config = Config.model_validate({"data": {"synthetic": synthetic}})
        held_out = HeldOutPairs([SentencePair("a dog", "ein Hund")])
        return fingerprint(config, [text] * 3, tmp_path, held_out)

    assert len({name_with(folders) for folders in (1, 2, 3)}) == 3


def test_unchanged_files_are_read_once(
    tmp_path: Path, text: TextPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nmt.data.fingerprint._UNSETTLED_NS", -1)
    before = fingerprint(Config(), [text], tmp_path)

    def read_again(*arguments: object) -> None:
        raise AssertionError("the file was read again")

    monkeypatch.setattr(hashlib, "file_digest", read_again)
    assert fingerprint(Config(), [text], tmp_path) == before
    settle(Path(text.paths[0]), 2_000_000_000)
    with pytest.raises(AssertionError, match="read again"):
        fingerprint(Config(), [text], tmp_path)


def rewrite(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def replace_by_rename(path: Path, content: bytes) -> None:
    other = path.with_name("other")
    other.write_bytes(content)
    settle(other)
    other.rename(path)


def replace_by_copy_of_everything(path: Path, content: bytes) -> None:
    other = path.with_name("other")
    other.write_bytes(content)
    settle(other)
    shutil.copy2(other, path)  # cp -p


def change_a_byte_in_memory(path: Path, content: bytes) -> None:
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        memory[:] = content


@pytest.mark.parametrize(
    "change", [rewrite, replace_by_rename, replace_by_copy_of_everything, change_a_byte_in_memory]
)
def test_a_change_that_keeps_size_and_time_of_modification_is_noticed(
    tmp_path: Path,
    text: TextPair,
    change: Callable[[Path, bytes], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("nmt.data.fingerprint._UNSETTLED_NS", -1)
    before = fingerprint(Config(), [text], tmp_path)
    time.sleep(0.02)  # the clock of a file system counts in steps of up to 10 ms
    path = Path(text.paths[0])
    size = path.stat().st_size
    change(path, b"cat\n")
    settle(path)
    assert path.stat().st_size == size
    assert fingerprint(Config(), [text], tmp_path) != before


def test_file_changed_within_its_time_stamp_is_noticed(tmp_path: Path, text: TextPair) -> None:
    path, names = Path(text.paths[0]), set()
    now = time.time_ns()
    for line in ("dog\n", "cat\n"):
        path.write_text(line)
        os.utime(path, ns=(now, now))
        names.add(fingerprint(Config(), [text], tmp_path))
    assert len(names) == 2


@pytest.mark.parametrize("memory", [b"", b"{", b"[]", b"\xff", b'{"a": 1}', None])
def test_damaged_memory_is_ignored(tmp_path: Path, text: TextPair, memory: bytes | None) -> None:
    before = fingerprint(Config(), [text], tmp_path / "other")
    path = tmp_path / "hashes.json"
    if memory is None:
        path.mkdir()
    else:
        path.write_bytes(memory)
    assert fingerprint(Config(), [text], tmp_path) == before


@pytest.mark.parametrize(
    ("source", "message"),
    [("absent", "absent: no such file; check the path"), (".", "cannot be read: Is a directory")],
)
def test_what_is_no_file_is_named(tmp_path: Path, source: str, message: str) -> None:
    text = TextPair(source=str(tmp_path / source), target=str(tmp_path / source))
    with pytest.raises(DataError, match=message):
        fingerprint(Config(), [text], tmp_path)
