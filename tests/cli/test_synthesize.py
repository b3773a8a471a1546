"""`nmt synthesize` makes training text, and a recipe learns from it."""

import os
import shutil
from pathlib import Path

import pytest

from nmt.data.text.pair_folder import read_manifest
from nmt.data.tokens.tokenizer import Tokenizer
from nmt.errors import ConfigError, DataError
from tests.cli.commands import fail, invoke, lines_of, succeed, write_lines
from tests.killed_commands import command_forks, kill_at_random

LINES = ["a small dog", "", "a dog", "the cat runs", "a\u2028b", "an owl"]


@pytest.fixture
def text(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "mono.en", LINES)


def read(path: Path) -> list[str]:
    return path.read_bytes().decode().split("\n")[:-1]


def test_the_text_is_the_target_and_its_translation_the_source(
    tiny_run: Path, text: Path, tmp_path: Path
) -> None:
    result = invoke("synthesize", "--model", tiny_run, "-i", text, "-o", tmp_path / "made")
    expected = [line for line in LINES if line and line != "a dog"]  # that is in its test set
    translations = lines_of("translate", "--model", tiny_run, text="\n".join(expected))
    kept = [n for n, translation in enumerate(translations) if translation.strip()]
    assert read(tmp_path / "made" / "text.en") == [expected[n] for n in kept]
    assert read(tmp_path / "made" / "text.de") == [translations[n] for n in kept]
    assert f"{len(kept)} pairs, de-en; 1 lines of a validation or test set" in result.stderr
    origin = read(tmp_path / "made" / "origin.tsv")
    assert origin[0] == f"{text}\t1"
    again = invoke("synthesize", "--model", tiny_run, "-i", text, "-o", tmp_path / "made")
    assert "is complete; nothing to do" in again.stderr


def test_options_change_the_pairs(tiny_run: Path, text: Path, tmp_path: Path) -> None:
    long = write_lines(tmp_path / "long.en", [f"{'the owl sees ' * 4}{n}" for n in range(30)])
    sources = {}
    ways: dict[str, list[str | int]] = {
        "back": [],
        "noise": ["--noise"],
        "sample": ["--sample", "--top-k", 5],
        "forward": ["--forward"],
    }
    for name, options in ways.items():
        folder = tmp_path / name
        succeed("synthesize", "--model", tiny_run, "-i", long, "-o", folder, *options)
        manifest = read_manifest(folder)
        sources[name] = read(folder / "text.de")
        assert manifest["languages"] == (["en", "de"] if name == "forward" else ["de", "en"])
    assert sources["back"] == sources["forward"]
    assert sources["noise"] != sources["back"] != sources["sample"]


def test_pairs_on_which_two_models_agree_are_kept(
    tiny_run: Path, text: Path, tmp_path: Path
) -> None:
    reverse = Path(shutil.copytree(tiny_run, tmp_path / "reverse"))
    recipe = reverse / "config.yaml"
    written = recipe.read_text().replace("source_language: en", "source_language: X")
    written = written.replace("target_language: de", "target_language: en")
    recipe.write_text(written.replace("source_language: X", "source_language: de"))
    command = ["synthesize", "--model", tiny_run, "-i", text, "-o", tmp_path / "made"]
    succeed(*command, "--reverse", reverse, "--keep", 0.5)
    scores = [float(line.split("\t")[2]) for line in read(tmp_path / "made" / "origin.tsv")]
    assert len(scores) == 2
    assert all(score > 0 for score in scores)
    message = fail(ConfigError, *command[:-1], tmp_path / "other", "--reverse", tiny_run)
    assert "translates en-de, expected de-en, the opposite of --model" in message


