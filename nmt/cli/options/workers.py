"""How many processes `nmt translate` divides the lines among, and what each of them does."""

import re
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.errors import ConfigError
from nmt.processor import available_cores

if TYPE_CHECKING:
    from nmt.translation.document import LineTranslator
    from nmt.translation.parallel import ParallelTranslator
    from nmt.translation.translator import Translator


def _count(text: str) -> str:
    if text != "auto" and not re.fullmatch("[1-9][0-9]{0,2}", text):
        raise typer.BadParameter(f"'{text[:20]}': expected auto or a number from 1 to 999")
    return text


WorkersOption = Annotated[
    str,
    typer.Option(
        callback=_count,
        metavar="auto|N",
        help="Processes of one thread each that translate; auto: one a core, except on a GPU, for "
        "what is typed and for a few lines.",
    ),
]


def share(
    chosen: "LineTranslator", translator: "Translator", workers: str, typed: bool
) -> "ParallelTranslator":
    """What `chosen` makes of what `translator` finds, divided among so many `workers`.

    Raises:
        ConfigError: as `number_of_workers`.
    """
    from nmt.device import use_threads
    from nmt.translation.parallel import ParallelTranslator

    device = translator.device.type
    processes = number_of_workers(workers, device, typed)
    if workers != "auto" and device == "cpu":
        use_threads(1)  # of each: one process that was asked for has one core
    return ParallelTranslator(chosen, translator, processes)


def number_of_workers(asked: str, device: str, typed: bool) -> int:
    """How many processes; `asked` is auto or a number.

    Raises:
        ConfigError: several of them for one GPU.
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
