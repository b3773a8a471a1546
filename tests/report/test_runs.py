"""Runs of what `nmt runs` reads alone: settings, figures, and weights of 26 numbers."""

import csv
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from nmt.errors import DataError
from nmt.recipe.config_file import dump_config, parse_config
from nmt.report.run_tables import (
    escape_latex,
    render_csv,
    render_latex,
    render_markdown,
    render_text,
)
from nmt.report.runs import DONE, doubts_about_seeds, group_runs, read_runs, sort_rows
from nmt.run.directory import RunDirectory

RECIPE = """
data: {train: {source: a_1.en, target: a.de}, validation: {source: a_1.en, target: a.de},
  test: {source: a_1.en, target: a.de}}
training: {max_steps: 8, warmup_steps: 2}
"""
SIGNATURE = "nrefs:1|tok:13a|version:2.6.0"


def write_run(path: Path, bleu: float, *settings: str, sha256: str = "ab" * 32) -> RunDirectory:
    """Write a run that is done."""
    run = RunDirectory(path)
    run.checkpoint(8).mkdir(parents=True)
    run.averaged.mkdir()
    weights = {"a": np.zeros((4, 5), np.float32), "b": np.zeros(6, np.float32)}
    safetensors.numpy.save_file(weights, run.averaged / "model.safetensors")
    run.config.write_text(dump_config(parse_config(RECIPE, settings=settings)))
    figures = {"loss": 2.5, "bleu": bleu - 1}
    best = {"weights": "averaged", **figures, "trained_steps": 8, "training_seconds": 60.0}
    run.best.write_text(json.dumps(best))
    score = {"name": "BLEU", "score": bleu, "signature": SIGNATURE}
    result = {"scores": [score], "validation": figures, "weights": "averaged", "trained_steps": 8}
    result["test_set"] = {"name": "a_1.en", "sha256": sha256}
    run.result.write_text(json.dumps(result))
    return run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for seed in (1, 2, 3):
        write_run(tmp_path / f"study/base-seed{seed}", 30.0 + seed, f"seed={seed}")
    for seed in (10, 11):
        settings = (f"seed={seed}", "model.norm=pre", "training.threads=2")
        write_run(tmp_path / f"study/pre_norm-seed{seed}", 40.0, *settings)
    return tmp_path


def test_runs_of_equal_settings_are_a_group_with_mean_and_deviation(folder: Path) -> None:
    rows, settings = read_runs(folder)
    assert settings == ["model.norm"]  # neither seed nor threads
    assert [row["run"] for row in rows[:2]] == ["study/base-seed1", "study/base-seed2"]
    assert {row["parameters"] for row in rows} == {26}
    base, pre = group_runs(rows)
    assert (base["group"], base["runs"], base["BLEU"]) == ("study/base", 3, [31, 32, 33])
    assert (pre["group"], pre["settings"]) == ("study/pre_norm", {"model.norm": "pre"})
    text = render_text(rows, [base, pre], settings)
    assert re.search(r"study/base +post +3 +8 +26 +60 +31.00 ± 1.00 +32.00 ± 1.00\n", text)
    assert text.endswith(f"\n\nBLEU: {SIGNATURE}")


def test_scores_of_different_text_are_not_averaged(folder: Path) -> None:
    write_run(folder / "study/base-seed4", 90.0, "seed=4", sha256="cd" * 32)
    rows, settings = read_runs(folder)
    assert settings == ["model.norm", "test set"]
    assert [group["runs"] for group in group_runs(rows)] == [3, 1, 2]


def test_an_objective_of_ones_own_is_a_setting(folder: Path) -> None:
    run = RunDirectory(folder / "study/base-seed3")
    run.environment.write_text(json.dumps({"objective": "r_drop"}))
    rows, settings = read_runs(folder / "study")
    assert settings == ["model.norm", "objective"]
    base, own, _pre = groups = group_runs(rows)
    assert (base["BLEU"], own["BLEU"], own["settings"]["objective"]) == ([31, 32], [33], "r_drop")
    assert re.search(r"\n +norm +objective +runs", render_text(rows, groups, settings))


