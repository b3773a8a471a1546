"""The program `nmt`: its commands, and the place where an error becomes one sentence."""

import atexit
import gc
import io
import os
import signal
import sys
import traceback
import warnings
from types import FrameType
from typing import NoReturn

import typer

from nmt import __version__
from nmt.cli import (
    average,
    compare,
    data,
    distill,
    doctor,
    eval_bleu,
    export,
    import_model,
    init,
    memory,
    plan,
    plot,
    prepare,
    report,
    runs,
    score,
    serve,
    shortlist,
    sweep,
    synthesize,
    train,
    translate,
)
from nmt.cli.options.groups import CommandWithGroups
from nmt.errors import NmtError, StoppedBySignal
from nmt.machine.memory import (
    check_threads,
    is_shortage,
    limit_kernel_caches,
    limit_of_groups,
    share_one_arena,
)
from nmt.machine.processor import available_cores

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)

app = typer.Typer(
    name="nmt", no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None
)
# in the order of `nmt --help`
for command in (
    init.init,
    prepare.prepare,
    train.train,
    sweep.sweep,
    translate.translate,
    eval_bleu.eval_bleu,
    score.score,
    shortlist.shortlist,
    compare.compare,
    runs.runs,
    average.average,
    plan.plan,
    doctor.doctor,
    report.report,
    export.export,
    synthesize.synthesize,
    distill.distill,
    serve.serve,
):
    app.command(cls=CommandWithGroups)(command)
app.command("import", cls=CommandWithGroups)(import_model.import_model)
app.add_typer(data.app)
app.add_typer(memory.app)
app.add_typer(plot.app)


def _print_version(is_requested: bool) -> None:
    """Print the version and end the program if --version is given; typer calls this."""
    if is_requested:
        typer.echo(f"nmt {__version__}")
        raise typer.Exit


@app.callback()
def options(
    debug: bool = typer.Option(False, "--debug", help="Show the traceback of an error."),
    version: bool = typer.Option(
        False,
        "--version",
        callback=_print_version,
        is_eager=True,
        help="Show the version and exit.",
    ),
) -> None:
    """Train Transformer translation models and put them to use."""
    # Typer prints this as the help of `nmt`. The options act elsewhere: --version calls
    # `_print_version`, and `_exit` looks for --debug in the command line.


def _fill_closed_streams() -> None:
    """Open /dev/null in place of a closed stdin, stdout or stderr.

    Otherwise the next file would get its descriptor, and libraries would write messages into it.
    `sys.stdin` and `sys.stdout` stay None, so that a command can report that they are closed.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free descriptor, which is this one
    if sys.stderr is None:
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115 - stays open until the end


def _raise_stopped(signal_number: int, frame: FrameType | None) -> None:
    """Turn a signal into an exception; Python calls this with the interrupted `frame`."""
    name = signal.Signals(signal_number).name
    raise StoppedBySignal(f"stopped by {name}", signal_number)


def _exit(message: str, exit_code: int) -> NoReturn:
    """Print the message of the current error, after its traceback with --debug, and exit."""
    for stop_signal in STOP_SIGNALS:  # another one would end this by a traceback
        signal.signal(stop_signal, signal.SIG_IGN)
    if "--debug" in sys.argv[1:2]:  # an option of `nmt` itself stands before the command
        traceback.print_exc()
    print(f"nmt: {message}", file=sys.stderr)
    sys.exit(exit_code)


def _leave_out_last_collection() -> None:
    """Let Python end faster, without a last garbage collection; called when it ends.

    Triton needs it: since 3.9 its library prints a page about objects that are left over.
    """
    if "triton" not in sys.modules:
        gc.freeze()


def main() -> None:
    """Run the command line; print an `NmtError` or `OSError` as a sentence on stderr and exit."""
    _fill_closed_streams()
    if isinstance(sys.stdout, io.TextIOWrapper):
        # a file name that is not UTF-8, which a command may print, goes out as it is
        sys.stdout.reconfigure(errors="surrogateescape")
    atexit.register(_leave_out_last_collection)
    limit_kernel_caches()
    share_one_arena()
    for stop_signal in STOP_SIGNALS:
        signal.signal(stop_signal, _raise_stopped)
    try:
        check_threads(available_cores() - 1, 160 << 20)  # what NumPy takes when it is imported
        warnings.filterwarnings("ignore", "tqdm:disabling monitor")  # a bar that lacks a thread
        app()
    except NmtError as error:
        _exit(str(error), error.exit_code)
    except BaseException as error:  # libraries in Rust raise exceptions that are no `Exception`
        if isinstance(error, SystemExit):
            raise
        if is_shortage(error):
            limits = ", ".join(["ulimit -v", "ulimit -u", *limit_of_groups()])
            _exit(
                "the memory or the number of threads that this process may use does not suffice "
                f"for the command; close other programs, or raise the limit ({limits})",
                NmtError.exit_code,
            )
        if not isinstance(error, OSError):
            raise
        file = f"{error.filename}: " if error.filename else ""
        reason = error.strerror or error  # not every OSError has a message of the system
        _exit(f"{file}{reason}", NmtError.exit_code)
    finally:  # while Python ends, nothing would catch the exception of `_raise_stopped`
        for stop_signal in (signal.SIGINT, signal.SIGTERM):
            signal.signal(stop_signal, signal.SIG_DFL)
