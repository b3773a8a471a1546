"""`nmt watch`: how a run is doing that goes on elsewhere."""

import shutil
import sys
import time
from pathlib import Path
from typing import Annotated

import typer


def watch(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run directory.")],
    once: Annotated[bool, typer.Option("--once", help="Show it once and end.")] = False,
    every: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="How often it is looked at.")
    ] = 2.0,
) -> None:
    """Show step, losses, BLEU, speed and time left, again and again until the run is finished.

    It only reads. Without a terminal it shows them once.
    """
    from nmt.report.watch import look, render
    from nmt.run_directory import find_run

    directory = find_run(run)
    live = sys.stdout.isatty() and not once
    height = 0
    while True:
        progress = look(directory)
        text = render(progress, shutil.get_terminal_size().columns if live else 100)
        # back to the first line of the table before, and clear from there on
        again = f"\x1b[{height}A\x1b[J" if height else ""
        typer.echo(again + text)
        if not live or progress.finished:
            return
        height = text.count("\n") + 1
        time.sleep(every)
