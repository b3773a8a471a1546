"""`nmt plan` prints a plan and writes nothing."""

from pathlib import Path

import pytest

from tests.cli.commands import lines_of, records_of


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_plan_without_a_probe_is_text(tmp_path: Path) -> None:
    lines = lines_of("plan", "--config", "base.yaml", "--no-probe")
    headings = [line.split("  ")[0] for line in lines if line[0] != " "]
    expected = "parameters, data, memory, arithmetic, time here, on one GPU, disk, the paper"
    assert ", ".join(headings) == expected
    assert not list(tmp_path.iterdir())


def test_a_small_recipe_is_measured_as_json(tmp_path: Path) -> None:
    settings = ("model.d_model=16", "model.d_ff=16", "training.batch_tokens=100")
    options = [word for setting in settings for word in ("--set", setting)]
    options += ["--set", "training.threads=1", "--set", "training.max_steps=1000"]
    [found] = records_of("plan", "--config", "demo.yaml", "--json", *options)
    assert found["speed"]["target_tokens"] > 0 and found["time"]["total"] > 0
    assert found["workload"]["pairs"] == 32_000
    assert not list(tmp_path.iterdir())
