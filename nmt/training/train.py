"""A whole training run: prepare, build or resume, train, average, choose the best, score it."""

import contextlib
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import torch

from nmt.checkpoint import (
    average_weights,
    intact_checkpoints,
    load_into,
    load_weights,
    save_checkpoint,
)
from nmt.config import Config
from nmt.data.corpora.registry import resolve
from nmt.data.prepared import describe_dropped, prepare
from nmt.data.text.parallel_text import ParallelText
from nmt.device import memory_explained, pick_device, pick_precision, tune_memory, use_threads
from nmt.errors import DivergedError, NmtError
from nmt.run_directory import LoadedModel, RunDirectory, build_model
from nmt.training.distributed import ProcessGroup, join_process_group
from nmt.training.environment import describe_environment, write_environment
from nmt.training.layers import prepare_layers
from nmt.training.pretrained import find_pretrained, load_pretrained
from nmt.training.result import has_result, read_test_set, text_fingerprint, write_result
from nmt.training.resume import (
    check_data_unchanged,
    check_recipe_unchanged,
    check_tokenizer_unchanged,
    resume,
    roll_back,
)
from nmt.training.retention import (
    checkpoints_to_average,
    delete_old_checkpoints,
    write_pointers,
)
from nmt.training.step_memory import parameter_count
from nmt.training.tensorboard import summary_writer
from nmt.training.trainer import Trainer
from nmt.training.validation import Validator

NO_MEMORY = (
    "to train this model; lower training.micro_batch_tokens, set "
    "training.activation_checkpointing: true, or make the model smaller: `nmt plan` says what "
    "takes how much"
)


def train(config: Config, path: Path, log: Callable[[str], None]) -> RunDirectory:
    """Train `config` in the run directory `path`, doing what is missing; rerun to resume.

    Under `torchrun`, every process calls this; the leader alone writes and logs.

    Raises:
        NmtError: what stands in the way, in one sentence.
    """
    directory = RunDirectory(path)
    with (
        memory_explained(NO_MEMORY),
        join_process_group(config.training.device) as group,
        group.main_process_first(lambda: _locked(directory, group)),
    ):
        _train(config, directory, group, log if group.is_main else lambda message: None)
    return directory


def _locked(
    directory: RunDirectory, group: ProcessGroup
) -> contextlib.AbstractContextManager[object]:
    """The leader's lock on the directory, which is made if need be; the others have none."""
    if not group.is_main:
        return contextlib.nullcontext()
    directory.create()
    lock = directory.lock()
    directory.clear_leftovers()
    return lock


def _train(
    config: Config, directory: RunDirectory, group: ProcessGroup, log: Callable[[str], None]
) -> None:
    try:
        trainer, fingerprints = group.main_process_first(
            lambda: _build_trainer(config, directory, group, log)
        )
    except NmtError:
        if group.is_main:
            directory.discard_if_unused()
        raise
    try:
        _run(trainer, directory, fingerprints, log)
    finally:
        trainer.gradients.release_process_group()


def _run(
    trainer: Trainer,
    directory: RunDirectory,
    fingerprints: Mapping[str, str],
    log: Callable[[str], None],
) -> None:
    """From the last checkpoint to the choice of the best weights and what they score."""
    group = trainer.group
    resume(trainer, directory, log)
    done = trainer.finished() and _best_is_chosen(directory, trainer.step)
    trained = group.broadcast_from_main(lambda: done)
    if group.is_main and not trained:
        _keep_recipe(trainer, directory, fingerprints)
        _repair_checkpoint_pointers(trainer, directory)
    while not trainer.finished():
        try:
            trainer.train()
        except DivergedError as error:
            roll_back(trainer, error, log)
    if not group.is_main:
        return
    if not trained:
        _choose_best_weights(trainer, directory, log)
    pairs = read_test_set(trainer.config)
    scored = not pairs or has_result(directory, pairs)
    if trained:
        rest = "nothing to do" if scored else "its test set is not scored yet"
        log(f"{directory.path}: already trained to step {trainer.step:,}; {rest}")
    if not scored:
        directory.write_config(trainer.config)  # which may name another test set than before
        write_result(directory, trainer.device, pairs, log)
    if not (trained and scored):
        log(f"translate with: nmt translate --model {directory.path}")


