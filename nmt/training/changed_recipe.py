"""Which settings may change when a run is resumed: those that alter no step already taken.

A run is always that of its recipe. With the recipe of now, a training from the beginning would have
taken the same steps as the run has.
"""

import math

from nmt.errors import CheckpointError, ConfigError
from nmt.files import read_json_or_empty
from nmt.recipe.config import Config
from nmt.recipe.config_file import flatten_settings, load_config
from nmt.run.checkpoint import load_state
from nmt.run.checkpoint_files import MANIFEST, STATE
from nmt.run.directory import RunDirectory
from nmt.training.schedule import learning_rate

CHANGEABLE_KEYS = {
    "tokenizer.model",  # the pieces themselves may not change
    "tokenizer.target_model",
    "training.micro_batch_tokens",
    "training.log_every",
    "training.track",
    "training.validate_every",
    "training.validation_metric",  # the saved validations are ranked again
    "training.checkpoint_every",
    "training.average_checkpoints",
    "training.average",
    "training.keep_last",
    "training.keep_best",
    "training.activation_checkpointing",
    "training.compile",
    "training.largest_spike",
    "training.on_divergence",
    "training.early_stopping",
    "training.score_test_set",
    "training.device",
    "training.threads",
    "data.test",
    "data.directory",
}
"""keys that may always change, beside those of the section `decoding`"""
RATE_KEYS = {
    "training.max_steps",
    "training.schedule",
    "training.warmup_steps",
    "training.peak_learning_rate",
    "training.cooldown_steps",
}
"""keys that may change if all steps that were taken keep their learning rates"""
_CLIP_NORM = "training.clip_norm"
"""may change if no gradient so far had a larger norm than the smaller one of both values"""
_CHANGEABLE_SECTION = "decoding."
_ROUNDING = 1.001  # a norm that is almost the limit may have been clipped


def check_recipe_unchanged(
    directory: RunDirectory, config: Config, from_step: int | None = None
) -> int | None:
    """Check that a run, if it has begun, can be resumed with this recipe.

    Returns None if it goes on from its last checkpoint. Where the recipe does not allow this, but
    allows to go on from the checkpoint of `from_step`, it returns `from_step`.

    Raises:
        ConfigError: a key that may not change has another value; the message names each such key
            with both values, and what to do. Or the run has no checkpoint of `from_step`, or no
            training state, as one that was imported.
    """
    steps = [RunDirectory.step_of(path) for path in directory.saved_checkpoints()]
    _check_has_state(directory)
    saved = load_config(str(directory.config)) if steps else config
    problems = _find_problems(directory, saved, config, steps[-1]) if steps else []
    if steps and not problems:
        return None
    if from_step is not None and from_step not in steps:
        others = f"those of the steps {', '.join(map(str, steps))}" if steps else "none"
        raise ConfigError(
            f"{directory.path}: there is no checkpoint of step {from_step} to go on from; "
            f"the run has {others}"
        )
    if not steps:
        return None
    earlier = [step for step in steps if not _find_problems(directory, saved, config, step)]
    if from_step in earlier:
        return from_step
    go_back = (
        f"; or go on from the checkpoint of step {step:,}, which is from before, with `from_step` "
        f"{step}"
        for step in earlier[-1:]
    )
    raise ConfigError(
        f"{directory.path}: already holds a run with another recipe: {'; '.join(problems)}. "
        f"Undo this{''.join(go_back)}; or choose another `run_dir`, where "
        f"training.initialize_from: {directory.path} begins with the weights of this run"
    )


def has_weights_alone(directory: RunDirectory) -> bool:
    """Return whether a run has checkpoints, and none has the state of a training beside weights."""
    saved = directory.saved_checkpoints()
    manifests = [read_json_or_empty(path / MANIFEST) for path in saved]  # empty: damaged
    return bool(saved) and all(manifest and STATE not in manifest for manifest in manifests)


def _check_has_state(directory: RunDirectory) -> None:
    """Check that a run, if it has begun, has the state of a training beside weights.

    Raises:
        ConfigError: it has weights alone.
    """
    if has_weights_alone(directory):
        raise ConfigError(
            f"{directory.path}: its checkpoints hold weights alone, as those of `nmt import` and "
            "nmt.save_run, so its training cannot go on; choose another `run_dir`, with "
            f"training.initialize_from: {directory.path}"
        )


def _find_problems(directory: RunDirectory, saved: Config, config: Config, taken: int) -> list[str]:
    """Return what has changed and may not after `taken` steps: keys, both values and the reason.

    The last of these steps has a checkpoint. `saved` is the recipe of the run so far.
    """
    old, new = flatten_settings(saved.model_dump()), flatten_settings(config.model_dump())
    problems = []
    for key in {**old, **new}:
        before, now = old.get(key), new.get(key)
        if before == now or key in CHANGEABLE_KEYS or key.startswith(_CHANGEABLE_SECTION):
            continue
        reason = ""
        if key in RATE_KEYS:
            step = _first_other_rate(saved, config, taken)
            if step is None:
                continue
            reason = f" (another learning rate at step {step:,}, and {taken:,} are taken)"
        elif key == _CLIP_NORM:
            largest = _largest_norm(directory, taken)
            smaller = min(before or math.inf, now or math.inf)
            if largest is not None and largest * _ROUNDING < smaller:
                continue
            is_known = largest is not None and math.isfinite(largest)
            reason = f" (a gradient had the norm {largest:.3g})" if is_known else ""
        problems.append(f"{key}: the run has {before!r}, now {now!r}{reason}")
    return problems


def _first_other_rate(saved: Config, config: Config, taken: int) -> int | None:
    """Return the first of the steps taken that has another learning rate in `config`, or None."""
    steps = range(1, taken + 1)
    other = (n for n in steps if learning_rate(n, saved) != learning_rate(n, config))
    return next(other, None)


def _largest_norm(directory: RunDirectory, step: int) -> float | None:
    """Return the largest norm of a gradient up to the checkpoint of a step; None if unknown."""
    try:
        largest = load_state(directory.checkpoint(step)).get("largest_norm")
    except CheckpointError:  # damaged: another one will be used
        return None
    return None if largest is None else float(largest)
