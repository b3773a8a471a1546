"""`nmt doctor`: whether this machine, and a recipe on it, is ready to train."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.options.groups import JsonObjectOption
from nmt.cli.options.model import SettingsOption
from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.planning.machine_checks import Check

RUNS = Path("runs")


def doctor(
    config: Annotated[
        str | None, typer.Option(help="Also check this YAML file or bundled recipe.")
    ] = None,
    settings: SettingsOption = None,
    as_json: JsonObjectOption = False,
) -> None:
    """Check whether this machine and a recipe are ready to train.

    Each line is ok, a warning or a failure. The exit code is 1 if any check is a failure.
    """
    if settings and config is None:
        raise ConfigError("--set changes a recipe; give one with --config")
    checks = list(_checks(config, settings or []))
    failed = any(check.status == "failure" for check in checks)
    if as_json:
        from nmt.cli.lines.json_lines import format_record

        report = {"ok": not failed, "checks": [asdict(check) for check in checks]}
        typer.echo(format_record(report))
    else:
        typer.echo("\n".join(str(check) for check in checks))
    if failed:
        raise typer.Exit(1)


def _checks(config: str | None, settings: list[str]) -> "Iterator[Check]":
    """Check the machine, then the recipe if PyTorch and the other libraries can be imported."""
    from nmt.planning.machine_checks import Check, check_machine
    from nmt.recipe.config_file import load_config

    recipe = None
    if config is not None:
        try:
            recipe = load_config(config, settings)
        except ConfigError as error:
            yield Check("recipe", "failure", str(error), "correct the recipe")
    folders = [RUNS, Path(recipe.data.directory)] if recipe else [RUNS]
    machine = list(check_machine(folders))
    yield from machine
    failures = {check.name for check in machine if check.status == "failure"}
    # the checks of a recipe import PyTorch and the other libraries
    if recipe is not None and failures.isdisjoint({"torch", "libraries"}):
        from nmt.planning.recipe_checks import check_recipe

        yield from check_recipe(recipe, RUNS)
