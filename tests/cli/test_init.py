"""`nmt init`: from two files to a recipe that trains."""

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from nmt.data.corpora import demo_corpus
from nmt.data.text.lines import raw_lines
from nmt.errors import ConfigError, DataError, NmtError
from nmt.planning import first_recipe
from nmt.recipe.config import ContextConfig
from nmt.recipe.config_file import load_config
from tests.cli.commands import fail, invoke, succeed, write_lines
from tests.machine_speed import constant_speed


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Two files of 1,500 lines in the current directory."""
    monkeypatch.chdir(tmp_path)
    rows = [" ".join(["again"] * (n % 7)) for n in range(1500)]
    source = (f"the dog {n} is here {row}" for n, row in enumerate(rows))
    target = (f"der Hund {n} ist hier {row}" for n, row in enumerate(rows))
    return write_lines(Path("all.en"), source), write_lines(Path("all.de"), target)


@pytest.fixture(autouse=True)
def known_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine of a known speed, so that nothing has to be measured."""
    monkeypatch.setattr(first_recipe, "probe", lambda *_: constant_speed(0.5))


def init(*arguments: str | Path) -> str:
    """Run the command; returns what it says on stderr."""
    result = invoke("init", *arguments)
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stderr


def test_a_recipe_and_its_parts_are_written(texts: tuple[Path, Path]) -> None:
    said = init(*texts, "-o", "mine.yaml", "--minutes", "1")
    config = load_config("mine.yaml")
    assert config.data.languages == ("en", "de")
    texts_of = (*config.data.train, *config.data.validation, *config.data.test)
    assert all(Path(path).is_file() for text in texts_of for path in text.paths)
    assert "1,500 pairs, en" in said
    assert "train with: nmt train --config mine.yaml" in said


def test_documents_are_split_off_whole_and_learnt_with_their_context(
    texts: tuple[Path, Path],
) -> None:
    for text in texts:
        lines = text.read_text().splitlines()
        write_lines(
            text, [line for n, row in enumerate(lines) for line in [row, *[""] * (n % 5 == 4)]]
        )
    init(*texts, "-o", "mine.yaml", "--minutes", "1", "--documents")
    config = load_config("mine.yaml")
    assert config.data.context == ContextConfig()
    assert not config.data.cleaning.duplicates
    [test] = config.data.test
    lines = Path(test.paths[0]).read_text().split("\n\n")
    assert all(len(document.splitlines()) == 5 for document in lines if document)


def test_a_file_name_that_a_recipe_cannot_hold_is_told(texts: tuple[Path, Path]) -> None:
    source, target = texts
    other = source.rename("\udce9.en")
    files: tuple[str | Path, ...]
    for files in ((other, target), (target, target, "--test", target, other)):
        message = fail(DataError, "init", *files)
        assert (
            message
            == "'\\udce9.en': the name of this file or folder is not UTF-8; give it another one"
        )


def test_a_pipe_cannot_be_read_twice(texts: tuple[Path, Path]) -> None:
    os.mkfifo("pipe.en")
    for files in (("pipe.en", "all.de"), ("all.en", "all.de", "--test", "pipe.en", "all.de")):
        message = fail(DataError, "init", *files)
        assert message == (
            "pipe.en: is a pipe or a device, and this text is read more than once; write it to a "
            "file first"
        )


def test_given_sets_are_used_and_nothing_is_split_off(texts: tuple[Path, Path]) -> None:
    init(*texts, "--validation", *texts, "--test", *texts, "-o", "mine.yaml", "--minutes", "1")
    config = load_config("mine.yaml")
    assert config.data.train[0].paths == config.data.test[0].paths == ["all.en", "all.de"]
    assert not Path("mine-text").exists()


def test_a_known_corpus_brings_its_own_sets(
    texts: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_corpus, "TRAIN_PAIRS", 2000)
    init("demo", "-o", "demo.yaml", "--minutes", "3", "--size", "tiny")
    config = load_config("demo.yaml")
    assert (config.data.corpus, config.model.d_model) == ("demo", 128)


