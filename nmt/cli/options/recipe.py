"""The options of every command that reads a recipe."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from nmt.config import Config

SettingsOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override section.key; may be repeated."),
]


@dataclass(frozen=True)
class RecipeOptions:
    """A recipe, and settings that replace some of its own."""

    config: str
    """A YAML file, or the name of a bundled recipe."""
    settings: SettingsOption = None

    def load(self, *more: str) -> "Config":
        """Read the recipe; `more` settings replace those of the options.

        Raises:
            ConfigError: There is no such recipe, or it holds a mistake.
        """
        from nmt.config_file import load_config

        return load_config(self.config, [*(self.settings or []), *more])

    @property
    def path(self) -> Path:
        """Return the file of the recipe."""
        from nmt.config_file import find_config

        return find_config(self.config)
