"""Prepared data hold the text that is worth learning, complete or not at all."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nmt.data import prepared
from nmt.data.corpora.registry import Splits
from nmt.data.corpora.splits import split_files, write_split
from nmt.data.prepared import (
    Prepared,
    describe_augmented,
    find_prepared,
    prepare,
    read_counts,
    training_texts,
)
from nmt.data.text import parallel_text
from nmt.data.text.cleaning import describe_dropped
from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.token_store import SideWriter
from nmt.data.tokens.tokenizer import EOS, Tokenizer
from nmt.data.tokens.vocabulary import learn_vocabulary
from nmt.errors import ConfigError, DataError
from nmt.recipe.config import (
    AugmentationConfig,
    CleaningConfig,
    Config,
    DataConfig,
    TextPair,
    TokenizerConfig,
)
from nmt.recipe.config_file import dump_config

LINES = [f"{'the small dog ' * (n % 5 + 1)}number {n} ." for n in range(60)]


def configure(tmp_path: Path, pairs: list[SentencePair] | None = None, **data: Any) -> Config:
    """Return a configuration whose training text is `pairs`."""
    pairs = pairs or [SentencePair(line, line.upper()) for line in LINES]
    write_split(tmp_path, "text", ("en", "de"), pairs)
    text = split_files(tmp_path, ["text"], ("en", "de"))["text"]
    return Config(
        data=DataConfig(train=[text], validation=[text], directory=str(tmp_path / "data"), **data),
        tokenizer=TokenizerConfig(vocabulary_size=100),
    )


def prepare_quietly(config: Config) -> Prepared:
    return prepare(config, lambda message: None)


def folders(tmp_path: Path) -> list[str]:
    """Return what lies in data/prepared beside the hidden locks and the hashes of files."""
    found = (tmp_path / "data" / "prepared").glob("[!.]*")
    return [path.name for path in found if path.name != "hashes.json"]


@pytest.mark.parametrize("block", [1, 7, 60])
def test_the_store_holds_the_text_in_order_whatever_the_size_of_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(parallel_text, "BLOCK", block)
    data = prepare_quietly(configure(tmp_path))
    assert data.directory == tmp_path / "data" / "prepared" / data.fingerprint
    sources, targets = (
        [side.sentence(i).tolist() for i in range(len(data.train))]
        for side in (data.train.source, data.train.target)
    )
    assert sources == data.tokenizer.source.encode(LINES)
    assert data.tokenizer.target.decode(targets) == [line.upper() for line in LINES]
    assert all(row[-1] == EOS for row in (*sources, *targets))
    assert data.counts["source_tokens"] == data.train.source.lengths.sum()
    assert data.counts["target_tokens"] == data.train.target.lengths.sum()


def test_a_second_call_does_nothing_and_counts_are_read_without_the_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = configure(tmp_path)
    messages: list[str] = []
    first = prepare(config, messages.append)
    assert len(messages) == 2
    with monkeypatch.context() as patch:
        patch.setattr(prepared, "_prepare_folder", None)
        second = prepare(config, messages.append)
    assert len(messages) == 2
    assert (second.directory, second.counts) == (first.directory, first.counts)
    smaller = config.model_copy(update={"tokenizer": TokenizerConfig(vocabulary_size=60)})
    other = prepare_quietly(smaller)
    assert {first.fingerprint, other.fingerprint} == set(folders(tmp_path))
    assert (first.tokenizer.source.size, other.tokenizer.source.size) == (100, 60)
    (tmp_path / "text.en").unlink()
    assert read_counts(first.directory) == first.counts
    (first.directory / "source.ids.npy").write_bytes(b"")
    for folder in (first.directory, tmp_path / "nowhere"):
        with pytest.raises(DataError, match=f"{folder}: no prepared data here; `nmt prepare`"):
            read_counts(folder)


@pytest.mark.parametrize("version", [None, 1, 2])
def test_only_a_folder_of_a_newer_format_is_refused(tmp_path: Path, version: int | None) -> None:
    config = configure(tmp_path)
    path = prepare_quietly(config).directory / "manifest.json"
    manifest = {**json.loads(path.read_text()), "format": version}
    path.write_text(json.dumps({k: v for k, v in manifest.items() if v is not None}))
    if version == 2:
        message = r"written by a newer nmt \(format 2; this one knows up to 1\): update nmt or"
        for read in (prepare_quietly, find_prepared, lambda _: read_counts(path.parent)):
            with pytest.raises(DataError, match=message):
                read(config)
    else:
        before = path.read_bytes()
        found = find_prepared(config)
        assert found is not None and found.counts == prepare_quietly(config).counts
        assert path.read_bytes() == before


def test_each_text_is_cleaned_in_its_own_languages() -> None:
    text = TextPair(source="a", target="b")
    french = TextPair(source="a", target="b", languages=["de", "fr"])
    config = Config(data=DataConfig(cleaning=CleaningConfig(language=True)))
    texts = training_texts(config, Splits([text, french], [], []))
    german = "Der Hund schläft seit drei Stunden auf dem Teppich."
    english = "The dog has been sleeping on the carpet for three hours."
    pairs = SentencePair(english, german), SentencePair(german, "Le chien dort sur le tapis.")
    reasons = [[text.cleaner().reason(pair) for pair in pairs] for text in texts]
    assert reasons == [[None, "language"], ["language", None]]


def test_pairs_left_out_are_counted_by_reason(tmp_path: Path) -> None:
    good = [SentencePair(line, line) for line in LINES]
    empty = [SentencePair("", "dog"), SentencePair("dog", " \u00a0 "), SentencePair("\u200b", "a")]
    long = [SentencePair("the dog " * 50, "dog"), SentencePair("dog", "the dog " * 50)]
    uneven = [SentencePair("the small dog " * 4, "dog")]
    limits = CleaningConfig(max_length=50, max_length_ratio=4.0)
    config = configure(tmp_path, [*empty, *good, *long, *uneven], cleaning=limits)
    counts = prepare_quietly(config).counts
    dropped = {"empty": 3, "too_long": 2, "length_ratio": 1}
    assert (counts["read"], counts["kept"]) == (66, 60)
    assert {k: n for k, n in counts["dropped"].items() if n} == dropped
    assert json.loads(json.dumps(counts)) == counts
    longest = int(prepare_quietly(configure(tmp_path)).train.target.lengths.max()) - 1
    limits = CleaningConfig(max_length=longest)
    all_kept = prepare_quietly(configure(tmp_path, cleaning=limits)).counts
    assert (all_kept["kept"], describe_dropped(all_kept)) == (60, "none left out")
    assert describe_dropped(counts) == (
        "3 empty, 2 longer than data.cleaning.max_length, 1 beyond data.cleaning.max_length_ratio"
    )


def test_the_vocabulary_is_learnt_from_a_spread_of_a_large_corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepared, "VOCABULARY_PAIRS", 20)
    lines = [SentencePair(f"{'ab'[n % 2 == 0]} {n}", f"b {n}") for n in range(60)]
    characters = TokenizerConfig(kind="char", vocabulary_size=30)
    config = configure(tmp_path, lines).model_copy(update={"tokenizer": characters})
    data = prepare_quietly(config)
    assert len(data.train) == 60
    assert {"a", "b"} <= set(data.tokenizer.target.pieces)


def test_a_damaged_folder_is_made_again(tmp_path: Path) -> None:
    config = configure(tmp_path)
    for name in ("manifest.json", "source.ids.npy", "tokenizer/tokenizer.model"):
        path = prepare_quietly(config).directory / name
        data = path.read_bytes()
        for left in (b"", data[:-9]):
            path.unlink()
            if left:
                path.write_bytes(left)
            prepare_quietly(config)
            assert path.read_bytes() == data


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (b"a\nb\n", b"a\n", "has 2 lines, .* has 1 line"),
        (b"", b"", "are empty"),
        (b"a\n", b"\xff\n", "text.de:1: not valid UTF-8"),
        (b"a\n", b"b\n", "vocabulary_size is 100, but .* at most"),
        (b"\n\n", b"\n\n", r"all 2 training pairs are left out \(2 empty\); check the text and"),
        (None, None, r"all 60 training pairs are left out \(60 longer than"),
    ],
)
def test_bad_text_leaves_nothing_behind(
    tmp_path: Path, source: bytes | None, target: bytes | None, message: str
) -> None:
    config = configure(tmp_path, cleaning=CleaningConfig(max_length=1))
    for name, data in (("text.en", source), ("text.de", target)):
        if data is not None:
            (tmp_path / name).write_bytes(data)
    with pytest.raises(DataError, match=message):
        prepare_quietly(config)
    assert folders(tmp_path) == []


def test_a_text_that_changes_while_it_is_read_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = configure(tmp_path)

    def learn_and_append(*arguments: Any) -> Tokenizer:
        for path in config.data.train[0].paths:
            with open(path, "a") as file:
                file.write("one line more\n")
        return learn_vocabulary(*arguments)

    monkeypatch.setattr(prepared, "learn_vocabulary", learn_and_append)
    with pytest.raises(DataError, match="text.de: changed while it was read; run the command"):
        prepare_quietly(config)
    assert folders(tmp_path) == []
    monkeypatch.undo()
    assert prepare_quietly(config).counts["read"] == len(LINES) + 1


def test_a_missing_training_text_or_validation_file_is_found_first(tmp_path: Path) -> None:
    config = configure(tmp_path)
    text = TextPair(source=str(tmp_path / "text.en"), target=str(tmp_path / "absent"))
    config = config.model_copy(
        update={"data": config.data.model_copy(update={"validation": [text]})}
    )
    with pytest.raises(DataError, match="absent: no such file; check data.validation"):
        prepare_quietly(config)
    assert not (tmp_path / "data").exists()
    with pytest.raises(ConfigError, match="data.train is not given"):
        prepare_quietly(Config())


@pytest.mark.parametrize(("name", "call"), [("add", 1), ("write_headers", 1), ("write_headers", 3)])
def test_a_full_disk_or_a_file_in_the_place_of_the_folder_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, call: int
) -> None:
    """The disk is full while ids are written, or the headers of the files at either end."""
    calls = []

    def fail(self: Any, *arguments: Any) -> None:
        calls.append(name)
        if len(calls) == call:
            raise OSError(28, "No space left on device")
        write(self, *arguments)

    write = getattr(SideWriter, name)
    monkeypatch.setattr(SideWriter, name, fail)
    config = configure(tmp_path)
    with pytest.raises(DataError, match="cannot be written: No space left on device; free some"):
        prepare_quietly(config)
    assert folders(tmp_path) == []
    (tmp_path / "data").rename(tmp_path / "other")
    (tmp_path / "data").write_text("")
    with pytest.raises(DataError, match="cannot be written: Not a directory"):
        prepare_quietly(config)


def test_prepared_data_can_be_read_from_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    config = configure(tmp_path)
    first = prepare_quietly(config)
    root = tmp_path / "data" / "prepared"
    (root / "hashes.json").unlink()
    root.chmod(0o500)
    try:
        assert prepare_quietly(config).fingerprint == first.fingerprint
    finally:
        root.chmod(0o700)


def test_data_that_another_process_made_meanwhile_are_not_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = configure(tmp_path)
    first = prepare_quietly(config)
    first.directory.rename(tmp_path / "made")

    @contextlib.contextmanager
    def wait_for_other_process(directory: Path, name: str, log: object) -> Iterator[None]:
        (tmp_path / "made").rename(directory / name)
        yield

    monkeypatch.setattr(prepared, "locked", wait_for_other_process)
    monkeypatch.setattr(prepared, "_prepare_folder", None)
    assert prepare_quietly(config).fingerprint == first.fingerprint


@pytest.mark.parametrize("moment", ["encoding", "writing"])
def test_ctrl_c_leaves_no_folder_no_process_and_no_traceback(tmp_path: Path, moment: str) -> None:
    """Ctrl-C comes while the processes that encode are starting, or while their ids are written."""
    config = configure(tmp_path, [SentencePair(line, line) for line in LINES * 400])
    (tmp_path / "c.yaml").write_text(dump_config(config))
    (tmp_path / "script.py").write_text(
        "import sys, time\n"
        "from nmt.cli import app\n"
        "from nmt.data.text import parallel_text\n"
        "from nmt.data.tokens import encoding, token_store\n"
        "def write_slowly(*arguments):\n"
        "    print('writing', file=sys.stderr, flush=True)\n"
        "    time.sleep(0.1)\n"
        "if __name__ == '__main__':\n"
        "    parallel_text.BLOCK = 20\n"
        "    encoding.available_cores = lambda: 2\n"
        "    token_store.SideWriter.add = write_slowly\n"
        "    encoding._PAIRS_PER_PROCESS = 1\n"
        "    app.main()\n"
    )
    script, recipe = str(tmp_path / "script.py"), str(tmp_path / "c.yaml")
    process = subprocess.Popen(
        [sys.executable, script, "prepare", "--config", recipe],
        text=True,
        stderr=subprocess.PIPE,
        start_new_session=True,  # a terminal sends the signal to a whole group of processes
    )
    assert process.stderr is not None
    assert any(moment in line for line in process.stderr)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert folders(tmp_path) == []
    deadline = time.monotonic() + 60
    while running_in(process.pid):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def running_in(group: int) -> list[str]:
    """Return the names of the processes of a group that have not ended."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, _, fields = stat.read_text().rpartition(")")
            state, _, its_group = fields.split()[:3]
            if int(its_group) == group and state != "Z":
                found.append(name)
    return found


