import json
from pathlib import Path
from typing import Any

import pytest

from nmt.errors import ConfigError, MissingExtraError
from nmt.planning.setting_search import SettingSearch, load_optuna, read_range
from nmt.recipe.variants import Point
from nmt.run.directory import RunDirectory
from tests.training.runs import Recipe

RANGES = dict([read_range("model.dropout=0.0:0.5"), read_range("model.d_ff=8:64:log")])


@pytest.fixture
def build(recipe: Recipe, tmp_path: Path) -> Any:
    """A function that opens the search of this test."""
    return lambda: SettingSearch(RANGES, tmp_path, recipe())


def validate(folder: Path, point: Point, *scores: float) -> None:
    """Write what a training writes: a validation of BLEU every ten steps, and the best score."""
    run = RunDirectory(folder / point.name)
    run.path.mkdir(exist_ok=True)
    records = [
        {"event": "validation", "step": 10 * n, "bleu": bleu} for n, bleu in enumerate(scores, 1)
    ]
    run.metrics.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    run.best.write_text(json.dumps({"bleu": max(scores)}))


def test_ranges_are_whole_numbers_only_if_their_ends_are() -> None:
    assert {key: type(found).__name__ for key, found in RANGES.items()} == {
        "model.dropout": "FloatDistribution",
        "model.d_ff": "IntDistribution",
    }
    assert read_range("model.norm=pre,post")[1].choices == ("pre", "post")
    for wrong in ("a.b=2:1", "a.b=0:1:log", "a.b=1.5:e", "a.b=--1:2"):
        with pytest.raises(ConfigError, match="expected LOW:HIGH"):
            read_range(wrong)


def test_the_search_goes_on_with_what_was_interrupted(build: Any, tmp_path: Path) -> None:
    search = build()
    points = search.points(9, ["seed=3"])
    first, second = next(points), next(points)
    assert first.settings[0] == "seed=3"
    values = dict(setting.split("=") for setting in first.settings[1:])
    assert 0 <= float(values["model.dropout"]) <= 0.5 and 8 <= int(values["model.d_ff"]) <= 64
    validate(tmp_path, first, 12.5)
    assert search.record(first.name, 0) == "bleu 12.5"
    reopened = build()  # the second run was killed
    third, fourth = list(reopened.points(3, ["seed=3"]))
    assert third == second and fourth.name.startswith("trial3-")
    assert reopened.best().startswith("best of 1: trial 1, bleu 12.5: model.d")
    assert reopened.record(third.name, 1) == ""  # failed
    assert [trial.state.name for trial in build().study.trials] == ["COMPLETE", "FAIL", "RUNNING"]


def test_a_run_below_the_median_is_stopped_once(build: Any, tmp_path: Path) -> None:
    search = build()
    points = search.points(7, [])
    for score in (20.0, 21.0, 22.0, 23.0, 24.0):  # so many run to their end in any case
        point = next(points)
        validate(tmp_path, point, score / 2, score)
        assert not search.is_pruned(point.name)
        assert search.record(point.name, 0)
    good, bad = next(points), next(points)
    validate(tmp_path, good, 15.0)
    validate(tmp_path, bad, 5.0)
    assert [search.is_pruned(good.name) for _ in range(2)] == [False, False]
    assert [search.is_pruned(bad.name) for _ in range(2)] == [True, False]
    assert "stopped early" in search.record(bad.name, 143)
    assert search.study.trials[-1].state.name == "PRUNED"


def test_without_optuna_its_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    with pytest.raises(MissingExtraError, match=r"`search` needs .*'nmt\[sweep\]'"):
        load_optuna()
