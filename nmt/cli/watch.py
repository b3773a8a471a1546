"""`nmt watch`: the progress of a run that another process trains."""

import shutil
import sys
import time
from pathlib import Path
from typing import Annotated

import typer


def watch(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run directory.")],
    once: Annotated[bool, typer.Option("--once", help="Show the progress once and end.")] = False,
    every: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="Interval between two updates.")
    ] = 2.0,
) -> None:
    """Show the progress of a run until it is finished.

    The table has step, losses, BLEU, speed and remaining time. The run is only read, never changed.
    Without a terminal the progress is shown once.
    """
    from nmt.report.watch import read_progress, render_progress
    from nmt.run.directory import find_run

    directory = find_run(run)
    is_live = sys.stdout.isatty() and not once
    height = 0  # lines of the last table
    while True:
        progress = read_progress(directory)
        width = shutil.get_terminal_size().columns if is_live else 100
        table = render_progress(progress, width)
        # move the cursor to the first line of the last table, and clear from there
        clear = f"\x1b[{height}A\x1b[J" if height else ""
        typer.echo(clear + table)
        if not is_live or progress.finished:
            return
        height = table.count("\n") + 1
        time.sleep(every)