def test_steps_change_no_prepared_data(tmp_path: Path) -> None:
    config = configure(tmp_path)
    before = prepare_quietly(config)
    [text] = config.data.train
    later = text.model_copy(update={"after_step": 50, "weight": 3})
    data = config.data.model_copy(update={"train": [text, later]})
    both = prepare_quietly(config.model_copy(update={"data": data}))
    data = config.data.model_copy(update={"train": [text, text]})
    assert both.fingerprint == prepare_quietly(config.model_copy(update={"data": data})).fingerprint
    assert [stage.start for stage in before.stages] == [0]
    assert [stage.start for stage in both.stages] == [0, 50]


def test_augmented_pairs_replace_theirs_and_are_counted(tmp_path: Path) -> None:
    """The vocabulary is learnt from them, so it has the letters that only they have."""
    lines = [SentencePair(f"a dog {n} .", f"ein hund {n} .") for n in range(400)]
    plain = prepare_quietly(configure(tmp_path, lines))
    assert "augmented" in plain.counts and describe_augmented(plain.counts) == ""
    rates = AugmentationConfig(upper=0.25, no_final_punctuation=0.25)
    data = prepare_quietly(configure(tmp_path, lines, augmentation=rates))
    assert data.fingerprint != plain.fingerprint
    sources, targets = (
        tokenizer.decode([side.sentence(i).tolist() for i in range(400)])
        for tokenizer, side in (
            (data.tokenizer.source, data.train.source),
            (data.tokenizer.target, data.train.target),
        )
    )
    forms = {"upper": 0, "no_final_punctuation": 0}
    for found, line in zip(zip(sources, targets, strict=True), lines, strict=True):
        source, target = line
        if found == (source.upper(), target.upper()):
            forms["upper"] += 1
        elif found == (source[:-2], target[:-2]):
            forms["no_final_punctuation"] += 1
        else:
            assert found == line
    assert all(60 < number < 140 for number in forms.values())
    assert data.counts["augmented"] == forms
    upper, final = forms.values()
    assert describe_augmented(data.counts) == f"{upper} upper, {final} no_final_punctuation"
    assert data.counts["kept_of_each_text"] == [400]
