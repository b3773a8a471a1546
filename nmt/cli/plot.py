"""`nmt plot`: figures of a run or a recipe, as PNG and SVG.

Each command prints the paths of the two files that it writes.
"""

from pathlib import Path
from typing import Annotated, Literal

import typer

from nmt.cli.options.groups import CommandWithGroups, with_option_groups
from nmt.cli.options.model import OneModelOption, RecipeOptions

app = typer.Typer(
    name="plot", help="Draw learning curves, attention maps and schedules.", no_args_is_help=True
)

OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="STEM",
        dir_okay=False,
        help="Write STEM.png and STEM.svg.",
    ),
]


@app.command(cls=CommandWithGroups)
def loss(model: OneModelOption, output: OutputOption = None) -> None:
    """Draw training loss, validation loss and BLEU of a run.

    The default of --output is plots/loss in the run.
    """
    from nmt.report.plots import plot_loss
    from nmt.run.directory import find_run

    directory = find_run(Path(model))
    stem = output or directory.plots / "loss"
    files = plot_loss(directory.metrics, stem)
    print(*files, sep="\n")


@app.command(cls=CommandWithGroups)
@with_option_groups
def schedule(recipe: RecipeOptions, output: OutputOption = None) -> None:
    """Draw the learning rate of a recipe over all its steps.

    The default of --output is NAME-schedule in the current folder.
    """
    from nmt.report.plots import plot_schedule

    stem = output or Path(f"{recipe.name}-schedule")
    files = plot_schedule(recipe.load(), stem)
    print(*files, sep="\n")


@app.command(cls=CommandWithGroups)
def attention(
    sentence: Annotated[str, typer.Argument(help="The text to translate.")],
    model: OneModelOption,
    layer: Annotated[
        int | None, typer.Option(help="Layer, counted from 1; the default is the last.")
    ] = None,
    kind: Annotated[
        Literal["cross", "encoder", "decoder"], typer.Option(help="Which attention to draw.")
    ] = "cross",
    head: Annotated[
        int | None, typer.Option(help="Head, counted from 1; the default is all and their mean.")
    ] = None,
    words: Annotated[
        bool, typer.Option("--words", help="Draw words instead of subword pieces.")
    ] = False,
    output: OutputOption = None,
) -> None:
    """Draw the attention weights of each head for a sentence.

    The model translates it first. The default of --output is plots/attention-KIND in the run.
    """
    import torch

    from nmt.report.attention_maps import attention_map, merge_words, record_attention
    from nmt.report.plots import draw_attention
    from nmt.run.directory import find_run
    from nmt.run.model import load_model

    loaded = load_model(model, torch.device("cpu"))
    record = record_attention(loaded, sentence)
    weights = attention_map(record, kind, layer, head)
    if words:
        weights = merge_words(weights)
    stem = output or find_run(Path(model)).plots / f"attention-{kind}"
    files = draw_attention(weights, stem)
    print(*files, sep="\n")


@app.command(cls=CommandWithGroups)
def positions(
    length: Annotated[int, typer.Option(min=2, max=4096, help="Number of positions.")] = 100,
    d_model: Annotated[
        int, typer.Option(min=2, max=4096, help="Number of dimensions, even.")
    ] = 128,
    output: OutputOption = None,
) -> None:
    """Draw the positional encoding (section 3.5) as a heat map.

    The default of --output is positions in the current folder.
    """
    from nmt.report.plots import plot_positions

    stem = output or Path("positions")
    files = plot_positions(length, d_model, stem)
    print(*files, sep="\n")
