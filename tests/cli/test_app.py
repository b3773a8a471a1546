"""The command as the user meets it: one sentence for an error, and the right exit code."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import nmt

COMMANDS = (
    "data",
    "prepare",
    "train",
    "translate",
    "eval-bleu",
    "score",
    "compare",
    "average",
    "plot",
)
HEAVY = (
    "torch",
    "numpy",
    "sentencepiece",
    "sacrebleu",
    "sacremoses",
    "datasets",
    "matplotlib",
    "safetensors",
    "pydantic",
    "yaml",
)


@pytest.fixture
def environment(project: Path) -> dict[str, str]:
    """Wide, so that no message of the help is folded."""
    return {**os.environ, "PYTHONPATH": str(project), "COLUMNS": "200", "OMP_NUM_THREADS": "1"}


class Nmt:
    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder, self.environment = folder, environment

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "nmt", *arguments],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
        )


@pytest.fixture
def run(tmp_path: Path, environment: dict[str, str]) -> Nmt:
    return Nmt(tmp_path, environment)


def test_help_lists_every_command(run: Nmt) -> None:
    result = run("--help")
    assert (result.returncode, result.stderr) == (0, "")
    listed = {line.split()[0] for line in result.stdout.splitlines() if line.startswith("  ")}
    assert set(COMMANDS) <= listed


def test_no_arguments_show_the_help(run: Nmt) -> None:
    result = run()
    assert result.returncode == 2
    assert "train" in result.stdout + result.stderr


def test_commands_are_listed_without_loading_what_they_need(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    code = f"import sys, nmt.cli.app; print(*(m for m in {HEAVY} if m in sys.modules))"
    output = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert output.stdout == "\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str) -> None:
    from typer.testing import CliRunner

    from nmt.cli.app import app

    result = CliRunner().invoke(app, [command, "--help"])
    assert result.exit_code == 0
    assert f"nmt {command} " in result.stdout and "--help" in result.stdout


def test_version_is_that_of_the_package(run: Nmt) -> None:
    result = run("--version")
    assert (result.returncode, result.stdout) == (0, f"nmt {nmt.__version__}\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train"], "--config"),
        (["trian"], "trian"),
        (["train", "--config", "demo", "--sett", "a=b"], "--sett"),
        (["average", "--model", ".", "--last", "0"], "--last"),
        (["average", "--model", ".", "--last", "many"], "--last"),
    ],
)
def test_wrong_usage_is_exit_code_2(run: Nmt, arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_an_error_is_one_line_on_stderr(run: Nmt) -> None:
    result = run("average", "--model", "nowhere")
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr.startswith("nmt: nowhere: ")
    assert result.stderr.count("\n") == 1


def test_a_configuration_error_is_exit_code_2(run: Nmt) -> None:
    result = run("train", "--config", "nowhere.yaml")
    assert result.returncode == 2
    assert result.stderr.startswith("nmt: nowhere.yaml: no such file and no bundled recipe")
    assert result.stderr.count("\n") == 1


def test_debug_shows_the_traceback_and_the_sentence(run: Nmt) -> None:
    result = run("--debug", "average", "--model", "nowhere")
    assert result.returncode == 1
    assert result.stderr.startswith("Traceback (most recent call last)")
    assert result.stderr.splitlines()[-1].startswith("nmt: nowhere: ")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_command_with_a_sentence(
    environment: dict[str, str], number: signal.Signals, code: int
) -> None:
    """A command that waits for stdin."""
    program = (
        "import sys, nmt.cli.app as a\n"
        "@a.app.command('wait')\n"
        "def wait(): print('ready', flush=True); sys.stdin.read()\n"
        "a.main()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, "wait"],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == code
    assert stderr == f"nmt: stopped by {number.name}\n"
