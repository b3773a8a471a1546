"""Each measurement in a process of its own, so that its time and its memory are its own."""

import json
import multiprocessing
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

from nmt.processor import available_cores


def peak_megabytes() -> float:
    """The largest resident memory of this process, and of the largest of its children, so far."""
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return (own + available_cores() * children) / 1024


def apart(function: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """Run in a new process and return what it measured, with its seconds and peak memory."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_measured, args=(sender, function, *arguments))
    process.start()
    sender.close()
    try:
        figures: dict[str, Any] = receiver.recv()
    except EOFError:
        sys.exit(f"{function.__name__} failed")
    process.join()
    return figures


def _measured(sender: Any, function: Callable[..., dict[str, Any]], *arguments: Any) -> None:
    start = time.perf_counter()
    figures = function(*arguments)
    figures.setdefault("seconds", time.perf_counter() - start)
    sender.send({**figures, "peak_megabytes": peak_megabytes()})


def report(name: str, **figures: Any) -> None:
    """One JSON line a measurement."""
    rounded = {k: round(v, 4) if isinstance(v, float) else v for k, v in figures.items()}
    print(json.dumps({"benchmark": name, "cores": available_cores(), **rounded}), flush=True)
