"""Continuing a run: check what may not change, load the last checkpoint, roll back."""

from collections.abc import Mapping
from pathlib import Path

from nmt.data.tokens.tokenizer import Tokenizer
from nmt.errors import ConfigError, DataError, DivergedError
from nmt.files import read_json_or_empty
from nmt.recipe.config import Config
from nmt.recipe.config_file import flatten_settings, load_config
from nmt.run.checkpoint import recover_newest_checkpoint
from nmt.run.checkpoint_files import MANIFEST, STATE
from nmt.run.directory import RunDirectory
from nmt.training.schedule import learning_rate
from nmt.training.trainer import Trainer
from nmt.training.validation import delete_examples_after

# Keys that may change when a run is resumed: none of them affects a step already taken.
CHANGEABLE_KEYS = {
    "tokenizer.model",  # the pieces themselves may not change
    "tokenizer.target_model",
    "training.max_steps",
    "training.micro_batch_tokens",
    "training.log_every",
    "training.track",
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
_CHANGEABLE_SECTION = "decoding."
_CALMER = (
    "lower training.peak_learning_rate, raise training.warmup_steps or set training.clip_norm, "
    "in a new `run_dir`"
)

FINGERPRINTS = {
    "data_fingerprint": "training text",
    "validation_fingerprint": "validation set",
    "links_fingerprint": "file of links",
    "terms_fingerprint": "glossary of data.terms",
}
"""names of the digests of text in environment.json, and what each is a digest of"""
MAX_ROLL_BACKS = 10
"""limit for one run; a recipe that needs more does not work"""


def check_recipe_unchanged(directory: RunDirectory, config: Config) -> None:
    """Check that a run, if it has begun, can be resumed with this recipe.

    Raises:
        ConfigError: the run has no training state, as one that was imported; a key that may not
            change has another value (the message names each with both values); or another
            `max_steps` would change the learning rates of steps already taken.
    """
    saved = directory.saved_checkpoints()
    if not saved:
        return
    manifests = [read_json_or_empty(path / MANIFEST) for path in saved]  # empty: damaged
    if all(manifest and STATE not in manifest for manifest in manifests):
        raise ConfigError(
            f"{directory.path}: its checkpoints hold weights alone, as those of `nmt import` and "
            "nmt.save_run, so its training cannot go on; choose another `run_dir`, with "
            f"training.initialize_from: {directory.path}"
        )
    saved_config = load_config(str(directory.config))
    old, new = flatten_settings(saved_config.model_dump()), flatten_settings(config.model_dump())
    changed = [
        f"{key}: the run has {old.get(key)!r}, now {new.get(key)!r}"
        for key in {**old, **new}
        if old.get(key) != new.get(key)
        and not key.startswith(_CHANGEABLE_SECTION)
        and key not in CHANGEABLE_KEYS
    ]
    if changed:
        raise ConfigError(
            f"{directory.path}: already holds a run with another recipe; "
            f"choose another `run_dir`, or undo: {'; '.join(changed)}"
        )
    # A schedule that ends at max_steps cannot get another end once the rate has begun to fall.
    taken, training = RunDirectory.step_of(saved[-1]), config.training
    for step in range(1, taken + 1):
        if learning_rate(step, saved_config) != learning_rate(step, config):
            raise ConfigError(
                f"{directory.path}: with training.max_steps {training.max_steps:,} instead of "
                f"{saved_config.training.max_steps:,} the schedule '{training.schedule}' would "
                f"have had another learning rate at step {step:,}, and {taken:,} are taken; "
                f"keep max_steps, or choose another `run_dir`"
            )


def check_text_unchanged(
    directory: RunDirectory, fingerprints: Mapping[str, str], tokenizer: Tokenizer
) -> None:
    """Check that a run, if it has begun, is resumed with the same text and the same tokenizer.

    With another tokenizer, ids would change their meaning. `tokenizer` is that of this session; it
    is written into the run if the run's own was lost. `fingerprints` are digests of the text of
    this session, by the names in `FINGERPRINTS`.

    Raises:
        ConfigError: the training text, the settings of the tokenizer, the validation set or the
            tokenizer itself differ.
    """
    if not directory.saved_checkpoints():
        return
    recorded = read_json_or_empty(directory.environment)
    for name, text in FINGERPRINTS.items():
        before, now = recorded.get(name), fingerprints.get(name)
        if before and now and before != now:
            raise ConfigError(
                f"{directory.path}: the {text} has changed since this run began (fingerprint "
                f"{before}, now {now}); restore it, or choose another `run_dir`"
            )
    try:
        saved = Tokenizer.load(directory.tokenizer)
    except DataError:
        tokenizer.save(directory.tokenizer)
        return
    if saved.differs_from(tokenizer):
        raise ConfigError(
            f"{directory.path}: its tokenizer differs from the one that was learnt from the same "
            "text now, perhaps by another version of SentencePiece; set tokenizer.model to a copy "
            f"of what is in {directory.tokenizer}, or choose another `run_dir`"
        )


def roll_back(trainer: Trainer, error: DivergedError) -> None:
    """After a divergent step, load the last checkpoint and save it as the state of that step.

    The run continues with the next step: data and learning rates of the steps between are skipped.

    Raises:
        DivergedError: `error` with advice: the recipe forbids going back, there is no checkpoint,
            or the run was rolled back `MAX_ROLL_BACKS` times already.
    """
    trainer.checkpointer.wait()
    state = trainer.state
    diverged_step, roll_backs = state.step, state.roll_backs  # loading a checkpoint resets both
    if not trainer.group.broadcast_from_main(trainer.directory.saved_checkpoints):
        advice = (
            "There is no checkpoint yet to go back to; lower training.peak_learning_rate, or raise "
            "training.warmup_steps"
        )
    elif trainer.config.training.on_divergence == "stop":
        advice = (
            f"All checkpoints in {trainer.directory.checkpoints} are from before; {_CALMER}; "
            "or set training.on_divergence: roll_back"
        )
    elif roll_backs >= MAX_ROLL_BACKS:
        advice = (
            f"This run has gone back to an earlier checkpoint {MAX_ROLL_BACKS} times already; "
            f"{_CALMER}"
        )
    else:
        path = load_newest_checkpoint(trainer)
        assert path is not None  # there are checkpoints
        trainer.model.zero_grad(set_to_none=True)
        trainer.log(f"{error}; going on with the weights of {path.name}, without the steps since")
        trainer.monitor.record_roll_back(diverged_step, state.step)
        state.step, state.roll_backs = diverged_step, roll_backs + 1
        state.validation_due = False
        trainer.save(wait=trainer.finished())
        return
    # the run could not go back
    raise DivergedError(f"{error}. {advice}") from error


def load_newest_checkpoint(trainer: Trainer) -> Path | None:
    """Load the newest intact checkpoint and return its folder; return None if there is none.

    Records and example translations of all later steps are removed; without checkpoint, all are.

    Raises:
        CheckpointError: there are checkpoints, but all are damaged.
    """
    path = trainer.group.broadcast_from_main(
        lambda: recover_newest_checkpoint(trainer.directory.saved_checkpoints(), trainer.log)
    )
    if path is not None:
        trainer.stepper.discard_pending()
        trainer.state.load(path)
    step, validation_due = trainer.state.step, trainer.state.validation_due
    trainer.monitor.drop_records_after(step, validated=not validation_due)
    if trainer.group.is_main:
        last_validated = step - 1 if validation_due else step
        delete_examples_after(trainer.directory.translations, last_validated)
    return path
