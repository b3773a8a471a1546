"""`nmt watch`: once without a terminal, again and again on one, until the end or Ctrl-C."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.commands import succeed


@pytest.fixture
def run(copied_run: Path) -> Path:
    record(copied_run, 1)
    return copied_run


def record(run: Path, step: int) -> None:
    with (run / "metrics.jsonl").open("a") as file:
        file.write(json.dumps({"event": "train", "step": step, "loss": 2.0}) + "\n")


class Terminal:
    """`nmt watch` on a terminal of its own."""

    def __init__(self, run: Path, *options: str) -> None:
        self._end, other = pty.openpty()
        command = [sys.executable, "-m", "nmt", "watch", str(run), "--every", "0.1", *options]
        self.process = subprocess.Popen(command, stdout=other, stderr=subprocess.PIPE)
        os.close(other)
        self.text = ""

    def read_until(self, words: str) -> None:
        deadline = time.monotonic() + 60
        while words not in self.text:
            assert time.monotonic() < deadline, self.text
            self.text += os.read(self._end, 4096).decode("utf-8", "replace")

    def close(self) -> tuple[int, str]:
        """Wait for the end; returns the exit code and what was said on stderr."""
        try:
            error = self.process.communicate(timeout=60)[1].decode()
        finally:
            self.process.kill()
            os.close(self._end)
        return self.process.returncode, error


def test_it_follows_the_run_and_ends_with_it(run: Path) -> None:
    terminal = Terminal(run)
    terminal.read_until("1 of ")
    record(run, 20)
    terminal.read_until("20 of ")
    assert "\x1b[4A\x1b[J" in terminal.text  # in the place of the table before
    (run / "best.json").write_text('{"trained_steps": 20}')
    terminal.read_until("finished")
    assert terminal.close() == (0, "")


def test_ctrl_c_ends_it_with_130(run: Path) -> None:
    terminal = Terminal(run)
    terminal.read_until("1 of ")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.close() == (130, "nmt: stopped by SIGINT\n")


def test_once_or_without_a_terminal_it_shows_the_run_once(run: Path) -> None:
    terminal = Terminal(run, "--once")
    terminal.read_until("1 of ")
    assert terminal.close() == (0, "")
    printed = succeed("watch", run)
    assert "\x1b" not in printed and "training objective" in printed
