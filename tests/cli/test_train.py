"""`nmt train` finds mistakes before it trains, and a rerun goes on."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nmt.errors import ConfigError, DataError, NmtError
from nmt.recipe.config import TextPair
from nmt.recipe.config_file import load_config
from tests.cli.commands import fail, invoke


def test_the_command_that_comes_next_can_be_pasted(tmp_path: Path, recipe: Path) -> None:
    run = tmp_path / "my run"
    done = invoke("train", "--config", recipe, "--run-dir", run)
    assert done.stderr.endswith(f"translate with: nmt translate --model '{run}'\n")


def test_a_run_is_trained_and_a_rerun_has_nothing_to_do(
    tmp_path: Path, recipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run is named after the recipe."""
    monkeypatch.chdir(tmp_path)
    first = invoke("train", "--config", recipe)
    assert (first.exit_code, first.stdout) == (0, ""), first.exception
    assert "translate with: nmt translate --model runs/recipe" in first.stderr
    assert json.loads(Path("runs/recipe/best.json").read_text())["trained_steps"] == 3
    again = invoke("train", "--config", recipe)
    assert again.exit_code == 0
    assert again.stderr.endswith("already trained to step 3; nothing to do\n")
    message = fail(ConfigError, "train", "--config", recipe, "--set", "seed=7")
    assert "another recipe" in message and "seed: the run has 1, now 7" in message


def test_the_recipe_backward_trains_a_run_of_its_own_in_the_opposite_direction(
    tmp_path: Path, recipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert invoke("train", "--config", recipe, "--backward").exit_code == 0
    data = load_config("runs/recipe-backward/config.yaml").data
    assert data.languages == ("de", "en")
    assert data.train == [TextPair(source=f"{tmp_path}/text.de", target=f"{tmp_path}/text.en")]


def test_a_signal_saves_and_a_rerun_finishes(tmp_path: Path, recipe: Path, project: Path) -> None:
    """The real command, stopped from outside at no step in particular."""
    run = tmp_path / "run"
    command = [sys.executable, "-m", "nmt", "train", "--config", str(recipe), "--run-dir", str(run)]
    process = subprocess.Popen(
        [*command, "--set", "training.max_steps=100000"],
        cwd=project,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    metrics = run / "metrics.jsonl"
    while process.poll() is None and not (metrics.exists() and metrics.stat().st_size):
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (143, "")
    last = err.splitlines()[-1]
    assert last.startswith("nmt: stopped by SIGTERM after step ")
    assert last.endswith(f"saved in {run}. Run the same command again to continue.")
    step = int(json.loads((run / "last.json").read_text())["weights"][-8:])
    settings = ("--set", f"training.max_steps={step + 2}")
    more = invoke("train", "--config", recipe, "--run-dir", run, *settings)
    assert more.exit_code == 0, more.exception
    assert f"resuming after step {step:,} from " in more.stderr
    steps = [json.loads(line)["step"] for line in metrics.read_text().splitlines()]
    assert steps[: step + 1] == list(range(1, step + 2))


@pytest.mark.parametrize(
    ("file", "more", "options", "error", "message"),
    [
        ("text.en", None, "", DataError, "text.en: no such file"),
        ("text.de", None, "", DataError, "text.de: no such file"),
        ("text.de", "one more\n", "", DataError, "text.de has 42 lines"),
        ("recipe.yaml", "  max_stepps: 4\n", "", ConfigError, "recipe.yaml:13: unknown key"),
        ("file", "", "--set tokenizer.vocabulary_size=9999", DataError, "vocabulary_size is 9999"),
        ("file", "", "--run-dir file/run", ConfigError, "cannot be written: Not a directory; ch"),
    ],
)
def test_a_mistake_is_found_before_training(
    tmp_path: Path,
    recipe: Path,
    monkeypatch: pytest.MonkeyPatch,
    file: str,
    more: str | None,
    options: str,
    error: type[NmtError],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    if more is None:
        Path(file).unlink()
    else:
        with Path(file).open("a") as appended:
            appended.write(more)
    assert message in fail(error, "train", "--config", recipe, *options.split())
    assert error is DataError or not Path("runs").exists()
