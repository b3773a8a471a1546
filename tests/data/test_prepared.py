"""Prepared data hold the text that is worth learning, complete or not at all."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from nmt.config import CleaningConfig, Config, DataConfig, TextPair, TokenizerConfig
from nmt.config_file import dump_config
from nmt.data import prepared
from nmt.data.corpora.folders import locked
from nmt.data.prepared import Prepared, describe_dropped, prepare, read_counts
from nmt.data.text import parallel_text
from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.token_store import _ArrayWriter
from nmt.data.tokens.tokenizer import EOS
from nmt.errors import ConfigError, DataError

LINES = [f"{'the small dog ' * (n % 5 + 1)}number {n} ." for n in range(60)]


def configured(tmp_path: Path, lines: list[SentencePair] | None = None, **data: Any) -> Config:
    """A configuration whose training text is `lines`."""
    pairs = [SentencePair(line, line.upper()) for line in LINES] if lines is None else lines
    paths = (tmp_path / "text.en", tmp_path / "text.de")
    paths[0].write_bytes("".join(f"{pair.source}\n" for pair in pairs).encode())
    paths[1].write_bytes("".join(f"{pair.target}\n" for pair in pairs).encode())
    text = TextPair(source=str(paths[0]), target=str(paths[1]))
    return Config(
        data=DataConfig(train=text, validation=text, directory=str(tmp_path / "data"), **data),
        tokenizer=TokenizerConfig(vocabulary_size=100),
    )


def prepared_quietly(config: Config) -> Prepared:
    return prepare(config, lambda message: None)


def folders(tmp_path: Path) -> list[str]:
    """What lies in data/prepared beside hidden locks and remembered hashes."""
    found = (tmp_path / "data" / "prepared").glob("[!.]*")
    return [path.name for path in found if path.name != "hashes.json"]


def test_store_holds_the_text_in_order(tmp_path: Path) -> None:
    data = prepared_quietly(configured(tmp_path))
    assert len(data.train) == len(LINES)
    assert data.directory == tmp_path / "data" / "prepared" / data.fingerprint
    rows = [data.train.source.sentence(i).tolist() for i in range(len(LINES))]
    assert rows == data.tokenizer.encode_source(LINES)
    targets = [data.train.target.sentence(i).tolist() for i in range(len(LINES))]
    assert data.tokenizer.decode(targets) == [line.upper() for line in LINES]
    assert all(row[-1] == EOS for row in (*rows, *targets))
    assert data.counts["source_tokens"] == data.train.source.lengths.sum()
    assert data.counts["target_tokens"] == data.train.target.lengths.sum()


def test_counts_are_read_without_the_text(tmp_path: Path) -> None:
    data = prepared_quietly(configured(tmp_path))
    (tmp_path / "text.en").unlink()
    assert read_counts(data.directory) == data.counts
    (data.directory / "source.ids.npy").write_bytes(b"")
    for folder in (data.directory, tmp_path / "nowhere"):
        with pytest.raises(DataError, match=f"{folder}: no prepared data here; `nmt prepare`"):
            read_counts(folder)


@pytest.mark.parametrize("chunk", [1, 7, 60])
def test_chunks_make_no_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    config = configured(tmp_path)
    whole = prepared_quietly(config)
    ids = [whole.train.source.sentence(i).tolist() for i in range(60)]
    shutil.rmtree(whole.directory)
    monkeypatch.setattr(parallel_text, "BLOCK", chunk)
    again = prepared_quietly(config)
    assert [again.train.source.sentence(i).tolist() for i in range(60)] == ids


def test_second_call_does_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = configured(tmp_path)
    messages: list[str] = []
    first = prepare(config, messages.append)
    assert len(messages) == 2
    monkeypatch.setattr(prepared, "_make", None)
    second = prepare(config, messages.append)
    assert len(messages) == 2
    assert (second.directory, second.counts) == (first.directory, first.counts)


def test_other_settings_have_their_own_folder(tmp_path: Path) -> None:
    config = configured(tmp_path)
    one = prepared_quietly(config)
    smaller = config.model_copy(update={"tokenizer": TokenizerConfig(vocabulary_size=60)})
    two = prepared_quietly(smaller)
    assert {one.fingerprint, two.fingerprint} == set(folders(tmp_path))
    assert (one.tokenizer.source_vocabulary_size, two.tokenizer.source_vocabulary_size) == (100, 60)


def test_pairs_left_out_are_counted_by_reason(tmp_path: Path) -> None:
    good = [SentencePair(line, line) for line in LINES]
    empty = [SentencePair("", "dog"), SentencePair("dog", " \u00a0 "), SentencePair("\u200b", "a")]
    long = [SentencePair("the dog " * 50, "dog"), SentencePair("dog", "the dog " * 50)]
    uneven = [SentencePair("the small dog " * 4, "dog")]
    limits = CleaningConfig(max_length=50, max_length_ratio=4.0)
    config = configured(tmp_path, [*empty, *good, *long, *uneven], cleaning=limits)
    data = prepared_quietly(config)
    dropped = {"empty": 3, "too_long": 2, "length_ratio": 1}
    assert (data.counts["read"], data.counts["kept"]) == (66, 60)
    assert {k: n for k, n in data.counts["dropped"].items() if n} == dropped
    assert len(data.train) == 60
    assert json.loads(json.dumps(data.counts)) == data.counts
    assert describe_dropped(data.counts) == (
        "3 empty, 2 longer than data.cleaning.max_length, 1 beyond data.cleaning.max_length_ratio"
    )


def test_longest_pair_allowed_is_kept(tmp_path: Path) -> None:
    longest = int(prepared_quietly(configured(tmp_path)).train.target.lengths.max()) - 1
    kept = prepared_quietly(
        configured(tmp_path, cleaning=CleaningConfig(max_length=longest))
    ).counts
    assert (kept["kept"], describe_dropped(kept)) == (60, "none left out")
    assert (
        prepared_quietly(
            configured(tmp_path, cleaning=CleaningConfig(max_length=longest - 1))
        ).counts["kept"]
        < 60
    )


def test_vocabulary_is_learnt_from_a_spread_of_a_large_corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepared, "_TOKENIZER_PAIRS", 20)
    lines = [SentencePair(f"{'ab'[n % 2 == 0]} {n}", f"b {n}") for n in range(60)]
    config = configured(tmp_path, lines)
    config = config.model_copy(
        update={"tokenizer": TokenizerConfig(kind="char", vocabulary_size=30)}
    )
    vocabulary = prepared_quietly(config).tokenizer
    assert len(prepared_quietly(config).train) == 60
    pieces = vocabulary.target_pieces(range(vocabulary.target_vocabulary_size))
    assert {"a", "b"} <= set(pieces)


@pytest.mark.parametrize("name", ["manifest.json", "source.ids.npy", "tokenizer/tokenizer.model"])
@pytest.mark.parametrize("cut", [True, False])
def test_damaged_folder_is_made_again(tmp_path: Path, name: str, cut: bool) -> None:
    config = configured(tmp_path)
    path = prepared_quietly(config).directory / name
    data = path.read_bytes()
    path.unlink()
    if cut:
        path.write_bytes(data[:-9])
    prepared_quietly(config)
    assert path.read_bytes() == data


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (b"a\nb\n", b"a\n", "has 2 lines, .* has 1 line"),
        (b"", b"", "are empty"),
        (b"a\n", b"\xff\n", "text.de:1: not valid UTF-8"),
        (b"a\n", b"b\n", "vocabulary_size is 100, but .* at most"),
        (b"\n\n", b"\n\n", "is blank"),
    ],
)
def test_bad_text_leaves_nothing_behind(
    tmp_path: Path, source: bytes, target: bytes, message: str
) -> None:
    config = configured(tmp_path)
    (tmp_path / "text.en").write_bytes(source)
    (tmp_path / "text.de").write_bytes(target)
    with pytest.raises(DataError, match=message):
        prepared_quietly(config)
    assert folders(tmp_path) == []


def test_text_of_which_nothing_is_left_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"of 60 training pairs none is left \(60 longer than data"):
        prepared_quietly(configured(tmp_path, cleaning=CleaningConfig(max_length=1)))
    assert folders(tmp_path) == []


def test_mistyped_validation_file_is_found_first(tmp_path: Path) -> None:
    config = configured(tmp_path)
    (tmp_path / "text.fr").write_text("a\n")
    text = TextPair(source=str(tmp_path / "text.fr"), target=str(tmp_path / "absent"))
    config = config.model_copy(update={"data": config.data.model_copy(update={"validation": text})})
    with pytest.raises(DataError, match="absent: no such file; check data.validation"):
        prepared_quietly(config)
    assert not (tmp_path / "data").exists()


def test_configuration_without_text_is_refused() -> None:
    with pytest.raises(ConfigError, match="data.train is not given"):
        prepared_quietly(Config())


@pytest.mark.parametrize(("name", "call"), [("add", 1), ("_write_header", 1), ("_write_header", 5)])
def test_full_disk_is_told_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, call: int
) -> None:
    """While ids are written, or when the headers of the four files are: at first, or at last."""
    calls = []

    def full(self: Any, *arguments: Any) -> None:
        calls.append(name)
        if len(calls) == call:
            raise OSError(28, "No space left on device")
        write(self, *arguments)

    write = getattr(_ArrayWriter, name)
    monkeypatch.setattr(_ArrayWriter, name, full)
    with pytest.raises(DataError, match="cannot be written: No space left on device; free some"):
        prepared_quietly(configured(tmp_path))
    assert folders(tmp_path) == []


def test_data_directory_that_is_a_file_is_refused(tmp_path: Path) -> None:
    config = configured(tmp_path)
    (tmp_path / "data").write_text("")
    with pytest.raises(DataError, match="cannot be written: Not a directory"):
        prepared_quietly(config)


def test_prepared_data_can_be_read_from_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    config = configured(tmp_path)
    first = prepared_quietly(config)
    root = tmp_path / "data" / "prepared"
    (root / "hashes.json").unlink()
    root.chmod(0o500)
    try:
        assert prepared_quietly(config).fingerprint == first.fingerprint
    finally:
        root.chmod(0o700)


def test_second_process_finds_what_the_first_one_made(tmp_path: Path) -> None:
    config = configured(tmp_path)
    (tmp_path / "c.yaml").write_text(dump_config(config))
    first = prepared_quietly(config)
    root = tmp_path / "data" / "prepared"
    first.directory.rename(tmp_path / "made")
    script = (
        "import sys\n"
        "from nmt.config_file import load_config\n"
        "from nmt.data.prepared import prepare\n"
        "print(prepare(load_config(sys.argv[1]), lambda m: print(m, flush=True)).fingerprint)\n"
    )
    with locked(root, first.fingerprint, lambda message: None):
        command = [sys.executable, "-c", script, str(tmp_path / "c.yaml")]
        second = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert second.stdout is not None
        assert second.stdout.readline().startswith("waiting for another process")
        (tmp_path / "made").rename(first.directory)
    assert second.communicate(timeout=60) == (f"{first.fingerprint}\n", None)


def test_ctrl_c_while_encoding_leaves_nothing_and_nobody(tmp_path: Path) -> None:
    config = configured(tmp_path, [SentencePair(line, line) for line in LINES * 400])
    (tmp_path / "c.yaml").write_text(dump_config(config))
    script = (
        "import sys, time\n"
        "from nmt.cli import app\n"
        "from nmt.data import parallel_text, prepared\n"
        "if __name__ == '__main__':\n"
        "    parallel_text.BLOCK = 20\n"
        "    prepared.available_cores = lambda: 2\n"
        "    prepared.SideWriter.add = lambda *arguments: time.sleep(0.1)\n"
        "    prepared._PAIRS_PER_PROCESS = 1\n"
        "    sys.argv = ['nmt', 'prepare', '--config', sys.argv[1]]\n"
        "    app.main()\n"
    )
    (tmp_path / "interrupted.py").write_text(script)
    command = [sys.executable, str(tmp_path / "interrupted.py"), str(tmp_path / "c.yaml")]
    # a group of its own, all of which gets the signal, as from a terminal
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stderr is not None
    while "encoding" not in process.stderr.readline():
        assert process.poll() is None
    time.sleep(1)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130, errors
    assert folders(tmp_path) == []
    deadline = time.monotonic() + 10
    while still_running(process.pid):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def still_running(group: int) -> list[str]:
    """The processes of a group that are more than an entry in a table."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, _, fields = stat.read_text().rpartition(")")
            state, _, its_group = fields.split()[:3]
            if int(its_group) == group and state != "Z":
                found.append(name)
    return found
