"""`nmt runs`: one format at a time; tests/report/test_runs.py has what stands in them."""

import csv
import json
from pathlib import Path

import pytest

from nmt.errors import ConfigError, DataError
from tests.cli.commands import fail, lines_of, succeed
from tests.report.test_runs import write_run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for seed in (1, 2):
        write_run(tmp_path / f"base-seed{seed}", 30.0 + seed, f"seed={seed}")
    return tmp_path


def test_each_format_has_its_output(folder: Path) -> None:
    assert succeed("runs", folder).startswith("mean ± standard deviation of the runs with equal")
    assert lines_of("runs", folder, "--latex")[1] == r"\begin{tabular}{lrr}"
    assert lines_of("runs", folder, "--markdown")[0].startswith("|  | runs | validation BLEU |")
    rows = list(csv.DictReader(lines_of("runs", folder, "--csv", "--sort=-BLEU")))
    assert [row["run"] for row in rows] == ["base-seed2", "base-seed1"]
    found = json.loads(succeed("runs", folder, "--json"))
    assert found["groups"][0]["BLEU"] == [31, 32] and len(found["runs"]) == 2


def test_a_study_that_has_just_begun_has_no_table_for_a_paper(folder: Path) -> None:
    for seed in (1, 2):
        (folder / f"base-seed{seed}" / "best.json").unlink()
    assert "base-seed1 is unfinished: step 8 of 8" in succeed("runs", folder)
    assert "no run is done" in fail(ConfigError, "runs", folder, "--latex")
    assert "give one of" in fail(ConfigError, "runs", folder, "--latex", "--csv")
    assert "no such column" in fail(DataError, "runs", folder, "--sort", "none")
