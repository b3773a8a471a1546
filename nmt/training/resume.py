"""Going on with an earlier run: what may have changed since, and where it stood."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nmt.checkpoint import load_into, load_state, load_weights, newest_checkpoint
from nmt.config import Config
from nmt.config_file import load_config
from nmt.data.tokens.tokenizer import Tokenizer
from nmt.errors import ConfigError, DataError, DivergedError
from nmt.run_directory import RunDirectory
from nmt.training.examples import delete_examples_after
from nmt.training.schedule import learning_rate
from nmt.training.trainer import Trainer

# Keys that may change between two parts of one run: none of them alters a step already taken.
CHANGEABLE_KEYS = {
    "training.max_steps",
    "training.micro_batch_tokens",
    "training.log_every",
    "training.tensorboard",
    "training.validate_every",
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


FINGERPRINTS = {
    "data_fingerprint": "training text",
    "validation_fingerprint": "validation set",
}
"""what environment.json calls the digests of a run's text"""
MAX_ROLL_BACKS = 10
"""in one run; a recipe that needs more does not work"""


def _flat(section: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in section.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def check_recipe_unchanged(directory: RunDirectory, config: Config) -> None:
    """Refuse to continue a run under a recipe that contradicts what it was trained with.

    Raises:
        ConfigError: naming each key with both values.
    """
    saved = directory.saved_checkpoints()
    if not saved:
        return
    trained_with = load_config(str(directory.config))
    old = _flat(trained_with.model_dump())
    new = _flat(config.model_dump())
    changed = [
        f"{key}: the run has {old.get(key)!r}, now {new.get(key)!r}"
        for key in {**old, **new}
        if old.get(key) != new.get(key)
        and not key.startswith(("decoding.", "data.test."))
        and key not in CHANGEABLE_KEYS
    ]
    if changed:
        raise ConfigError(
            f"{directory.path}: already holds a run with another recipe; "
            f"choose another --run-dir, or undo: {'; '.join(changed)}"
        )
    _check_rates_unchanged(directory, trained_with, config, RunDirectory.step_of(saved[-1]))


def _check_rates_unchanged(directory: RunDirectory, old: Config, new: Config, taken: int) -> None:
    """A schedule that ends at max_steps cannot be given another end once it has begun to fall."""
    for step in range(1, taken + 1):
        if learning_rate(step, old) != learning_rate(step, new):
            raise ConfigError(
                f"{directory.path}: with training.max_steps {new.training.max_steps:,} instead of "
                f"{old.training.max_steps:,} the schedule '{new.training.schedule}' would have had "
                f"another learning rate at step {step:,}, and {taken:,} are taken; "
                f"keep max_steps, or choose another --run-dir"
            )


def check_data_unchanged(directory: RunDirectory, fingerprints: Mapping[str, str]) -> None:
    """Refuse to continue a run on other text than that of these `fingerprints`.

    Raises:
        ConfigError: the training text, the tokenizer's settings or the validation set are not those
            of the run.
    """
    if not directory.saved_checkpoints():
        return
    try:
        known = json.loads(directory.environment.read_text("utf-8"))
        before = {name: known.get(name) for name in fingerprints}
    except (OSError, ValueError, AttributeError):
        return  # a run whose provenance is lost can only be trusted
    for name, text in FINGERPRINTS.items():
        if before[name] and before[name] != fingerprints[name]:
            raise ConfigError(
                f"{directory.path}: the {text} has changed since this run began (fingerprint "
                f"{before[name]}, now {fingerprints[name]}); restore it, or choose another "
                "--run-dir"
            )


def check_tokenizer_unchanged(directory: RunDirectory, tokenizer: Tokenizer) -> None:
    """Refuse to continue a run with another tokenizer: its ids would mean other words.

    One that is lost is written again.

    Raises:
        ConfigError: the run's own is another one.
    """
    if not directory.saved_checkpoints():
        return
    try:
        own = Tokenizer.load(directory.tokenizer)
    except DataError:
        tokenizer.save(directory.tokenizer)
        return
    if own.differs_from(tokenizer):
        raise ConfigError(
            f"{directory.path}: its tokenizer is another than the one learnt from the same text "
            "now, by another version of SentencePiece perhaps; set tokenizer.model to a copy of "
            f"what is in {directory.tokenizer}, or choose another --run-dir"
        )


def resume(trainer: Trainer, directory: RunDirectory, log: Callable[[str], None]) -> None:
    """Continue from the newest checkpoint that verifies; a run without any starts at step 0.

    Raises:
        CheckpointError: there are checkpoints, and every one is damaged.
    """
    path = _restore(trainer, log)
    if path is None:
        trainer.monitor.drop_records_after(0)
        if trainer.group.is_main:
            delete_examples_after(directory.translations, 0)
    else:
        log(f"resuming after step {trainer.step:,} from {path}")


def roll_back(trainer: Trainer, error: DivergedError, log: Callable[[str], None]) -> None:
    """After a step that diverged, go on from the last checkpoint without the steps since.

    The weights are taken back; the place in the data and in the schedule is not.

    Raises:
        DivergedError: with advice, where the recipe does not ask for this, or it did not help.
    """
    trainer.wait_for_checkpoint()
    diverged, roll_backs = trainer.step, trainer.roll_backs
    if trainer.config.training.on_divergence == "stop":
        raise DivergedError(
            f"{error}. Whatever is in {trainer.directory.checkpoints} is from before. "
            "Lower training.peak_learning_rate, "
            "raise training.warmup_steps or set training.clip_norm, in a new --run-dir; or set "
            "training.on_divergence: roll_back"
        ) from error
    if roll_backs >= MAX_ROLL_BACKS:
        raise DivergedError(
            f"{error}. This run has gone back to an earlier checkpoint {MAX_ROLL_BACKS} times "
            "already; lower training.peak_learning_rate or set training.clip_norm, in a new "
            "--run-dir"
        ) from error
    path = _restore(trainer, log)
    if path is None:
        raise DivergedError(
            f"{error}. There is no checkpoint yet to go back to; lower "
            "training.peak_learning_rate, or raise training.warmup_steps"
        ) from error
    trainer.model.zero_grad(set_to_none=True)
    log(f"{error}; going on with the weights of {path.name}, without the steps since")
    trainer.monitor.record_roll_back(diverged, trainer.step)
    trainer.skip_to(diverged)
    trainer.roll_backs = roll_backs + 1
    trainer.save(wait=trainer.finished())


def _restore(trainer: Trainer, log: Callable[[str], None]) -> Path | None:
    """Put back the newest checkpoint that verifies, and say which that is, if there is any."""
    path = trainer.group.broadcast_from_main(lambda: _newest(trainer.directory, log))
    if path is not None:
        load_into(trainer.model, load_weights(path), path)
        trainer.load_state(load_state(path))
    return path


def _newest(directory: RunDirectory, log: Callable[[str], None]) -> Path | None:
    saved = directory.saved_checkpoints()
    return newest_checkpoint(saved, log) if saved else None
