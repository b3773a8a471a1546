"""The command `nmt`: one file a command, and one place where errors become a sentence."""

import signal
import sys
import traceback
from types import FrameType
from typing import NoReturn

import typer

from nmt.cli import average, data, eval_bleu, plot, prepare, score, train, translate
from nmt.errors import NmtError, StoppedBySignal

app = typer.Typer(
    name="nmt",
    help="Train Transformer translation models and put them to use.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(data.app)
app.command("prepare")(prepare.prepare)
app.command("train")(train.train)
app.command("translate")(translate.translate)
app.command("eval-bleu")(eval_bleu.eval_bleu)
app.command("score")(score.score)
app.command("average")(average.average)
app.add_typer(plot.app)


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
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    try:
        app()
    except NmtError as error:
        _leave(str(error), error.exit_code)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _leave(f"{where}{error.strerror or error}", NmtError.exit_code)
