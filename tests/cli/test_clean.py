"""`nmt data clean` writes the pairs that `nmt prepare` keeps, however often it is interrupted."""

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from nmt import files
from nmt.data import clean_corpus, prepared
from nmt.data.text import pair_folder
from nmt.data.text.pair_folder import read_manifest
from nmt.data.tokens import encoding
from nmt.errors import ConfigError, DataError
from nmt.recipe.config import Config
from nmt.recipe.config_file import load_config
from tests.cli.commands import fail, invoke, succeed, write_lines
from tests.killed_commands import command_forks, kill_at_random

CLEANING = "{identical: true, copied: true, numbers: true, duplicates: true, near_duplicates: true}"


def english(number: int) -> str:
    words = ["dog", "cat", "owl", "fox", "cow", "hen"]
    return " ".join(f"{words[(number >> 2 * i) % 6]}{words[(number >> i) % 5]}" for i in range(5))


def german(number: int) -> str:
    words = ["Hund", "Katze", "Eule", "Fuchs", "Kuh", "Huhn"]
    return " ".join(f"{words[(number >> 2 * i) % 6]}s{words[(number >> i) % 5]}" for i in range(5))


@pytest.fixture
def noised(tmp_path: Path, recipe: Path) -> Path:
    """A recipe of 120 pairs: some are empty, copies, repeated, or have other numbers."""
    pairs = [(english(n), german(n)) for n in range(100)]
    pairs[7:7] = [("", "leer"), pairs[3], (english(300), english(300))]
    pairs[60:60] = [("12 34 dogs", "56 Hunde"), (pairs[50][0].upper(), pairs[50][1] + " !")]
    pairs += pairs[:15]
    for side, language in enumerate(("en", "de")):
        write_lines(tmp_path / f"noised.{language}", [pair[side] for pair in pairs])
    text = f"{{source: {tmp_path}/noised.en, target: {tmp_path}/noised.de}}"
    lines = recipe.read_text().replace("data: {", f"data: {{cleaning: {CLEANING}, ")
    start, end = lines.index("train: {"), lines.index(", validation:")
    recipe.write_text(f"{lines[:start]}train: {text}{lines[end:]}")
    return recipe


@pytest.fixture
def reverse(tiny_run: Path, tmp_path: Path) -> Path:
    """The tiny model as one of the opposite direction."""
    folder = Path(shutil.copytree(tiny_run, tmp_path / "reverse"))
    written = (folder / "config.yaml").read_text()
    written = written.replace("source_language: en", "source_language: X")
    written = written.replace("target_language: de", "target_language: en")
    (folder / "config.yaml").write_text(
        written.replace("source_language: X", "source_language: de")
    )
    return folder


def read(path: Path) -> list[str]:
    return path.read_bytes().decode().split("\n")[:-1]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != ".lock"}


def test_the_kept_text_is_what_prepare_keeps(noised: Path, tmp_path: Path) -> None:
    folder = tmp_path / "clean"
    output = succeed("data", "clean", "--config", noised, "-o", folder)
    counts = prepared.prepare(load_config(str(noised), []), lambda message: None).counts
    manifest = read_manifest(folder)
    assert manifest["counts"] == {name: counts[name] for name in manifest["counts"]}
    assert manifest["pairs"] == counts["kept"] < counts["read"]
    assert {rule for rule, number in counts["dropped"].items() if number} == (
        {"empty", "identical", "numbers", "duplicate", "near_duplicate"}
    )
    entry = f"{{source: {folder}/text.en, target: {folder}/text.de}}"
    assert output.endswith(f"\ndata.train: {entry}\n")
    again = prepared.prepare(
        load_config(str(noised), [f"data.train={entry}"]), lambda message: None
    )
    assert again.counts["kept"] == again.counts["read"] == counts["kept"]
    sources = read(tmp_path / "noised.en")
    for text, origin in zip(read(folder / "text.en"), read(folder / "origin.tsv"), strict=True):
        file, line = origin.split("\t")
        assert (file, sources[int(line) - 1]) == (f"{tmp_path}/noised.en", text)


