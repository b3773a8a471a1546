"""The command `nmt`: one file a command, and one place where errors become a sentence."""

import os
import sys
import traceback

import click
import typer

from nmt.cli import average, data, eval_bleu, plot, prepare, train, translate
from nmt.errors import NmtError

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


def main() -> None:
    """Run the command line; errors the user can act on are one sentence on stderr."""
    debug = "--debug" in sys.argv[1:2]
    try:
        code = app(standalone_mode=False)
    except NmtError as error:
        if debug:
            traceback.print_exc()
        print(f"nmt: {error}", file=sys.stderr)
        code = error.exit_code
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (KeyboardInterrupt, click.Abort):
        print("nmt: interrupted", file=sys.stderr)
        code = 130
    except BrokenPipeError:
        # The reader of our output has left; what it did not read is not wanted.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.exit(code)
