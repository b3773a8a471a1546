"""`nmt sweep`: real trainings of three steps."""

import os
from pathlib import Path

import pytest

from nmt.cli import sweep as command
from nmt.errors import ConfigError, NmtError
from nmt.planning import sweep as sweep_module
from nmt.recipe.config_file import load_config
from tests.cli.commands import fail, invoke, lines_of, write_lines

SHORT = ("--no-plan", "--seeds", "1,2")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep_module, "POLL_SECONDS", 0.05)


@pytest.fixture
def words(recipe: Path, tmp_path: Path) -> list[object]:
    return ["sweep", "--config", recipe, "-o", tmp_path / "study"]


def states(*words: object) -> dict[str, str]:
    """{run: state} of --list."""
    return {line.split("\t")[1]: line.split("\t")[2] for line in lines_of(*words, "--list")}


def test_a_sweep_trains_each_point_names_the_failed_one_and_goes_on(
    words: list[object], tmp_path: Path
) -> None:
    """The second learning rate diverges at once; then it is taken out."""
    study = tmp_path / "study"
    done, failing = "peak_learning_rate=0.001-seed3", "peak_learning_rate=1e+30-seed3"
    words += ["--no-plan", "--seeds", 3, "--jobs", 2, "--set"]
    rates = "training.peak_learning_rate=1e-3,1e30"
    assert set(states(*words, rates).values()) == {"new"}
    assert not study.exists()
    message = fail(NmtError, *words, rates)
    assert message.startswith(f"1 of 2 runs failed: {failing} (")
    config = load_config(str(study / done / "config.yaml"))
    assert (config.seed, config.training.peak_learning_rate) == (3, 0.001)
    assert "trained 3 steps" in (study / f"{done}.log").read_text("utf-8")
    found = states(*words, rates)
    assert found.pop(done) == "done" and "done" not in found.values()
    (study / done).rename(study / "seed3")  # with one value its key is not in the name
    again = invoke(*words, rates.removesuffix(",1e30"))
    assert again.exit_code == 0
    assert again.stderr == f"{study}: 1 of 1 runs are done\n"


def test_the_plan_comes_first(words: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "_train", lambda *arguments: [])
    result = invoke(*words, "--seeds", "1,2")
    assert ": 0 of 2 runs are done\nthese take about " in result.stderr, result.exception
    monkeypatch.setattr(sweep_module, "estimate_costs", lambda recipes: [(60.0, 10**6)])
    monkeypatch.setattr("nmt.planning.machine_checks.free_space", lambda folder: 10)
    assert "warning: the disk may not suffice" in invoke(*words).stderr


def test_an_index_becomes_the_training(
    words: list[object], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    started: list[list[str]] = []

    def become(program: str, line: list[str]) -> None:
        started.append(line)
        raise SystemExit

    monkeypatch.setattr(os, "execv", become)
    variants = write_lines(tmp_path / "variants.yaml", ["base: {}", "pre: {model.norm: pre}"])
    words += [*SHORT, "--variants", variants, "--backward"]
    invoke(*words, "--index", 4)
    ((_program, *line),) = started
    assert line[:3] == ["-m", "nmt", "train"] and "--backward" in line
    assert line[-6:] == [
        *("--set", 'model.norm="pre"', "--set", "seed=2"),
        *("--run-dir", str(tmp_path / "study" / "pre-seed2")),
    ]
    assert "there are 4 runs" in fail(ConfigError, *words, "--index", 5)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--set", "model.norm=pre", "--set", "model.norm=post"], "names a key twice"),
        (["--set", "model.norm=pre,sandwich"], "got 'sandwich'"),
        (["--set", "model.nrm=pre,post"], "did you mean 'norm'?"),
        (["--seeds", "1,x"], "got 'x'"),
        (["--seeds", "1", "--set", "seed=2,3"], "seed is set by seeds too"),
        (["--variants", "none.yaml"], "none.yaml: cannot be read"),
        (["--search", "model.dropout=0.0:0.3", "--seeds", "1,2"], "--search goes with one value"),
        (["--search", "model.dropout=0.0:0.3", "--list"], "leave out --list and --index"),
        (["--search", "model.dropout=0.3:0.1"], "expected LOW:HIGH with LOW below HIGH"),
        (["--search", "model.dropuot=0.0:0.3"], "did you mean 'dropout'?"),
    ],
)
def test_mistakes_are_found_before_a_run_begins(
    words: list[object], tmp_path: Path, options: list[str], problem: str
) -> None:
    assert problem in fail(ConfigError, *words, *options)
    assert not (tmp_path / "study").exists()


@pytest.mark.slow
def test_a_search_keeps_its_trials_and_goes_on(words: list[object], tmp_path: Path) -> None:
    ranges = [
        "--search",
        "training.peak_learning_rate=1e-4:1e-2:log",
        "--search",
        "model.d_ff=8:16",
    ]
    words += [
        "--no-plan",
        *ranges,
        "--search",
        "model.norm=pre,post",
        "--set",
        "training.validate_every=1",
    ]
    first = invoke(*words, "--trials", 2, "--jobs", 2)
    assert first.exit_code == 0, (first.stderr, first.exception)
    assert first.stdout.startswith("best of 2: trial ")
    runs = sorted(path.name for path in (tmp_path / "study").iterdir() if path.is_dir())
    assert [run.partition("-")[0] for run in runs] == ["trial1", "trial2"]
    again = invoke(*words, "--trials", 2)
    assert (again.stderr, again.stdout) == ("", first.stdout)
    assert invoke(*words, "--trials", 3).stdout.startswith("best of 3: trial ")