def test_the_report_has_counts_and_examples(noised: Path, tmp_path: Path) -> None:
    command = ("data", "clean", "--config", noised)
    before = sorted(tmp_path.rglob("*"))
    report = succeed(*command, "--dry-run")
    assert sorted(tmp_path.rglob("*")) == before
    assert "left out: with other numbers" in report
    assert f"{tmp_path}/noised.en:61" in report
    assert succeed(*command, "-o", tmp_path / "clean").startswith(report)
    done = invoke(*command, "-o", tmp_path / "clean")
    assert "is complete; nothing to do" in done.stderr
    assert done.stdout.startswith(report)


@pytest.mark.parametrize("seed", range(3))
def test_interruptions_change_nothing(
    noised: Path,
    reverse: Path,
    tiny_run: Path,
    tmp_path: Path,
    seed: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clean_corpus, "WINDOW", 10)
    monkeypatch.setattr(pair_folder, "PART_PAIRS", 20)
    models = ("--model", tiny_run, "--reverse", reverse, "--keep", 0.6)
    command = ("data", "clean", "--config", noised, *models, "-o")
    succeed(*command, tmp_path / "whole")
    draw = random.Random(seed)
    write_json = files.write_json

    def killed(path: Path, value: Any) -> None:
        if draw.random() < 0.4:
            raise DataError("killed")
        write_json(path, value)

    monkeypatch.setattr(pair_folder, "write_json", killed)
    tries = 1
    while invoke(*command, tmp_path / "broken").exit_code:
        tries += 1
    assert tries > 1
    assert contents(tmp_path / "broken") == contents(tmp_path / "whole")


@pytest.mark.slow
def test_50_kills_at_random_moments_change_nothing(
    noised: Path, reverse: Path, tiny_run: Path, tmp_path: Path
) -> None:
    models = ("--model", tiny_run, "--reverse", reverse, "--keep", 0.6)
    folder = tmp_path / "clean"

    def take_results() -> dict[str, bytes]:
        results = contents(folder)
        shutil.rmtree(folder)
        return results

    small = {"nmt.data.clean_corpus.WINDOW": 10, "nmt.data.text.pair_folder.PART_PAIRS": 20}
    with command_forks(small) as forks:
        words = ("data", "clean", "--config", noised, *models, "-o", folder)
        kill_at_random(forks, words, take_results, 50)


def test_the_best_scores_are_kept_and_the_worst_are_examples(
    noised: Path, reverse: Path, tiny_run: Path, tmp_path: Path
) -> None:
    models = ("--model", tiny_run, "--reverse", reverse)
    command = ("data", "clean", "--config", noised, *models)
    succeed(*command, "-o", tmp_path / "all")
    succeed(*command, "-o", tmp_path / "best", "--keep", 0.5)
    rows = [line.split("\t") for line in read(tmp_path / "all" / "origin.tsv")]
    ordered = sorted(rows, key=lambda row: float(row[2]))
    best = ordered[: round(len(rows) / 2)]
    kept = [line.split("\t") for line in read(tmp_path / "best" / "origin.tsv")]
    assert sorted(kept) == sorted(best)
    counts = read_manifest(tmp_path / "best")["counts"]
    assert counts["dropped"]["score"] == len(rows) - len(best)
    assert counts["kept"] == len(best)
    examples = [example["line"] for example in counts["examples"]["score"]]
    assert examples == [int(row[1]) for row in ordered[:-4:-1]]
    dry = succeed(*command, "--keep", 0.5, "--dry-run")
    assert succeed(*command, "-o", tmp_path / "best", "--keep", 0.5).startswith(dry)


