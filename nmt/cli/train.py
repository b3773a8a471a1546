"""`nmt train`: does what is missing (download, prepare), then trains; rerun to resume."""

from pathlib import Path
from typing import Annotated

import typer

from nmt.cli.lines.streams import log
from nmt.cli.options.groups import with_option_groups
from nmt.cli.options.model import RecipeOptions


@with_option_groups
def train(
    recipe: RecipeOptions,
    run_dir: Annotated[
        Path | None,
        typer.Option(help="Where the run lives; runs/<name of the recipe> if left out."),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            metavar="auto|cpu|cuda|...",
            help="Where to compute: auto (a GPU of CUDA if there is one), cpu, cuda, cuda:1, mps, "
            "xpu.  [default: training.device of the recipe]",
        ),
    ] = None,
    from_step: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Where a changed recipe does not fit the last checkpoint, go on from the one of "
            "this step; later ones are set aside.",
        ),
    ] = None,
) -> None:
    """Train a model. The same command again goes on where it stopped."""
    changes = [f"training.device={device}"] if device else []
    config = recipe.load_without_parent(*changes)  # `run_training` adds the parent's settings
    from nmt.training.train import train as run_training

    run_training(config, run_dir or Path("runs") / recipe.name, log, from_step=from_step)
