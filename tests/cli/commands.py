"""Commands of `nmt` run inside the process of the test."""

import itertools
import json
import signal
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

from typer.main import get_command
from typer.testing import CliRunner, Result

from nmt.cli.app import app
from nmt.errors import NmtError, StoppedBySignal
from nmt.translation.pipeline import Pipeline

COMMAND = get_command(app)
"""`nmt` as typer builds it from `app`, once: each time takes as long as most tests of a command"""


def all_commands(group: Any = None) -> Iterator[Any]:
    """Yield the commands of a group as typer knows them; by default those of `nmt`."""
    top: Any = group or COMMAND
    for command in top.commands.values():
        yield from all_commands(command) if hasattr(command, "commands") else [command]


def invoke(*arguments: object, text: str | bytes | None = None) -> Result:
    """Run a command line such as `"score", "--model", run` with `text` on stdin.

    An exception that is not an NmtError is a bug and is raised.
    """
    with patch("typer.testing._get_command", lambda app: COMMAND, create=True):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=text)
    if result.exception and not isinstance(result.exception, NmtError | SystemExit):
        raise result.exception
    return result


def succeed(*arguments: object, text: str | bytes | None = None) -> str:
    """Run a command line that must end with 0, and return its stdout with its line ends."""
    result = invoke(*arguments, text=text)
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout_bytes.decode()


def lines_of(*arguments: object, text: str | bytes | None = None) -> list[str]:
    """Run a command line that must end with 0, and return the lines of its stdout."""
    *lines, rest = succeed(*arguments, text=text).split("\n")
    assert rest == ""
    return lines


def records_of(*arguments: object, text: str | bytes | None = None) -> list[Any]:
    """Run a command line that prints lines of JSON, and return their objects."""
    return list(map(json.loads, lines_of(*arguments, text=text)))


def fail(error: type[NmtError], *arguments: object, text: str | bytes | None = None) -> str:
    """Run a command line that must end with an error of this class, and return its message."""
    result = invoke(*arguments, text=text)
    assert isinstance(result.exception, error), (result.output, result.exception)
    return str(result.exception)


def write_lines(path: Path, lines: Iterable[str]) -> Path:
    """Write a text file with a line feed after each line, and return its path."""
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    return path


def interrupt(batches: int, run: Callable[[], Result]) -> Result:
    """Run a command that translates until so many batches are done and one more is begun."""
    calls = itertools.count(1)
    translate_batch = Pipeline.translate_batch

    def translated(pipeline: Pipeline, lines: Any) -> Any:
        if next(calls) > batches:
            raise StoppedBySignal("stopped by SIGINT", signal.SIGINT)
        return translate_batch(pipeline, lines)

    with patch.object(Pipeline, "translate_batch", translated):
        result = run()
    assert isinstance(result.exception, StoppedBySignal)
    return result
