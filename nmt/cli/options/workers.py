"""How many processes share the lines of `nmt translate`."""

import re
import sys
from typing import Annotated

import typer

from nmt.errors import ConfigError
from nmt.processor import available_cores


def _count(text: str) -> str:
    if text != "auto" and not re.fullmatch("[1-9][0-9]{0,2}", text):
        raise typer.BadParameter(f"'{text[:20]}': expected auto or a number from 1 to 999")
    return text


WorkersOption = Annotated[
    str,
    typer.Option(
        callback=_count,
        metavar="auto|N",
        help="Number of processes that translate, with one thread each. auto is one per core, but "
        "one in all on a GPU, for typed input and for a few lines.",
    ),
]


def processes_for(workers: str, device: str, typed: bool) -> int:
    """Return the number of processes that translate, for `workers` of auto or a number.

    Where the user gave a number, this process computes in one thread, like each of several.

    Raises:
        ConfigError: Several processes were asked for on one GPU.
    """
    if workers == "auto":
        one = device != "cpu" or typed or sys.platform != "linux"
        return 1 if one else available_cores()
    processes = int(workers)
    if device == "cpu":
        from nmt.device import use_threads

        use_threads(1)
    elif processes > 1:
        raise ConfigError(
            f"--workers {workers} divides the cores of a CPU, and this is a GPU, which one process "
            "fills; leave out --workers, or give a larger --batch-tokens"
        )
    return processes
