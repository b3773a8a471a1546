"""The command as the user meets it: one sentence for an error, and the right exit code."""

import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt import __version__
from tests.cli.commands import invoke, succeed, write_lines

COMMANDS = (
    *("init", "data", "prepare", "train", "translate", "eval-bleu", "score", "shortlist"),
    *("compare", "average", "plan", "doctor", "plot", "report"),
)
HEAVY = {
    *("torch", "numpy", "sentencepiece", "sacrebleu", "sacremoses", "datasets", "matplotlib"),
    *("safetensors", "pydantic", "yaml", "tqdm", "pyarrow", "regex", "rich"),
}
HELP = """
import sys
from nmt.cli.app import main
sys.argv = ["nmt", "--help"]
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""

LEFT_OVER = """
import sys
from nmt.cli.app import main

class Circle:
    def __init__(self):
        self.itself = self
    def __del__(self):
        print("collected")

sys.modules[sys.argv.pop()] = Circle()
main()
"""

Python = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def python(tmp_path: Path, environment: dict[str, str]) -> Python:
    """Runs Python with arguments in a process of its own."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *arguments]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
        )

    return run


def test_help_lists_every_command_and_imports_nothing_heavy(python: Python) -> None:
    """Number and names of the modules, because a time would depend on the machine."""
    result = python("-c", HELP)
    modules = set(result.stderr.split())
    assert result.returncode == 0 and "nmt.cli.app" in modules
    assert not HEAVY & modules
    assert len(modules) < 400
    listed = {line.split()[0] for line in result.stdout.splitlines() if line.startswith("  ")}
    assert set(COMMANDS) <= listed


@pytest.mark.parametrize(("module", "collected"), [("other", False), ("triton", True)])
def test_the_last_garbage_collection_is_for_triton_alone(
    python: Python, module: str, collected: bool
) -> None:
    """Triton's library prints a page about objects that were not collected."""
    result = python("-c", LEFT_OVER, "--version", module)
    assert ("collected" in result.stdout) is collected
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize("group", ["", "data", "plot"])
def test_lists_of_commands_cut_no_description_off(group: str) -> None:
    listed = succeed(*group.split(), "--help").partition("Commands:")[2]
    assert listed and "..." not in listed


def test_no_arguments_show_the_help_and_version_that_of_the_package() -> None:
    result = invoke()
    assert result.exit_code == 2
    assert "train" in result.stdout + result.stderr
    assert succeed("--version") == f"nmt {__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_help(command: str) -> None:
    printed = succeed(command, "--help")
    assert f"nmt {command} " in printed and "--help" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [("train", "--config"), ("trian", "trian"), ("train --config demo --sett a=b", "--sett")],
)
def test_wrong_usage_is_exit_code_2(arguments: str, message: str) -> None:
    result = invoke(*arguments.split())
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr and "Traceback" not in result.stderr


def test_a_file_name_that_is_not_utf8_is_printed_as_it_is(environment: dict[str, str]) -> None:
    program = (
        "import sys, typer, nmt.cli.app as a\n"
        "@a.app.command('name')\n"
        "def name(path: str): typer.echo(path); print(path)\n"
        "a.main()"
    )
    name = os.fsdecode(b"caf\xe9")
    result = subprocess.run(
        [sys.executable, "-c", program, "name", name],
        env=environment | {"PYTHONIOENCODING": "utf-8"},  # strict, as in most languages
        capture_output=True,
        timeout=60,
    )
    assert (result.stdout, result.stderr) == (b"caf\xe9\n" * 2, b"")


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


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        ("average --model nowhere", 1, "nmt: nowhere: "),
        ("train --config nowhere.yaml", 2, "nmt: nowhere.yaml: no such file and no bundled"),
    ],
)
def test_an_error_is_one_line_on_stderr_and_debug_adds_the_traceback(
    python: Python, arguments: str, code: int, sentence: str
) -> None:
    result = python("-m", "nmt", *arguments.split())
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (code, "", 1)
    assert result.stderr.startswith(sentence)
    debugged = python("-m", "nmt", "--debug", *arguments.split())
    assert debugged.returncode == code
    assert debugged.stderr.startswith("Traceback (most recent call last)")
    assert debugged.stderr.endswith(result.stderr)


# Root may have any number of processes, so another user tries it, who may read all files.
ANOTHER_USER = (
    *("setpriv", "--reuid=60123", "--clear-groups"),
    *("--inh-caps=-all,+dac_override", "--ambient-caps=+dac_override"),
)


@pytest.mark.skipif(sys.platform != "linux", reason="macOS keeps to no such limits")
@pytest.mark.parametrize(
    ("limit", "value"),
    [
        *((resource.RLIMIT_AS, megabytes << 20) for megabytes in (100, 140, 180, 240, 280)),
        *((resource.RLIMIT_NPROC, threads) for threads in (1, 2, 8)),
    ],
)
def test_too_little_memory_or_too_few_threads_are_one_sentence(
    tmp_path: Path, environment: dict[str, str], limit: int, value: int
) -> None:
    """SentencePiece starts 16 threads to learn a vocabulary, and dies where one cannot start."""
    is_root = limit == resource.RLIMIT_NPROC and os.geteuid() == 0
    if is_root and not shutil.which("setpriv"):
        pytest.skip("root has no limit of processes, and setpriv is missing")
    lines = [f"line {number} has {number * 7} words" for number in range(200)]
    text = write_lines(tmp_path / "text", lines)
    recipe = write_lines(
        tmp_path / "recipe.yaml",
        [
            "data:",
            f"  train: {{source: {text}, target: {text}}}",
            f"  validation: {{source: {text}, target: {text}}}",
            "  directory: data",
            "tokenizer: {vocabulary_size: 80}",
        ],
    )
    command = [sys.executable, "-m", "nmt", "prepare", "--config", str(recipe)]
    result = subprocess.run(
        [*ANOTHER_USER, *command] if is_root else command,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=lambda: resource.setrlimit(limit, (value, value)),
    )
    assert result.returncode == 1, result
    *steps, message = result.stderr.splitlines()
    assert message.startswith("nmt: the memory or the number of threads that this process may use")
    assert not steps or steps[0].startswith("learning a bpe vocabulary") and len(steps) == 1
