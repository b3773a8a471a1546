"""`nmt plot`: the figures of a run or a recipe, as PNG and SVG."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from nmt.cli.recipe_options import ConfigOption, SettingsOption

app = typer.Typer(
    name="plot", help="Draw learning curves, attention maps and schedules.", no_args_is_help=True
)

ModelOption = Annotated[
    str, typer.Option("--model", "-m", metavar="RUN", help="Run directory or checkpoint.")
]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="STEM",
        dir_okay=False,
        help="Write STEM.png and STEM.svg; by default into the run's plots/.",
    ),
]


class Kind(StrEnum):
    """Which of the three uses of attention to draw."""

    cross = "cross"
    encoder = "encoder"
    decoder = "decoder"


@app.command()
def loss(model: ModelOption, output: OutputOption = None) -> None:
    """Draw training loss, validation loss and BLEU of a run."""
    from nmt.report.curves import plot_loss
    from nmt.run_directory import find_run

    run = find_run(Path(model))
    _print(plot_loss(run.metrics, output or run.plots / "loss"))


@app.command()
def schedule(
    config: ConfigOption,
    settings: SettingsOption = None,
    output: OutputOption = None,
) -> None:
    """Draw the learning rate that a recipe asks for, over all its steps.

    The default of --output is NAME-schedule in the current folder.
    """
    from nmt.config_file import find_config, load_config
    from nmt.report.schedule import plot_schedule

    stem = output or Path(f"{find_config(config).stem}-schedule")
    _print(plot_schedule(load_config(config, settings or []), stem))


@app.command()
def attention(
    sentence: Annotated[str, typer.Argument(help="The text to translate.")],
    model: ModelOption,
    layer: Annotated[
        int | None, typer.Option(help="Layer, counted from 1; the default is the last.")
    ] = None,
    kind: Annotated[Kind, typer.Option(help="Which attention to draw.")] = Kind.cross,
    output: OutputOption = None,
) -> None:
    """Translate a sentence and draw where each attention head looks."""
    import torch

    from nmt.report.attention_maps import plot_attention
    from nmt.run_directory import find_run, load_run

    run = load_run(model, torch.device("cpu"))
    stem = output or find_run(Path(model)).plots / f"attention-{kind.value}"
    _print(plot_attention(run, sentence, stem, kind.value, layer))


def _print(paths: list[Path]) -> None:
    """One written file a line."""
    for path in paths:
        typer.echo(path)