def _build_trainer(
    config: Config, directory: RunDirectory, group: ProcessGroup, log: Callable[[str], None]
) -> tuple[Trainer, dict[str, str]]:
    """A trainer at step 0 and the fingerprints of its text; what can fail early fails first."""
    device = pick_device(config.training.device)
    precision = pick_precision(config.training.precision, device)
    threads = use_threads(config.training.threads)
    tune_memory()
    if config.training.tensorboard:
        summary_writer()
    check_recipe_unchanged(directory, config)
    origin = config.training.initialize_from
    beginning = None
    if origin and not directory.saved_checkpoints():
        beginning = find_pretrained(origin)
    validation = resolve(config.data, log).validation
    pairs = list(ParallelText(validation, config.data.languages))
    read_test_set(config)  # read now, so that what is wrong with them is said now
    prepared = prepare(config, log)
    fingerprints = {
        "data_fingerprint": prepared.fingerprint,
        "validation_fingerprint": text_fingerprint(pairs)[:16],
    }
    check_data_unchanged(directory, fingerprints)
    check_tokenizer_unchanged(directory, prepared.tokenizer)
    torch.manual_seed(config.seed)
    model = build_model(config, prepared.tokenizer).to(device)
    log(
        f"{parameter_count(model):,} parameters, "
        f"vocabulary {prepared.tokenizer.target_vocabulary_size:,}, "
        f"{len(prepared.train):,} pairs ({describe_dropped(prepared.counts)}), "
        f"{device.type}, {precision}, {threads} thread{'s'[: threads > 1]}"
        f"{f', {group.size} processes' if group.size > 1 else ''}"
    )
    if beginning:
        load_pretrained(beginning, model, prepared.tokenizer, log)
    prepare_layers(model, config.training)
    run = LoadedModel(config, prepared.tokenizer, model, directory.path)
    validator = Validator(pairs, run, precision)
    trainer = Trainer(
        run, directory, prepared.train, validator, precision, prepared.corpus_weights, group
    )
    return trainer, fingerprints


def _keep_recipe(
    trainer: Trainer, directory: RunDirectory, fingerprints: Mapping[str, str]
) -> None:
    """Leave in the run what is needed to use it elsewhere and to tell how it came about."""
    if not directory.saved_checkpoints():  # of a start that came to nothing, nothing remains
        trainer.run.tokenizer.save(directory.tokenizer)
        directory.environment.unlink(missing_ok=True)
    environment = describe_environment(
        sys.argv, trainer.device, trainer.precision, trainer.group.size, fingerprints
    )
    write_environment(directory, environment)
    directory.write_config(trainer.config)


def _repair_checkpoint_pointers(trainer: Trainer, directory: RunDirectory) -> None:
    """A kill may have come between a checkpoint and what is done once it is there."""
    if trainer.step:
        write_pointers(directory, trainer.step, trainer.ranking.best)
        delete_old_checkpoints(directory, trainer.config.training, trainer.ranking.steps)


def _best_is_chosen(directory: RunDirectory, step: int) -> bool:
    """Whether the last thing that a run of `step` steps does is done."""
    try:
        best = json.loads(directory.best.read_text("utf-8"))
        return bool(best["trained_steps"] == step)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _choose_best_weights(
    trainer: Trainer, directory: RunDirectory, log: Callable[[str], None]
) -> None:
    """Average some checkpoints; keep as best what translates the validation set better."""
    training = trainer.config.training
    ranked = trainer.ranking.steps
    paths = intact_checkpoints(checkpoints_to_average(directory, training, ranked), log)
    save_checkpoint(directory.averaged, average_weights(paths))
    candidates = {directory.averaged.name: directory.averaged}
    if ranked:
        single = directory.checkpoint(ranked[0])
        if intact_checkpoints([single], log):
            candidates[str(single.relative_to(directory.path))] = single
    if trainer.moving_average:
        weights = {name: w.cpu() for name, w in trainer.moving_average.weights.items()}
        save_checkpoint(directory.moving_average, weights)
        candidates[directory.moving_average.name] = directory.moving_average
    beam = trainer.config.decoding.beam_size
    results = {}
    for name, folder in candidates.items():
        load_into(trainer.model, load_weights(folder), folder)
        results[name] = trainer.validator.validate(beam)
        log(f"{name}: {results[name]} (beam {beam})")
    best = max(results, key=lambda name: results[name].score)
    directory.write_json(
        directory.best,
        {
            "weights": best,
            **results[best].figures(),
            "averaged_from": [p.name for p in paths] if best == directory.averaged.name else None,
            "candidates": {name: result.figures() for name, result in results.items()},
            "trained_steps": trainer.step,
            "training_seconds": round(trainer.monitor.seconds, 1),
            "target_tokens": trainer.monitor.total_tokens,
        },
    )
    log(
        f"trained {trainer.step:,} steps on {trainer.monitor.total_tokens:,} target tokens "
        f"in {trainer.monitor.seconds / 60:.1f} min; best weights: {directory.path / best}"
    )
