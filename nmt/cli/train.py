"""`nmt train`: does what is missing (download, prepare), then trains; rerun to resume."""

from pathlib import Path
from typing import Annotated

import typer

from nmt.cli.options.recipe import ConfigOption, SettingsOption


def train(
    config: ConfigOption,
    run_dir: Annotated[
        Path | None,
        typer.Option(help="Where the run lives; runs/<name of the recipe> if left out."),
    ] = None,
    settings: SettingsOption = None,
    device: Annotated[
        str | None,
        typer.Option(
            metavar="auto|cpu|cuda|...",
            help="Where to compute: auto (a GPU of CUDA if there is one), cpu, cuda, cuda:1, mps, "
            "xpu.  [default: training.device of the recipe]",
        ),
    ] = None,
) -> None:
    """Train a model. The same command again goes on where it stopped."""
    from nmt.config_file import find_config, load_config

    chosen = [f"training.device={device}"] if device else []
    recipe = load_config(config, [*(settings or []), *chosen])
    from nmt.training.train import train as run_training

    path = run_dir or Path("runs") / find_config(config).stem
    run_training(recipe, path, lambda message: typer.echo(message, err=True))
