"""`nmt plan`: what a recipe will take, before it runs."""

import json
from typing import Annotated

import typer

from nmt.cli.options.recipe import ConfigOption, SettingsOption


def plan(
    config: ConfigOption,
    settings: SettingsOption = None,
    measure: Annotated[
        bool, typer.Option("--probe/--no-probe", help="Measure the time with real training steps.")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Estimate parameters, memory, operations, time and disk space of a recipe.

    Downloads and prepares nothing. The probe trains the real model for about half a minute.
    """
    from nmt.config_file import load_config

    recipe = load_config(config, settings or [])
    from nmt.planning.description import describe
    from nmt.planning.plan import make_plan

    made = make_plan(recipe, measure)
    typer.echo(json.dumps(made.as_json()) if as_json else describe(made))
