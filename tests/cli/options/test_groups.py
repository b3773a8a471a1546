"""A dataclass as a parameter of a command stands for options, one for each of its fields."""

from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from nmt.cli.options.groups import CommandWithGroups, with_option_groups


@dataclass(frozen=True)
class Size:
    width: int
    """How wide it is,
    in metres."""
    height: Annotated[int, typer.Option("--high", "-h", min=1)] = 2


@dataclass(frozen=True)
class Colour:
    colour: Annotated[str, typer.Option()] = "red"


def test_fields_are_options_whose_defaults_a_command_may_replace() -> None:
    app = typer.Typer(rich_markup_mode=None)

    @app.command(cls=CommandWithGroups)
    @with_option_groups
    def paint(size: Size, colour: Colour = Colour("blue"), often: int = 1) -> None:  # noqa: B008
        print(size, colour, often)

    run = CliRunner()
    assert "How wide it is, in metres." in run.invoke(app, ["--help"]).stdout
    assert run.invoke(app, ["--width", "3"]).stdout == f"{Size(3)} {Colour('blue')} 1\n"
    given = ["--width", "3", "-h", "4", "--colour", "green", "--often", "5"]
    assert run.invoke(app, given).stdout == f"{Size(3, 4)} {Colour('green')} 5\n"
    assert run.invoke(app, []).exit_code == 2
    assert run.invoke(app, ["--width", "3", "--high", "0"]).exit_code == 2
