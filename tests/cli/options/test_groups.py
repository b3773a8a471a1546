"""A dataclass as a parameter of a command stands for options, one for each of its fields."""

import pickle
from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from nmt.cli.options.groups import CommandWithGroups, with_option_groups
from nmt.errors import ConfigError, MissingExtraError, NmtError, NonFiniteScoresError
from tests.cli.commands import all_commands


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


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ConfigError("raise `beam_size`, or use `sample`"), "raise --beam-size, or use --sample"),
        (ConfigError("use `exact`"), "use --exact/--fast"),
        (
            ConfigError("`colour` of `file`; see `beam_size 3`"),
            "`colour` of `file`; see `beam_size 3`",
        ),
        (MissingExtraError("`sample`", "x"), "--sample needs the extra 'x': pip install 'nmt[x]'"),
        (NonFiniteScoresError(), "choose an earlier --checkpoint"),
        (pickle.loads(pickle.dumps(NonFiniteScoresError())), "choose an earlier --checkpoint"),
    ],
)
def test_an_error_names_the_option_of_the_command_instead_of_the_parameter(
    error: NmtError, message: str
) -> None:
    app = typer.Typer(rich_markup_mode=None)

    @app.command(cls=CommandWithGroups)
    def draw(
        file: str,
        beam_size: Annotated[int, typer.Option("-b", "--beam-size")] = 1,
        sample: Annotated[bool, typer.Option("--sample")] = False,
        exact: Annotated[bool, typer.Option("--exact/--fast")] = False,
        checkpoint: str = "best",
    ) -> None:
        raise error

    raised = CliRunner().invoke(app, ["x"]).exception
    assert type(raised) is type(error)
    assert message in str(raised)


def test_errors_of_every_command_name_its_options() -> None:
    assert {type(command) for command in all_commands()} == {CommandWithGroups}
