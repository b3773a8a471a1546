"""`nmt doctor`: whether this machine, and a recipe on it, is ready to train."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.options.recipe import SettingsOption
from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.config import Config

RUNS = Path("runs")


def doctor(
    config: Annotated[
        str | None, typer.Option(help="A YAML file, or a bundled recipe, to look at as well.")
    ] = None,
    settings: SettingsOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Look at this machine, and at a recipe on it: each line ok, warning or failure.

    Ends with exit code 1 where anything is a failure.
    """
    from nmt.config_file import load_config
    from nmt.planning.check import Check, failure
    from nmt.planning.machine_checks import check_machine

    if settings and config is None:
        raise ConfigError("--set changes a recipe; give one with --config")
    checks: list[Check] = []
    recipe: Config | None = None
    if config is not None:
        try:
            recipe = load_config(config, settings or [])
        except ConfigError as error:
            checks.append(failure("recipe", str(error), "correct the recipe"))
    folders = [RUNS, *([Path(recipe.data.directory)] if recipe else [])]
    checks += check_machine(folders)
    importable = not any(c.name in ("torch", "libraries") and c.status == "failure" for c in checks)
    if recipe is not None and importable:
        from nmt.planning.recipe_checks import check_recipe

        checks += check_recipe(recipe, RUNS)
    failed = any(check.status == "failure" for check in checks)
    if as_json:
        found = {"ok": not failed, "checks": [asdict(check) for check in checks]}
        typer.echo(json.dumps(found, ensure_ascii=False))
    else:
        for check in checks:
            typer.echo(str(check))
    if failed:
        raise typer.Exit(1)
