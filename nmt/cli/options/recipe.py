"""The options of every command that reads a recipe."""

from typing import Annotated

import typer

ConfigOption = Annotated[str, typer.Option(help="A YAML file, or the name of a bundled recipe.")]
SettingsOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override section.key; may be repeated."),
]
