"""The command `nmt`: one file a command, and one place where errors become a sentence."""

import atexit
import gc
import os
import signal
import sys
import traceback
from types import FrameType
from typing import NoReturn

import typer

from nmt.cli import (
    average,
    compare,
    data,
    doctor,
    eval_bleu,
    init,
    plan,
    plot,
    prepare,
    report,
    score,
    shortlist,
    train,
    translate,
    watch,
)
from nmt.errors import NmtError, StoppedBySignal

app = typer.Typer(
    name="nmt",
    help="Train Transformer translation models and put them to use.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("init")(init.init)
app.add_typer(data.app)
app.command("prepare")(prepare.prepare)
app.command("train")(train.train)
app.command("translate")(translate.translate)
app.command("eval-bleu")(eval_bleu.eval_bleu)
app.command("score")(score.score)
app.command("shortlist")(shortlist.shortlist)
app.command("compare")(compare.compare)
app.command("average")(average.average)
app.command("plan")(plan.plan)
app.command("doctor")(doctor.doctor)
app.add_typer(plot.app)
app.command("report")(report.report)
app.command("watch")(watch.watch)


def _version(asked: bool) -> None:
    if asked:
        from nmt import __version__

        typer.echo(f"nmt {__version__}")
        raise typer.Exit


@app.callback()
def options(
    debug: bool = typer.Option(False, "--debug", help="Show the traceback of an error."),
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    """Train Transformer translation models and put them to use."""


def _fill_closed_streams() -> None:
    """Keep other files from the places 0, 1 and 2, where libraries write as well.

    stdin and stdout stay None for Python, so that a command can say so; messages go nowhere.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # it gets the lowest number that is free: this one
    if sys.stderr is None:
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115 - as long as the process


def _stop(number: int, frame: FrameType | None) -> None:
    raise StoppedBySignal(f"stopped by {signal.Signals(number).name}", number)


def _leave(message: str, exit_code: int) -> NoReturn:
    """End with the sentence, after the traceback of the error at hand if it was asked for."""
    if "--debug" in sys.argv[1:2]:
        traceback.print_exc()
    print(f"nmt: {message}", file=sys.stderr)
    sys.exit(exit_code)


def main() -> None:
    """Run the command line; what the user can act on is one sentence on stderr."""
    _fill_closed_streams()
    atexit.register(gc.freeze)  # else all that is loaded is searched for garbage at the very end
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    try:
        app()
    except NmtError as error:
        _leave(str(error), error.exit_code)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _leave(f"{where}{error.strerror or error}", NmtError.exit_code)
