"""`nmt plan`: what a recipe will take, before it runs."""

import json
from typing import Annotated

import typer

from nmt.cli.options.groups import JsonObjectOption, with_option_groups
from nmt.cli.options.model import RecipeOptions


@with_option_groups
def plan(
    recipe: RecipeOptions,
    measure: Annotated[
        bool, typer.Option("--probe/--no-probe", help="Measure the time with real training steps.")
    ] = True,
    as_json: JsonObjectOption = False,
) -> None:
    """Estimate what a recipe will take, before it runs.

    Prints parameters, memory, operations, time and disk space. Downloads and writes nothing. A text
    that is not prepared is read, and a sample of it prepared, to estimate the size of an epoch and
    the time of its preparation. The probe trains the real model for about half a minute.
    """
    config = recipe.load()
    from nmt.planning.plan import describe_plan, make_plan

    recipe_plan = make_plan(config, measure)
    text = json.dumps(recipe_plan.as_json()) if as_json else describe_plan(recipe_plan)
    typer.echo(text)