@pytest.mark.parametrize(
    ("damage", "state"),
    [
        (lambda run: run.config.write_text("model: 3"), r"damaged: .*config\.yaml"),
        (lambda run: run.config.unlink(), r"unfinished: it has no config\.yaml yet"),
        (
            lambda run: (run.path / "imported").mkdir(),
            "imported, and not trained here",
        ),
        (
            lambda run: (run.checkpoint(8) / "manifest.json").write_text(
                '{"model.safetensors": 1}'
            ),
            "saved by nmt.save_run, which scores nothing",
        ),
        (lambda run: run.best.write_text("{"), r"damaged: best\.json cannot be read"),
        (lambda run: run.result.write_text("{"), r"damaged: result\.json cannot be read"),
        (lambda run: run.result.write_text('{"a": 1}'), "unfinished: its test set is not scored"),
        (lambda run: run.result.unlink(), "unfinished: its test set is not scored"),
        (lambda run: run.best.unlink(), "unfinished: step 8 of 8"),
        (lambda run: run.checkpoint(9).mkdir(), "unfinished: step 9 of 8"),
        (lambda run: shutil.rmtree(run.averaged), "damaged: .*no checkpoint 'best'"),
        (
            lambda run: (run.averaged / "model.safetensors").write_bytes(b"0123"),
            "damaged: .*model.safetensors",
        ),
    ],
)
def test_damaged_and_unfinished_runs_are_named_and_left_out(
    folder: Path, damage: Callable[[RunDirectory], object], state: str
) -> None:
    damage(RunDirectory(folder / "study/base-seed2"))
    rows, settings = read_runs(folder)
    assert re.match(state, rows[1]["state"]), rows[1]["state"]
    assert [row["state"] == DONE for row in rows] == [True, False, True, True, True]
    groups = group_runs(rows)
    assert groups[0]["BLEU"] == [31, 33]
    text = render_text(rows, groups, settings)
    assert f"study/base-seed2 is {state[:8]}" in text
    *lines, _last = render_csv(rows).splitlines()
    assert next(csv.DictReader(lines[:1] + lines[2:3]))["state"] == rows[1]["state"]


def test_what_differs_beside_the_seed_is_doubted(folder: Path) -> None:
    base, pre = folder / "study/base-seed1", folder / "study/pre_norm-seed10"
    assert doubts_about_seeds([base, folder / "study/base-seed2"]) == []
    RunDirectory(pre).best.unlink()
    assert doubts_about_seeds([base, pre, base]) == [
        f"{pre} is unfinished: step 8 of 8; the weights that it has now are compared",
        "the runs differ in more than the seed: model.norm",
        "2 runs have the seed 1",
    ]


def test_rows_are_sorted_by_any_column_or_setting(folder: Path) -> None:
    rows, _settings = read_runs(folder)
    assert [row["seed"] for row in sort_rows(rows, "-bleu")] == [10, 11, 3, 2, 1]
    for key in ("model.norm", "norm"):
        assert [row["seed"] for row in sort_rows(rows, key)][:2] == [1, 2]
    assert [group["runs"] for group in sort_rows(group_runs(rows), "-BLEU")] == [2, 3]
    with pytest.raises(
        DataError, match="`sort` none: no such column; there are run, state, seed, "
    ):
        sort_rows(rows, "none")


def test_many_settings_stand_below_the_table(folder: Path) -> None:
    names = (
        "d_ff=8",
        "heads=2",
        "d_model=64",
        "dropout=0.3",
        "encoder_layers=1",
        "output_bias=true",
    )
    write_run(folder / "other", 20, *(f"model.{name}" for name in names))
    rows, settings = read_runs(folder)
    text = render_text(rows, group_runs(rows), settings)
    line = next(line for line in text.splitlines() if line.startswith("study/base: "))
    assert line.startswith("study/base: d_model 512 (not 64), heads 8 (not 2), d_ff 2048 (not 8),")
    assert "| d_model |" in render_markdown(rows, group_runs(rows), settings)
    odd = {**group_runs(rows)[0], "group": "a<b>|*c*"}
    assert r"| a\<b>\|\*c\* |" in render_markdown(rows, [odd], settings)


def test_a_folder_without_runs_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no run directory here or below"):
        read_runs(tmp_path)


def test_latex_prints_every_sign_as_it_is(folder: Path, tmp_path: Path) -> None:
    """pdflatex is the oracle where it is installed; else braces and columns are counted."""
    assert escape_latex("50%_a&{x}\\~^<>|#$") == (
        r"50\%\_a\&\{x\}\textbackslash{}\textasciitilde{}\textasciicircum{}\textless{}\textgreater{}"
        r"\textbar{}\#\$"
    )
    rows, settings = read_runs(folder)
    table = render_latex(rows, group_runs(rows), settings)
    lines = [line for line in table.splitlines() if line.endswith(r"\\")]
    assert lines[0] == r" & runs & BLEU \\"
    assert lines[2].startswith(r"study/pre\_norm & 2 & 40.0 $\pm$ 0.0")
    assert {line.count(" & ") for line in lines} == {2} and r"\begin{tabular}{lrr}" in table
    assert "% study/pre_norm: norm pre" in table
    assert table.count("{") == table.count("}")
    assert "XeLaTeX" not in table
    assert "XeLaTeX" in render_latex(rows, [{**group_runs(rows)[0], "group": "база"}], settings)
    if not (pdflatex := shutil.which("pdflatex")):
        return
    page = "\\documentclass{article}\\usepackage{booktabs}\\begin{document}\n%s\n\\end{document}"
    (tmp_path / "page.tex").write_text(page % table, "utf-8")
    command = [pdflatex, "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "Overfull" not in done.stdout and (tmp_path / "page.pdf").is_file()
