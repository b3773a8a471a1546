"""A folder of made pairs is the same however often it was interrupted."""

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nmt import files
from nmt.data.text import pair_folder
from nmt.data.text.pair_folder import MadePair, PairFolder, read_manifest, synthetic_text
from nmt.errors import ConfigError, DataError
from nmt.recipe.config import SyntheticText

LANGUAGES = ("en", "de")
FACTS: dict[str, Any] = {"inputs": [{"file": "mono.de"}], "search": {"beam_size": 4}}
PAIRS = [MadePair(f"source {i} \u2028", f"Ziel\t{i}", 0, i + 1, i / 10) for i in range(60)]


def opened(folder: Path, **changes: Any) -> PairFolder:
    return PairFolder(folder, LANGUAGES, {"languages": list(LANGUAGES), **FACTS, **changes})


def add_all(writer: PairFolder, stop: Callable[[], bool] = lambda: False) -> bool:
    while writer.inputs < 30:
        start = writer.inputs
        writer.add(PAIRS[2 * start : 2 * start + 6], inputs=3)  # two pairs of each input
        if stop():
            return False
    return True


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != ".lock"}


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_folder, "PART_PAIRS", 5)


def test_pairs_come_back_in_order_with_their_origin(tmp_path: Path) -> None:
    with opened(tmp_path / "made") as writer:
        assert add_all(writer)
        assert writer.finish(more_facts={"lines_held_out": 3}) == 60
    found = contents(tmp_path / "made")
    assert set(found) == {"text.en", "text.de", "origin.tsv", "pairs.json"}
    assert found["text.en"].decode().split("\n")[:-1] == [pair.source for pair in PAIRS]
    assert found["text.de"].decode().split("\n")[:-1] == [pair.target for pair in PAIRS]
    assert found["origin.tsv"].decode().split("\n")[59] == "mono.de\t60\t5.9000"
    manifest = read_manifest(tmp_path / "made")
    assert (manifest["pairs"], manifest["lines_held_out"]) == (60, 3)


@pytest.mark.parametrize("seed", range(5))
def test_interruptions_change_nothing(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path / "whole") as writer:
        add_all(writer)
        writer.finish(keep=0.5)
    draw = random.Random(seed)
    write_json = files.write_json

    def killed(path: Path, value: Any) -> None:
        if draw.random() < 0.3:
            raise KeyboardInterrupt
        write_json(path, value)

    monkeypatch.setattr(pair_folder, "write_json", killed)
    while not (tmp_path / "broken" / "pairs.json").exists():
        try:
            with opened(tmp_path / "broken") as writer:
                if add_all(writer, stop=lambda: draw.random() < 0.2):
                    writer.finish(keep=0.5)
        except KeyboardInterrupt:
            continue
    with opened(tmp_path / "broken") as writer:  # removes what a killed process left
        assert writer.is_complete
    assert contents(tmp_path / "broken") == contents(tmp_path / "whole")


def test_a_folder_without_pairs_can_be_finished_after_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(path: Path, value: Any) -> None:
        if path.name == "pairs.json":  # the texts, which are empty, have their names already
            raise KeyboardInterrupt
        files.write_json(path, value)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(pair_folder, "write_json", killed)
        with opened(tmp_path / "made") as writer:
            writer.finish()
    with opened(tmp_path / "made") as writer:
        assert writer.finish() == 0
    assert set(contents(tmp_path / "made")) == {"text.en", "text.de", "origin.tsv", "pairs.json"}


@pytest.mark.parametrize("is_begun", [False, True])
def test_leftovers_of_a_killed_process_are_removed(tmp_path: Path, is_begun: bool) -> None:
    """Also those of its first moment, when the folder does not say yet what it is."""
    folder = tmp_path / "made"
    with opened(folder) as writer:
        if is_begun:
            add_all(writer)
    for name in (".job.json.17.tmp", ".pairs.json.17.tmp", ".text.en.tmp", ".origin.tsv.tmp"):
        (folder / name).write_text("ha")
    with opened(folder) as writer:
        add_all(writer)
        writer.finish()
    assert set(contents(folder)) == {"text.en", "text.de", "origin.tsv", "pairs.json"}


def test_keep_chooses_the_lowest_scores(tmp_path: Path) -> None:
    with opened(tmp_path / "made") as writer:
        add_all(writer)
        assert writer.finish(keep=0.25) == 15
    lines = (tmp_path / "made" / "text.en").read_text("utf-8").split("\n")[:-1]
    assert lines == [pair.source for pair in PAIRS[:15]]


def test_other_settings_do_not_continue_it(tmp_path: Path) -> None:
    with opened(tmp_path / "made") as writer:
        add_all(writer)
    message = r"was begun with search.beam_size 4, and now it is 5; choose another folder"
    with pytest.raises(ConfigError, match=message):
        opened(tmp_path / "made", search={"beam_size": 5})


def test_a_folder_of_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("words")
    with pytest.raises(ConfigError, match=r"holds other files \(thesis.txt\); give a new"):
        opened(tmp_path)


def test_two_processes_do_not_write_one_folder(tmp_path: Path) -> None:
    with opened(tmp_path / "made"), pytest.raises(DataError, match="another process writes it"):
        opened(tmp_path / "made")


def test_a_changed_part_is_noticed(tmp_path: Path) -> None:
    with opened(tmp_path / "made") as writer:
        add_all(writer)
    part = tmp_path / "made" / "parts" / "part-00001.jsonl"
    part.write_bytes(part.read_bytes().replace(b"Ziel", b"Zeil"))
    with opened(tmp_path / "made") as writer, pytest.raises(DataError, match="part-00001.*changed"):
        writer.finish()


def test_a_damaged_job_is_named(tmp_path: Path) -> None:
    with opened(tmp_path / "made") as writer:
        add_all(writer)
    (tmp_path / "made" / "job.json").write_text("{")
    with pytest.raises(DataError, match=r"job.json: damaged"):
        opened(tmp_path / "made")


def test_only_complete_folders_of_the_right_direction_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    entry = SyntheticText(folder=str(folder), tags=["bt"])
    with pytest.raises(DataError, match="holds no pairs; expected a folder"):
        synthetic_text(entry, LANGUAGES)
    with opened(folder) as writer:
        add_all(writer)
        with pytest.raises(DataError, match="is not complete: run its command again"):
            synthetic_text(entry, LANGUAGES)
        writer.finish()
    text = synthetic_text(entry, LANGUAGES)
    assert (text.paths, text.tags) == ([f"{folder}/text.en", f"{folder}/text.de"], ["bt"])
    assert text.languages is None  # those of the recipe
    other = synthetic_text(entry.model_copy(update={"tags": ["de"]}), ("en", "fr"))
    assert other.languages == ["en", "de"]
    with pytest.raises(DataError, match=r"holds pairs of en-de, expected de-en"):
        synthetic_text(entry, ("de", "en"))
    manifest = folder / "pairs.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "format": 99}))
    with pytest.raises(DataError, match="newer nmt"):
        synthetic_text(entry, LANGUAGES)
    shutil.rmtree(folder)
