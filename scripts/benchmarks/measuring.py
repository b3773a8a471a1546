"""Each measurement in a process of its own, so that its time and its memory are its own."""

import json
import multiprocessing
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nmt.machine.processor import available_cores

_SAMPLED_EVERY_S = 0.05


def apart(function: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """Run in a new process; returns what it measured, with its seconds and its peak memory.

    `peak_megabytes` is the largest sum of the resident memory of the process and of all that it
    started, looked at twenty times a second; what they share counts once for each of them.
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
        figures: dict[str, Any] = receiver.recv()
    except EOFError:
        sys.exit(f"{function.__name__} failed")
    finally:
        ended.set()
        watch.join()
    process.join()
    return {**figures, "peak_megabytes": peaks[0]}


def _measured(sender: Any, function: Callable[..., dict[str, Any]], *arguments: Any) -> None:
    start = time.perf_counter()
    figures = function(*arguments)
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
