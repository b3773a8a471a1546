"""Continuing a run: check that its text is the same, load the last checkpoint, roll back."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from nmt.data.tokens.tokenizer import Tokenizer
from nmt.errors import ConfigError, DataError, DivergedError, Log
from nmt.files import read_json_or_empty
from nmt.run.checkpoint import recover_newest_checkpoint
from nmt.run.directory import RunDirectory
from nmt.training.trainer import Trainer
from nmt.training.validation import delete_examples_after

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


def set_aside_later_checkpoints(directory: RunDirectory, step: int, log: Log) -> None:
    """Let a run go on from the checkpoint of `step`: rename the later ones to set-aside-NAME.

    best.json is removed, because it may name one of them; the run writes it again.

    Raises:
        CheckpointError: the checkpoint of `step` is damaged; nothing is renamed.
    """
    recover_newest_checkpoint([directory.checkpoint(step)], log)
    renamed = []
    for path in directory.saved_checkpoints():
        if directory.step_of(path) > step:
            renamed.append(path.with_name(f"set-aside-{path.name}"))
            shutil.rmtree(renamed[-1], ignore_errors=True)
            path.rename(renamed[-1])
    directory.best.unlink(missing_ok=True)
    log(
        f"going back to step {step:,}: the records of later steps are removed, and their "
        f"checkpoints are kept as {', '.join(path.name for path in renamed)}"
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
