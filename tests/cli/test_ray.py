"""`--ray` gives the bytes of one machine, also when a machine or the command itself dies."""

import os
import shutil
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from nmt.cli.lines.partial_output import PartialOutput
from nmt.data.text.pair_folder import PairFolder
from nmt.errors import ConfigError
from nmt.search import windows
from nmt.translation import synthesis
from tests.cli.commands import fail, succeed, write_lines
from tests.ray_machines import RayMachines

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not find_spec("ray"), reason="needs the extra nmt[ray]"),
]

LINES = [f"{'the small dog ' * (n % 7)}{n}" if n % 11 else "" for n in range(200)]


@pytest.fixture(autouse=True)
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for all: in bf16 a translation may depend on the lines that are computed with it."""
    for module in (windows, synthesis):  # the second may have been imported before
        monkeypatch.setattr(module, "WINDOW_LINES", 20)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "in.txt", LINES)


def reverse_of(run: Path, folder: Path) -> Path:
    """A run of the opposite direction."""
    reverse = Path(shutil.copytree(run, folder))
    recipe = reverse / "config.yaml"
    written = recipe.read_text().replace("source_language: en", "source_language: X")
    written = written.replace("target_language: de", "target_language: en")
    recipe.write_text(written.replace("source_language: X", "source_language: de"))
    return reverse


def files_of(path: Path) -> dict[str, bytes]:
    files = [each for each in path.iterdir() if each.name != ".lock"] if path.is_dir() else [path]
    return {each.name if path.is_dir() else "": each.read_bytes() for each in files}


def commands_of(run: Path, text: Path, folder: Path) -> dict[str, list[object]]:
    """Commands without their output and workers."""
    pairs = write_lines(folder / "pairs.tsv", [f"{line}\t{line[::-1]}" for line in LINES])
    reverse = reverse_of(run, folder / "reverse")
    page = write_lines(folder / "page.html", [f"<p>a <b>small</b> {line}</p>" for line in LINES])
    return {
        "document": ["translate", "-m", run, page],
        "translate": ["translate", "-m", run, text, "--json", "--n-best", 2],
        "constrained": ["translate", "-m", run, text, "--forbid", "e", "--alignments"],
        "protected": ["translate", "-m", run, text, "--protect", "--protect-pattern", "[0-9]+"],
        "sampled": ["translate", "-m", run, text, "--sample", "--mbr", "chrf", "--candidates", 3],
        "ensemble": ["translate", "-m", run, "-m", run, text, "--copy-unknown"],
        "score": ["score", "-m", run, pairs, "--json", "--per-token"],
        "synthesize": [
            *("synthesize", "-m", run, "-i", text, "--reverse", reverse),
            *("--keep", 0.7, "--noise"),
        ],
    }


def test_all_commands_give_the_bytes_of_one_machine(
    tiny_run: Path, text: Path, tmp_path: Path, machines: RayMachines
) -> None:
    for name, command in commands_of(tiny_run, text, tmp_path).items():
        one, many = tmp_path / name, tmp_path / f"{name}.ray"
        succeed(*command, "-o", one)
        succeed(*command, "-o", many, "--ray", machines.address)
        assert files_of(many) == files_of(one), name


@pytest.mark.parametrize("name", ["translate", "score", "synthesize"])
def test_a_machine_that_is_killed_changes_nothing(
    tiny_run: Path,
    text: Path,
    tmp_path: Path,
    machines: RayMachines,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    """It dies when the first window is written."""
    commands = commands_of(tiny_run, text, tmp_path)
    one, many = tmp_path / name, tmp_path / f"{name}.ray"
    succeed(*commands[name], "-o", one)
    killed: list[bool] = []

    def killing(write: Any) -> Any:
        def write_and_kill(*given: object, **named: object) -> None:
            write(*given, **named)
            if not killed:
                machines.have(1)
                killed.append(True)

        return write_and_kill

    monkeypatch.setattr(PartialOutput, "write", killing(PartialOutput.write))
    monkeypatch.setattr(PairFolder, "add", killing(PairFolder.add))
    succeed(*commands[name], "-o", many, "--ray", machines.address)
    assert killed and files_of(many) == files_of(one)


@pytest.mark.parametrize("name", ["translate", "score", "synthesize"])
def test_a_killed_command_is_continued_and_leaves_no_process(
    tiny_run: Path,
    text: Path,
    tmp_path: Path,
    environment: dict[str, str],
    name: str,
) -> None:
    command = commands_of(tiny_run, text, tmp_path)[name]
    one, many = tmp_path / name, tmp_path / f"{name}.ray"
    succeed(*command, "-o", one)
    slow = (
        "import sys, time\n"
        "from nmt.data.text import pair_folder\n"
        "from nmt.search import windows\n"
        "from nmt.cli.lines import partial_output\n"
        "windows.WINDOW_LINES, pair_folder.PART_SECONDS = 20, 0\n"
        "fsync = partial_output.os.fsync\n"
        "partial_output.os.fsync = lambda file: (fsync(file), time.sleep(0.3))\n"
        "from nmt.__main__ import main\nmain()"
    )
    words = [*map(str, command), "-o", str(many), "--ray", "local"]
    state = many / "job.json" if name == "synthesize" else Path(f"{many}.part.json")
    process = subprocess.Popen([sys.executable, "-c", slow, *words], env=environment)
    while not state.is_file():
        assert process.poll() is None
        time.sleep(0.01)
    children = descendants(process.pid)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not many.is_file() and children
    resume = [] if name == "synthesize" else ["--resume"]
    succeed(*command, "-o", many, "--ray", "local", *resume)
    assert files_of(many) == files_of(one)
    deadline = time.monotonic() + 120
    while running := [child for child in children if Path(f"/proc/{child}/exe").exists()]:
        assert time.monotonic() < deadline, running
        time.sleep(0.2)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_all_processes_is_one_sentence(
    tiny_run: Path, tmp_path: Path, environment: dict[str, str], number: signal.Signals
) -> None:
    """As Ctrl-C in a terminal sends it."""
    text, output = write_lines(tmp_path / "in.txt", LINES * 500), tmp_path / "out"
    command = ["translate", "-m", str(tiny_run), str(text), "-o", str(output), "--ray", "local"]
    process = subprocess.Popen(
        [sys.executable, "-m", "nmt", *command],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while not Path(f"{output}.part.json").is_file():
        assert process.poll() is None
        time.sleep(0.01)
    os.killpg(process.pid, number)
    assert process.stderr
    said = process.stderr.read().splitlines()
    process.stderr.close()
    assert process.wait() == 128 + number
    said = [line for line in said if not line.startswith("[")]  # of Ray's own processes
    assert said[0].startswith(f"nmt: {output}.part keeps the output for lines 1 to ")
    assert said[1:] == [f"nmt: stopped by {number.name}"]


def descendants(process: int) -> set[int]:
    """The ids of the processes that a process has started, and those that they have."""
    try:
        lists = [
            path.read_text().split() for path in Path(f"/proc/{process}/task").glob("*/children")
        ]
    except OSError:
        return set()
    children = {int(child) for each in lists for child in each}
    return children.union(*map(descendants, children))


def test_stdout_holds_the_results_alone_and_stderr_nothing(
    tiny_run: Path, text: Path, environment: dict[str, str]
) -> None:
    def translate(*options: str) -> subprocess.CompletedProcess[bytes]:
        command = ["nmt", "translate", "-m", str(tiny_run), str(text), *options]
        address = {"RAY_ADDRESS": "127.0.0.1:1"}  # is not used
        return subprocess.run(
            [sys.executable, "-m", *command], env=environment | address, capture_output=True
        )

    one, many = translate(), translate("--ray", "local", "--workers", "1")
    assert (many.returncode, many.stdout, many.stderr) == (0, one.stdout, b"")


def test_a_wrong_address_leaves_a_part_as_it_is(tiny_run: Path, text: Path, tmp_path: Path) -> None:
    part = write_lines(tmp_path / "out.part", ["of another day"])
    command = ("translate", "-m", tiny_run, text, "-o", tmp_path / "out", "--ray", "nowhere")
    assert "Ray's address nowhere: expected local, auto or HOST:PORT" in fail(ConfigError, *command)
    assert part.read_text() == "of another day\n"
