"""Each measurement in a process of its own, so that its time and its memory are its own."""

import contextlib
import datetime
import importlib.metadata
import json
import multiprocessing
import os
import platform
import shlex
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from nmt.machine.device import device_name, pick_device
from nmt.machine.processor import available_cores

_SAMPLED_EVERY_S = 0.05
_NEIGHBOURS = ("transformers", "ctranslate2", "triton")


def apart(
    function: Callable[..., dict[str, Any]], *arguments: Any, limit: float | None = None
) -> dict[str, Any]:
    """Run in a new process; returns what it measured, with its seconds and its peak memory.

    `peak_megabytes` is the largest sum of the resident memory of the process and of all that it
    started, looked at twenty times a second; what they share counts once for each of them.
    The program ends if the function fails, or takes longer than `limit` seconds.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_measured, args=(sender, function, *arguments))
    process.start()
    sender.close()
    ended, peaks = threading.Event(), [0.0]
    watch = threading.Thread(target=_watch, args=(process.pid, ended, peaks))
    watch.start()
    try:
        if not receiver.poll(limit):
            sys.exit(f"{function.__name__} took longer than {limit:g} seconds")
        figures: dict[str, Any] | str = receiver.recv()
    except EOFError:
        sys.exit(f"{function.__name__} failed")
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid or 0, signal.SIGKILL)  # also what it has started
        process.kill()  # it may have no group yet
        raise
    finally:
        ended.set()
        watch.join()
    process.join()
    if isinstance(figures, str):
        sys.exit(f"{function.__name__} failed: {figures}")
    return {**figures, "peak_megabytes": peaks[0]}


def attempt(
    function: Callable[..., dict[str, Any]], *arguments: Any, limit: float
) -> dict[str, Any]:
    """Do as `apart` does, but return {"failed": the reason} if the function fails."""
    try:
        return apart(function, *arguments, limit=limit)
    except SystemExit as error:
        return {"failed": str(error)}


def _measured(sender: Any, function: Callable[..., dict[str, Any]], *arguments: Any) -> None:
    os.setpgid(0, 0)
    start = time.perf_counter()
    try:
        figures = function(*arguments)
    except Exception as error:
        traceback.print_exc()
        sender.send(" ".join(f"{type(error).__name__}: {error}".split()))
        return
    figures.setdefault("seconds", time.perf_counter() - start)
    sender.send(figures)


def _watch(process: int, ended: threading.Event, peaks: list[float]) -> None:
    while not ended.wait(_SAMPLED_EVERY_S):
        peaks[0] = max(peaks[0], _megabytes(process))


def _megabytes(process: int) -> float:
    """The resident memory of a process and its descendants."""
    folder = Path(f"/proc/{process}")
    try:
        status = (folder / "status").read_text()
        children = (folder / f"task/{process}/children").read_text().split()
    except OSError:
        return 0.0
    own = next((int(line.split()[1]) for line in status.split("\n") if "VmRSS" in line), 0)
    return own / 1024 + sum(_megabytes(int(child)) for child in children)


def report(name: str, **figures: Any) -> None:
    """One JSON line a measurement."""
    rounded = {k: round(v, 4) if isinstance(v, float) else v for k, v in figures.items()}
    print(json.dumps({"benchmark": name, "cores": available_cores(), **rounded}), flush=True)


class Sheet:
    """The rows of a benchmark that runs once, with machine, versions, date and command.

    Each row is printed and written at once, so that a run that is stopped leaves what it has
    measured: NAME.json and, to be read, NAME.md.
    """

    def __init__(self, name: str, folder: Path, device: str) -> None:
        """Write into `folder`; `device` is the option of that name."""
        self._path = folder / name
        self.about = {
            "device": device_name(pick_device(device)),
            "cores": available_cores(),
            "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
            "command": shlex.join(["scripts/benchmark", name, *sys.argv[1:]]),
            "python": platform.python_version(),
            "torch": torch.__version__,
            **{package: _version(package) for package in _NEIGHBOURS},
        }
        self.rows: list[dict[str, Any]] = []
        folder.mkdir(parents=True, exist_ok=True)

    def add(self, **row: Any) -> None:
        """Print a row and write it."""
        rounded = {k: float(f"{v:.5g}") if isinstance(v, float) else v for k, v in row.items()}
        print(json.dumps(rounded), flush=True)
        self.rows.append(rounded)
        self.write()

    def write(self) -> None:
        """Write all rows."""
        text = json.dumps({**self.about, "rows": self.rows}, indent=1)
        self._path.with_suffix(".json").write_text(text + "\n", "utf-8")
        about = "".join(f"- {key}: {value}\n" for key, value in self.about.items())
        self._path.with_suffix(".md").write_text(f"{about}\n{self.table()}\n", "utf-8")

    def table(self) -> str:
        """All rows as a table in Markdown, without their lists."""
        columns = list(dict.fromkeys(key for row in self.rows for key in row))
        columns = [
            key for key in columns if not any(isinstance(r.get(key), list) for r in self.rows)
        ]
        lines = [columns, ["---"] * len(columns)]
        lines += [[str(row.get(column, "")) for column in columns] for row in self.rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
