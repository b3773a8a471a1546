"""A signal to `nmt translate` keeps whole windows, however many processes translate."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

LINES = [f"a small dog {n}. A cat." if n % 4 else "" for n in range(60)]
# In windows of three lines; in the third one that a process translates, it sends the signal.
COMMAND = """
import os, sys
from nmt.cli.app import main
from nmt.search import windows
from nmt.translation.pipeline import Pipeline

windows.WINDOW_LINES = 3
number, main_process = int(sys.argv.pop()), os.getpid()
search, calls = Pipeline.translate_batch, []

def translate_batch(*given):
    calls.append(1)
    if number and len(calls) > 2:
        os.kill(main_process, number)
    return search(*given)

Pipeline.translate_batch = translate_batch
main()
"""
NO_SIGNAL = 0


class Command:
    """`nmt translate` of one input in a process of its own, and what it leaves."""

    def __init__(self, run: Path, folder: Path, environment: dict[str, str]) -> None:
        self.input, self.output, self.part = (folder / n for n in ("in", "out", "out.part"))
        self.input.write_text("\n".join(LINES) + "\n")
        self.options = ["translate", "-m", run, self.input, "-o", self.output]
        self.environment = environment

    def __call__(self, number: int, *options: object) -> subprocess.CompletedProcess[str]:
        arguments = map(str, [*self.options, *options, int(number)])
        return subprocess.run(
            [sys.executable, "-c", COMMAND, *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
        )


@pytest.mark.parametrize("workers", [1, 2])
def test_a_signal_keeps_whole_windows_which_are_gone_on_with(
    tiny_run: Path, tmp_path: Path, environment: dict[str, str], workers: int
) -> None:
    command = Command(tiny_run, tmp_path, environment)
    assert command(NO_SIGNAL, "--workers", 1).returncode == 0
    expected = command.output.read_bytes()
    command.output.unlink()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        result = command(number, "--workers", workers)
        killed = number == signal.SIGKILL
        assert result.returncode == (-number if killed else 128 + number), result.stderr
        assert not command.output.exists()
        kept = command.part.read_bytes() if command.part.exists() else b""
        assert kept.count(b"\n") % 3 == 0 and expected.startswith(kept)
        if workers == 1:
            assert kept.count(b"\n") == 6
            assert killed or "keeps the translations of lines 1 to 6; to continue: nmt" in (
                result.stderr
            )
    resumed = command(NO_SIGNAL, "--workers", workers, "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert command.output.read_bytes() == expected