@pytest.mark.slow
def test_50_kills_at_random_moments_change_nothing(tiny_run: Path, tmp_path: Path) -> None:
    text = write_lines(tmp_path / "long.en", [f"{'the owl sees ' * 4}{n}" for n in range(200)])
    folder = tmp_path / "made"

    def take_results() -> dict[str, bytes]:
        files = [path for path in folder.iterdir() if path.name != ".lock"]
        results = {path.name: path.read_bytes() for path in files}
        shutil.rmtree(folder)
        return results

    small = {
        "nmt.translation.synthesis.WINDOW_LINES": 5,
        "nmt.data.text.pair_folder.PART_PAIRS": 10,
    }
    with command_forks(small) as forks:
        words = ("synthesize", "--model", tiny_run, "-i", text, "-o", folder, "--workers", 1)
        kill_at_random(forks, words, take_results, 50)


def test_bad_input(tiny_run: Path, text: Path, tmp_path: Path) -> None:
    command = ["synthesize", "--model", tiny_run, "-o", tmp_path / "made"]
    assert "no such file" in fail(DataError, *command, "-i", tmp_path / "none")
    os.mkfifo(tmp_path / "pipe")  # the second reading would find nothing: no pair, no error
    assert "is a pipe or a device" in fail(DataError, *command, "-i", tmp_path / "pipe")
    empty = write_lines(tmp_path / "empty", [])
    assert "no text; expected one sentence a line" in fail(DataError, *command, "-i", empty)
    assert "--keep chooses by" in fail(ConfigError, *command, "-i", text, "--keep", 0.5)
    assert "--noise is for sources" in fail(
        ConfigError, *command, "-i", text, "--noise", "--forward"
    )


def test_a_line_that_is_not_utf8_is_named_before_the_folder_is_made(
    tiny_run: Path, text: Path, tmp_path: Path
) -> None:
    text.write_bytes(text.read_bytes() + b"th\xe9\n")
    command = ("synthesize", "--model", tiny_run, "-i", text, "-o", tmp_path / "made")
    assert f"{text}:{len(LINES) + 1}: not valid UTF-8" in fail(DataError, *command)
    assert not (tmp_path / "made").exists()


def test_a_file_name_that_is_not_utf8_is_an_error_before_the_folder_is_made(
    tiny_run: Path, text: Path, tmp_path: Path
) -> None:
    unnamed = text.rename(tmp_path / "mono\udcff.de")
    made = tmp_path / "made"
    message = fail(DataError, "synthesize", "-m", tiny_run, "-i", unnamed, "-o", made)
    assert "is not UTF-8; give it another one" in message
    assert not made.exists()


def test_a_recipe_learns_synthetic_text_with_its_tags_and_ratio(
    tiny_run: Path, recipe: Path, tmp_path: Path
) -> None:
    lines = [f"number {n} of the small dog" for n in range(20)] + ["number 6 ."]  # validation text
    mono = write_lines(tmp_path / "mono.en", lines)
    succeed("synthesize", "--model", tiny_run, "-i", mono, "-o", tmp_path / "made", "--forward")
    entry = f"[{{folder: {tmp_path}/made, ratio: 0.5, tags: [bt]}}]"
    run = tmp_path / "run"
    result = invoke(
        *("train", "--config", recipe, "--run-dir", run, "--set", f"data.synthetic={entry}"),
        *("--set", "training.score_test_set=false"),
    )
    assert result.exit_code == 0, result.output
    assert "1 of the validation or test set" in result.stderr
    assert list(Tokenizer.load(run / "tokenizer").source.tags) == [">>bt<<"]


def test_a_tag_that_the_vocabulary_lacks(recipe: Path, tmp_path: Path) -> None:
    succeed("prepare", "--config", recipe)
    [model] = tmp_path.glob("data/prepared/*/tokenizer/tokenizer.model")
    settings = [
        *("--set", f"tokenizer.model={model}"),
        *(
            "--set",
            f"data.train={{source: {tmp_path}/text.en, target: {tmp_path}/text.de, tags: [fr]}}",
        ),
    ]
    message = fail(ConfigError, "prepare", "--config", recipe, *settings)
    assert "the vocabulary has no tag >>fr<< (its tags: none)" in message