def test_a_slow_and_busy_machine_is_warned_of(
    texts: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = replace(constant_speed(60), waiting=0.5)
    monkeypatch.setattr(first_recipe, "probe", lambda *_: slow)
    said = init(*texts, "-o", "mine.yaml", "--minutes", "1")
    assert "warning: other processes used the processor for 50%" in said
    assert "warning: 50 steps of this model take more than 1 min here" in said
    assert load_config("mine.yaml").training.max_steps == 50


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ("missing.en all.de", DataError, "missing.en"),
        ("empty.en empty.de", DataError, "empty"),
        ("short.en all.de", DataError, "3 lines.*1500 lines"),
        ("all.de all.en --languages en-de", ConfigError, "swapped"),
        ("all.en all.en", DataError, "the same in most lines"),
        ("blank.en all.de", DataError, "all.de: no pair has text on both sides; check which files"),
        ("all.en all.de -o all.en", ConfigError, "all.en exists"),
        ("all.en all.de --hub a/b", ConfigError, "name one text"),
        ("", ConfigError, "name one text.*got nothing"),
        ("dem", ConfigError, "did you mean 'demo'"),
    ],
)
def test_wrong_input_is_one_sentence(
    texts: tuple[Path, Path], wrong: str, error: type[NmtError], message: str
) -> None:
    write_lines(Path("short.en"), "abc")
    for name in ("empty.en", "empty.de"):
        write_lines(Path(name), [])
    write_lines(Path("blank.en"), [""] * 1500)
    before = sorted(Path().iterdir())
    assert re.search(message, fail(error, "init", "-o", "mine.yaml", *wrong.split()), re.DOTALL)
    assert sorted(Path().iterdir()) == before


def test_the_folder_of_another_recipe_is_not_overwritten(texts: tuple[Path, Path]) -> None:
    Path("mine-text").mkdir()
    assert "mine-text exists" in fail(ConfigError, "init", *texts, "-o", "mine.yaml")


SCRIPTS = [
    *("zho_simpl", "mya", "amh"),
    *(pytest.param(name, marks=pytest.mark.slow) for name in ("jpn", "kor")),
]
"""languages that differ in their number of characters, and in spaces between words"""
SMALL_TRAINING = {
    "model": "d_model=32 heads=2 d_ff=64 encoder_layers=1 decoder_layers=1",
    "training": "max_steps=20 warmup_steps=5 cooldown_steps=0 batch_tokens=512 validate_every=20",
    "decoding": "beam_size=1 max_length_offset=0",
}


def write_flores(test_data: Path, pair: tuple[str, str]) -> list[str]:
    """Write both sides of FLORES-101 into the current folder, named by their codes there."""
    for code in pair:
        lines = raw_lines(test_data / "flores101" / f"{code}.devtest.xz")
        Path(f"all.{code}").write_bytes(b"".join(lines))
    return [f"all.{code}" for code in pair]


@pytest.mark.parametrize("language", SCRIPTS)
def test_what_is_written_for_any_script_can_be_prepared(
    test_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, language: str
) -> None:
    monkeypatch.chdir(tmp_path)
    init(*write_flores(test_data, ("eng", language)), "-o", "mine.yaml")
    config = load_config("mine.yaml")
    assert config.data.languages == ("eng", language)
    assert config.tokenizer.byte_fallback == (language != "amh")
    succeed("prepare", "--config", "mine.yaml")
    report = json.loads(succeed("data", "inspect", "--config", "mine.yaml", "--json"))
    assert report["counts"]["dropped"]["length_ratio"] == 0
    assert report["target"]["unknown_rate"] < 0.001
    assert report["length_ratios"]["1"] > 1 / (config.data.cleaning.max_length_ratio or 0)


@pytest.mark.slow
def test_what_is_written_for_any_language_trains(
    test_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """English to each language of FLORES-101, and each to the next: a quarter of an hour."""
    files = (test_data / "flores101").glob("*.devtest.xz")
    codes = sorted(f.name.partition(".")[0] for f in files if sum(1 for _ in raw_lines(f)) == 1012)
    pairs = [("eng", code) for code in codes if code != "eng"]
    pairs += list(zip(codes[::5], codes[5::5], strict=False))
    assert len(pairs) > 115
    for pair in pairs:
        folder = tmp_path / "-".join(pair)
        folder.mkdir()
        monkeypatch.chdir(folder)
        init(*write_flores(test_data, pair), "-o", "mine.yaml")
        settings = [
            part
            for section, values in SMALL_TRAINING.items()
            for value in values.split()
            for part in ("--set", f"{section}.{value}")
        ]
        succeed("train", "--config", "mine.yaml", "--run-dir", "run", *settings)


def test_a_translation_memory_names_its_languages(texts: tuple[Path, Path]) -> None:
    pairs = zip(
        *([line.decode().strip() for line in raw_lines(side)] for side in texts), strict=True
    )
    units = [
        f'<tu><tuv xml:lang="de-AT"><seg>{target}</seg></tuv>'
        f'<tuv xml:lang="en"><seg>{source}</seg></tuv></tu>'
        for source, target in pairs
    ]
    head = '<tmx version="1.4"><header srclang="en"/><body>'
    file = write_lines(Path("memory.tmx"), [head, *units, "</body></tmx>"])
    said = init(file, "-o", "mine.yaml", "--minutes", "1")
    assert load_config("mine.yaml").data.languages == ("en", "de_AT")
    assert "1,500 pairs, en" in said
    init(file, "-o", "back.yaml", "--minutes", "1", "--languages", "de-en")
    assert load_config("back.yaml").data.languages == ("de", "en")