def test_processes_share_the_work(
    noised: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    succeed("data", "clean", "--config", noised, "-o", tmp_path / "one")
    monkeypatch.setattr(encoding, "_PAIRS_PER_PROCESS", 50)
    monkeypatch.setattr(encoding, "available_cores", lambda: 2)
    succeed("data", "clean", "--config", noised, "-o", tmp_path / "two")
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_rules_in_tokens_need_a_tokenizer(noised: Path, tmp_path: Path) -> None:
    settings = ("--set", "data.cleaning.max_length=18")
    command = ("data", "clean", "--config", noised, *settings)
    without = invoke(*command, "-o", tmp_path / "without")
    assert "max_length and max_length_ratio are applied when" in without.stderr
    assert read_manifest(tmp_path / "without")["counts"]["dropped"]["too_long"] == 0
    config = load_config(str(noised), [settings[1]])
    model = prepared.prepare(config, lambda message: None).directory / "tokenizer/tokenizer.model"
    adopted = ("--set", f"tokenizer.model={model}")
    succeed(*command, *adopted, "-o", tmp_path / "with")
    found = read_manifest(tmp_path / "with")["counts"]["dropped"]
    counts = prepared.prepare(load_config(str(noised), [settings[1], adopted[1]]), print).counts
    assert found == counts["dropped"]
    assert found["too_long"] > 0


def test_bad_input(noised: Path, tiny_run: Path, reverse: Path, tmp_path: Path) -> None:
    command = ("data", "clean", "--config", noised)
    to = ("-o", tmp_path / "clean")
    assert "give -o FOLDER for the kept" in fail(ConfigError, *command)
    assert "--keep chooses by the scores" in fail(ConfigError, *command, *to, "--keep", 0.5)
    assert "give --model and --reverse" in fail(ConfigError, *command, *to, "--reverse", reverse)
    models = ("--model", tiny_run, "--reverse", tiny_run)
    assert "translates en-de, expected de-en" in fail(ConfigError, *command, *to, *models)
    message = fail(ConfigError, *command, *to, "--model", reverse, "--reverse", tiny_run)
    assert "translates de-en, expected en-de, the languages of the recipe" in message
    missing = f"data.train={{source: {tmp_path}/none, target: {tmp_path}/noised.de}}"
    message = fail(DataError, *command, *to, "--set", missing)
    assert "none: no such file; check data.train in the configuration" in message
    nothing = ("--set", "data.cleaning.source_script=Greek")
    message = fail(DataError, *command, *to, *nothing)
    assert "all 120 training pairs are left out (2 empty, 2 target repeats source, 116" in message
    assert not list((tmp_path / "clean").rglob("*.json*"))
    succeed(*command, *to)
    message = fail(ConfigError, *command, *to, "--set", "data.cleaning.copied=false")
    assert "was begun with cleaning.copied true, and now it is false" in message
    one = f"source: {tmp_path}/noised.en, target: {tmp_path}/noised.de"
    several = f"data.train=[{{{one}}}, {{{one}, weight: 2}}]"
    message = fail(ConfigError, *command, "-o", tmp_path / "other", "--set", several)
    assert "differ in weight, languages, tags or steps" in message


def test_weight_and_tags_stay_in_the_recipe(noised: Path, tmp_path: Path) -> None:
    text = json.dumps(
        {"source": f"{tmp_path}/noised.en", "target": f"{tmp_path}/noised.de", "tags": ["fr"]}
    )
    output = succeed(
        *("data", "clean", "--config", noised, "-o", tmp_path / "clean"),
        *("--set", f"data.train={text}"),
    )
    assert "text.de, tags: ['fr']}" in output
    assert not any(">>" in line for line in read(tmp_path / "clean" / "text.en"))


def test_documents_stay_divided_where_pairs_are_left_out(noised: Path, tmp_path: Path) -> None:
    """Prepared from the cleaned text, the same pairs are joined as from the text itself."""
    context = ["data.context={share: 1.0}"]
    before = _rows(load_config(str(noised), context))
    folder = tmp_path / "clean"
    succeed("data", "clean", "--config", noised, "-o", folder, "--set", *context)
    entry = f"data.train={{source: {folder}/text.en, target: {folder}/text.de}}"
    assert _rows(load_config(str(noised), [entry, *context])) == before


def _rows(config: Config) -> list[str]:
    """What the sources of the prepared data spell, those of their contexts included."""
    data = prepared.prepare(config, lambda message: None)
    rows = [data.train.source.sentence(row).tolist() for row in range(len(data.train))]
    return data.tokenizer.source.decode(rows)
