"""`nmt average`: the mean of several checkpoints (section 6.1)."""

import shutil
from pathlib import Path
from typing import Annotated

import typer

from nmt.errors import CheckpointError, ConfigError


def average(
    model: Annotated[Path, typer.Option(help="The run directory.")],
    last: Annotated[int, typer.Option(min=1, help="How many of the last checkpoints.")] = 5,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Folder for the weights; averaged-last-N in the run if left out."
        ),
    ] = None,
) -> None:
    """Average the last checkpoints of a run. Prints the folder, which --model then takes."""
    from nmt.checkpoint import average_weights, load_with_metadata, save_checkpoint
    from nmt.checkpoint_files import MANIFEST, STATE
    from nmt.run_directory import find_run

    run = find_run(model)
    with run.lock():
        saved = run.saved_checkpoints()[-last:]
        if len(saved) < last:
            raise CheckpointError(
                f"{model}: {last} checkpoints asked for, it has {len(saved)} under checkpoints/"
            )
        folder = output or run.path / f"averaged-last-{last}"
        # a checkpoint of a training has its state too; an average has none
        is_average = (folder / MANIFEST).is_file() and not (folder / STATE).exists()
        if folder.exists() and not is_average:
            raise ConfigError(
                f"{folder}: exists and holds no average; choose a new folder as --output"
            )
        metadata = load_with_metadata(saved[-1])[1]
        save_checkpoint(folder, average_weights(saved), metadata=metadata)
        in_run = run.path.resolve() in folder.resolve().parents[:2]  # or in a folder of the run
        if not in_run:  # then --model needs configuration and tokenizer beside the weights
            shutil.copy(run.config, folder)
            shutil.copytree(run.tokenizer, folder / run.tokenizer.name, dirs_exist_ok=True)
    typer.echo(f"averaged {', '.join(p.name for p in saved)}", err=True)
    typer.echo(str(folder))
