"""The end of training: average checkpoints and choose the weights that translate best."""

import json
from collections.abc import Callable
from pathlib import Path

from nmt.checkpoint import (
    average_weights,
    intact_checkpoints,
    load_into,
    load_weights,
    save_checkpoint,
)
from nmt.run_directory import RunDirectory
from nmt.training.retention import checkpoints_to_average
from nmt.training.trainer import Trainer


def best_weights_chosen(directory: RunDirectory, step: int) -> bool:
    """Return whether the best weights of a run of `step` steps have been chosen already."""
    try:
        best = json.loads(directory.best.read_text("utf-8"))
        return bool(best["trained_steps"] == step)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def choose_best_weights(trainer: Trainer, log: Callable[[str], None]) -> None:
    """Translate the validation set with each candidate and write the best one into best.json."""
    directory, state, monitor = trainer.directory, trainer.state, trainer.monitor
    ranked = state.ranking.steps
    averaged = intact_checkpoints(
        checkpoints_to_average(directory, trainer.config.training, ranked), log
    )
    save_checkpoint(directory.averaged, average_weights(averaged))
    beam = trainer.config.decoding.beam_size
    results = {}
    for name, folder in _candidates(trainer, log).items():
        load_into(trainer.model, load_weights(folder), folder)
        results[name] = trainer.validator.validate(beam)
        log(f"{name}: {results[name]} (beam {beam})")
    best = max(results, key=lambda name: results[name].score)
    is_average = best == directory.averaged.name
    directory.write_json(
        directory.best,
        {
            "weights": best,
            **results[best].figures(),
            "averaged_from": [path.name for path in averaged] if is_average else None,
            "candidates": {name: result.figures() for name, result in results.items()},
            "trained_steps": state.step,
            "training_seconds": round(monitor.seconds, 1),
            "target_tokens": monitor.total_tokens,
        },
    )
    log(
        f"trained {state.step:,} steps on {monitor.total_tokens:,} target tokens "
        f"in {monitor.seconds / 60:.1f} min; best weights: {directory.path / best}"
    )


def _candidates(trainer: Trainer, log: Callable[[str], None]) -> dict[str, Path]:
    """Return the average, the best single checkpoint and the moving average, where they exist."""
    directory, state = trainer.directory, trainer.state
    candidates = {directory.averaged.name: directory.averaged}
    if state.ranking.steps:
        single = directory.checkpoint(state.ranking.steps[0])
        if intact_checkpoints([single], log):
            candidates[str(single.relative_to(directory.path))] = single
    if state.moving_average:
        weights = {name: weight.cpu() for name, weight in state.moving_average.weights.items()}
        save_checkpoint(directory.moving_average, weights)
        candidates[directory.moving_average.name] = directory.moving_average
    return candidates
