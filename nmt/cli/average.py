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
    from nmt.run.checkpoint import average_weights, load_with_metadata, save_checkpoint
    from nmt.run.checkpoint_files import MANIFEST, STATE
    from nmt.run.directory import find_run

    directory = find_run(model)
    with directory.lock():
        checkpoints = directory.saved_checkpoints()[-last:]
        if len(checkpoints) < last:
            raise CheckpointError(
                f"{model}: {last} checkpoints asked for, it has {len(checkpoints)} under "
                "checkpoints/"
            )
        folder = output or directory.path / f"averaged-last-{last}"
        # Only an older average may be replaced. Unlike a checkpoint, it has no training state.
        is_average = (folder / MANIFEST).is_file() and not (folder / STATE).exists()
        if folder.exists() and not is_average:
            raise ConfigError(
                f"{folder}: exists and holds no average; choose a new folder as --output"
            )
        is_in_checkpoints = folder.parent.resolve().name == directory.checkpoints.name
        if is_in_checkpoints and folder.name.startswith("step-"):
            raise ConfigError(
                f"{folder}: has the name of a checkpoint that training writes and resumes from; "
                "choose another name or folder as --output"
            )
        _weights, metadata = load_with_metadata(checkpoints[-1])  # only the metadata is needed
        save_checkpoint(folder, average_weights(checkpoints), metadata=metadata)
        # --model finds the configuration and tokenizer of a run up to two folders above the
        # weights. Elsewhere they must stand beside the weights.
        is_in_run = directory.path.resolve() in folder.resolve().parents[:2]
        if not is_in_run:
            shutil.copy(directory.config, folder)
            shutil.copytree(
                directory.tokenizer, folder / directory.tokenizer.name, dirs_exist_ok=True
            )
    names = ", ".join(checkpoint.name for checkpoint in checkpoints)
    typer.echo(f"averaged {names}", err=True)
    typer.echo(str(folder))
