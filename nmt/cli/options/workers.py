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
    """The number of processes that translate; use one thread here if the user asked for a number.

    Raises:
        ConfigError: several processes for one GPU.
    """
    from nmt.device import use_threads

    processes = number_of_workers(workers, device, typed)
    if workers != "auto" and device == "cpu":
        use_threads(1)  # one process that was asked for has one core, like each of several
    return processes


def number_of_workers(asked: str, device: str, typed: bool) -> int:
    """The number of processes; `asked` is auto or a number.

    Raises:
        ConfigError: several processes for one GPU.
    """
    if asked == "auto":
        one = device != "cpu" or typed or sys.platform != "linux"
        return 1 if one else available_cores()
    if device != "cpu" and int(asked) > 1:
        raise ConfigError(
            f"--workers {asked} divides the cores of a CPU, and this is a GPU, which one process "
            "fills; leave out --workers, or give a larger --batch-tokens"
        )
    return int(asked)
