"""A whole training run: prepare, build or resume, train, choose the best weights, score them."""

import contextlib
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from nmt.data.corpora.registry import obtain_splits
from nmt.data.fuzzy_repair import read_validation_matches
from nmt.data.language_tags import both_tags
from nmt.data.links import links_fingerprint
from nmt.data.prepared import Prepared, prepare
from nmt.data.terms import terms_fingerprint
from nmt.data.text.cleaning import describe_dropped
from nmt.data.text.parallel_text import ParallelText, check_has_text
from nmt.data.tokens.alignment_model import FILE
from nmt.errors import ConfigError, DivergedError, Log
from nmt.files import read_json_or_empty
from nmt.machine.device import memory_of, pick_device, pick_precision, use_threads
from nmt.machine.memory import memory_explained, return_freed_memory, tune_memory
from nmt.recipe.config import Config, TextPair, TrainingConfig
from nmt.recipe.config_file import load_config
from nmt.run.directory import RunDirectory, weights_folder
from nmt.run.model import LoadedModel, build_model
from nmt.search.searcher import check_beam_size
from nmt.training.callbacks import Callbacks
from nmt.training.changed_recipe import check_recipe_unchanged
from nmt.training.distributed import ProcessGroup, join_process_group
from nmt.training.divergence import describe_useless_model
from nmt.training.environment import OBJECTIVE, write_environment
from nmt.training.inheritance import inherit, keep_without_parent
from nmt.training.lora import adapt_parent
from nmt.training.pretrained import load_pretrained
from nmt.training.result import (
    choose_best_weights,
    has_result,
    read_test_set,
    text_fingerprint,
    write_result,
)
from nmt.training.resume import (
    check_text_unchanged,
    load_newest_checkpoint,
    roll_back,
    set_aside_later_checkpoints,
)
from nmt.training.retention import update_after_checkpoint
from nmt.training.schedule import describe_endless_warmup
from nmt.training.step_memory import parameter_count
from nmt.training.tracking import check_trackers
from nmt.training.trainer import Trainer
from nmt.training.validation import PreparedMatches, ValidationText, Validator
from nmt.translation.memory_matches import MemoryUse

_MEMORY_ADVICE = (  # continues: the memory does not suffice
    "to train this model; lower training.micro_batch_tokens, set "
    "training.activation_checkpointing: true, or make the model smaller: `nmt plan` says what "
    "takes how much"
)


def train(
    recipe: Config,
    run_dir: Path,
    log: Log,
    callbacks: Callbacks | None = None,
    from_step: int | None = None,
) -> RunDirectory:
    """Train and score a model in the run directory `run_dir`; if it holds a run, resume that.

    There are three configurations, each a `Config`: `recipe` is what the user gave; `config`,
    completed by the parent if there is one, is what is trained; `saved_config` is what an earlier
    session has written into the run directory.

    `callbacks` are functions of one's own, see `Callbacks`.

    `_build_trainer` prepares the data, and `_train_and_score` trains by `Trainer.train`. A
    finished run is not trained again. Under `torchrun` every process calls this; only the main
    process writes files and calls `log`.

    `from_step` is the step of a saved checkpoint: where the recipe has changed so that the run
    cannot go on from its last checkpoint, it goes on from this one (`check_recipe_unchanged`).

    Raises:
        NmtError: training cannot start or continue; the message says why.
    """
    directory = RunDirectory(run_dir)
    with (
        memory_explained(_MEMORY_ADVICE),
        join_process_group(recipe.training.device) as group,
        contextlib.ExitStack() as stack,
    ):
        # the main process holds the lock of the directory for all; the others exit if it cannot
        lock = directory.reserve() if group.is_main else contextlib.nullcontext()
        group.main_process_first(lambda: stack.enter_context(lock))
        log_in_main: Log = log if group.is_main else lambda message: None
        trainer, fingerprints = group.main_process_first(
            lambda: _build_trainer(recipe, directory, group, log_in_main, from_step)
        )
        if callbacks or read_json_or_empty(directory.environment).get(OBJECTIVE):
            fingerprints |= _use_callbacks(trainer, callbacks or Callbacks())
        log_in_main(trainer.gradient_computer.what_runs())
        try:
            _train_and_score(trainer, fingerprints)
        finally:
            trainer.gradient_computer.release_process_group()
    return directory


def _build_trainer(
    recipe: Config, directory: RunDirectory, group: ProcessGroup, log: Log, from_step: int | None
) -> tuple[Trainer, dict[str, str]]:
    """Check everything, `prepare` the data, and return a trainer at step 0.

    Quick checks come first. Also returns the fingerprints of the texts, by the names in
    `resume.FINGERPRINTS`.
    """
    config = inherit(recipe, directory)
    training = config.training
    device = pick_device(training.device)
    precision = pick_precision(training.precision, device)
    threads = use_threads(training.threads)
    tune_memory()
    check_trackers(training.track)
    earlier_step = check_recipe_unchanged(directory, config, from_step)
    _log_surprising_settings(config, log)
    pretrained = _find_pretrained(config, directory)
    splits = obtain_splits(config.data, log)
    validation_texts = _read_validation_texts(config, splits.validation)
    read_test_set(config)  # only to check it now: it is used at the end
    prepared = prepare(config, log, splits)
    config = keep_without_parent(config, recipe, directory)
    fingerprints = _fingerprints(config, prepared.fingerprint, validation_texts)
    check_text_unchanged(directory, fingerprints, prepared.tokenizer)
    torch.manual_seed(config.seed)
    model = build_model(config, prepared.tokenizer).to(device)
    aligner = prepared.aligner
    loaded = LoadedModel(config, prepared.tokenizer, model, directory.path, aligner=aligner)
    check_beam_size(loaded, config.decoding, memory_of(device))
    processes = f", {group.size} processes" if group.size > 1 else ""
    log(
        f"{parameter_count(model):,} parameters, vocabulary {prepared.tokenizer.target.size:,}, "
        f"{len(prepared.train):,} pairs ({describe_dropped(prepared.counts)}), "
        f"{device.type}, {precision}, {threads} {'threads' if threads > 1 else 'thread'}{processes}"
    )
    if training.lora:
        loaded = adapt_parent(loaded, training.lora, log)
    elif pretrained:
        load_pretrained(pretrained, model, prepared.tokenizer, log)
    return_freed_memory()  # that of the parent
    memory = _validation_memory(config, prepared)
    validator = Validator(validation_texts, loaded, precision, memory)
    trainer = Trainer(loaded, prepared.train, validator, precision, prepared.stages, group, log)
    if from_step is not None and group.is_main:
        _go_back(directory, earlier_step, log)
    return trainer, fingerprints


def _use_callbacks(trainer: Trainer, callbacks: Callbacks) -> dict[str, str]:
    """Let the trainer call these functions; return what environment.json keeps of them.

    Raises:
        ConfigError: the run has begun with another objective, or the recipe asks for a loss that
            the objective would replace.
    """
    directory, name = trainer.directory, callbacks.objective_name
    before = read_json_or_empty(directory.environment).get(OBJECTIVE, "")
    if directory.saved_checkpoints() and before != name:
        raise ConfigError(
            f"{directory.path}: was trained with {before or 'the loss of the recipe'} as its "
            f"objective, now {name or 'there is none of your own'}; give the same to nmt.train, "
            "or choose another `run_dir`"
        )
    if name and trainer.config.training.guided_alignment:
        raise ConfigError(
            f"training.guided_alignment is part of the loss that {name} replaces; set it to null, "
            "or leave the objective out"
        )
    trainer.use(callbacks)
    if not name:
        return {}
    tokens = trainer.gradient_computer.micro_batch_size.tokens
    trainer.log(
        f"objective: {name}, which training.label_smoothing does not change. What it takes in "
        f"memory is not known: {tokens:,} tokens are computed at once, as the loss of the recipe "
        "allows; if it needs more, lower training.micro_batch_tokens"
    )
    return {OBJECTIVE: name}


def _find_pretrained(config: Config, directory: RunDirectory) -> Path | None:
    """Return the folder of the weights to begin with; None: new weights, or those of the run."""
    training = config.training
    if training.initialize_from and (training.lora or not directory.saved_checkpoints()):
        return weights_folder(Path(training.initialize_from))
    return None


def _go_back(directory: RunDirectory, step: int | None, log: Log) -> None:
    """Let the run go on from the checkpoint of `step`; None: the recipe fits the last one."""
    if step is None:
        log("the recipe fits the last checkpoint of the run, which need not go back to an earlier")
    else:
        set_aside_later_checkpoints(directory, step, log)


def _validation_memory(config: Config, prepared: Prepared) -> MemoryUse | None:
    """Return what validation texts have in the training text, if data.memory asks for it."""
    if not config.data.memory:
        return None
    found = read_validation_matches(prepared.directory)
    return MemoryUse((PreparedMatches(found, config.data.source_language),), exact=False)


def _fingerprints(
    config: Config, data_fingerprint: str, validation_texts: Sequence[ValidationText]
) -> dict[str, str]:
    """Return the fingerprints of the texts, by the names in `resume.FINGERPRINTS`."""
    validation_pairs = [pair for text in validation_texts for pair in text.pairs]
    fingerprints = {
        "data_fingerprint": data_fingerprint,
        "validation_fingerprint": text_fingerprint(validation_pairs)[:16],
    }
    if guided := config.training.guided_alignment:
        fingerprints["links_fingerprint"] = links_fingerprint(guided.links)
    if config.data.terms:
        fingerprints["terms_fingerprint"] = terms_fingerprint(config)
    return fingerprints


def _log_surprising_settings(config: Config, log: Log) -> None:
    """Log a sentence for each setting that is allowed but rarely meant."""
    if problem := describe_endless_warmup(config.training):
        log(f"warning: {problem}; lower training.warmup_steps")


def _read_validation_texts(config: Config, texts: Sequence[TextPair]) -> list[ValidationText]:
    """Return the pairs of the validation texts, each pair with its tags."""
    languages = config.data.languages
    for text in texts:
        check_has_text(ParallelText(text, languages))
    return [
        ValidationText(
            text.label,
            list(ParallelText(text, languages).tagged_pairs(both_tags(config.data, text))),
            target_language=text.languages_or(languages)[1],
        )
        for text in texts
    ]


def _train_and_score(trainer: Trainer, fingerprints: Mapping[str, str]) -> None:
    """Train from the last checkpoint to the end, choose the best weights and score them."""
    if path := load_newest_checkpoint(trainer):
        trainer.log(f"resuming after step {trainer.state.step:,} from {path}")
    group = trainer.group
    # whether an earlier session has ended the training: `choose_best_weights` writes this number
    best_step = read_json_or_empty(trainer.directory.best).get("trained_steps")
    has_best_weights = trainer.finished() and best_step == trainer.state.step
    is_trained = group.broadcast_from_main(lambda: has_best_weights)
    if group.is_main and not is_trained:
        _write_session(trainer, fingerprints)
    while not trainer.finished():
        try:
            trainer.train()
        except DivergedError as error:
            roll_back(trainer, error)
    if group.is_main:
        if not is_trained:
            if trainer.stops_early():
                trainer.log(_describe_early_stop(trainer))
            choose_best_weights(trainer)
        if OBJECTIVE not in fingerprints:  # one of one's own may want something else
            _check_best_weights(trainer)
        _score(trainer, is_trained)


def _describe_early_stop(trainer: Trainer) -> str:
    """Return why the training ended before its last step, and which settings continue it."""
    training, ranking = trainer.config.training, trainer.state.ranking
    return (
        f"stopped early at step {trainer.state.step:,} of {training.max_steps:,}: "
        f"{ranking.without_gain} validations in a row were not better than that of step "
        f"{ranking.steps[0]:,} (training.early_stopping: {training.early_stopping}); "
        "to continue, raise training.early_stopping or set it to null"
    )


def _check_best_weights(trainer: Trainer) -> None:
    """Check that the best weights are better than a uniform guess, if the warm-up has ended.

    Raises:
        DivergedError: the weights are worse, so they get no score; the checkpoints stay.
    """
    directory, vocabulary = trainer.directory, trainer.loaded.tokenizer.target.size
    # in nats per token; if best.json is missing or damaged, 0, with which nothing is wrong
    loss = read_json_or_empty(directory.best).get("loss", 0.0)
    step, warmup = trainer.state.step, trainer.config.training.warmup_steps
    if problem := describe_useless_model(loss, vocabulary, step, warmup):
        raise DivergedError(
            f"{directory.path}: even with the best weights {problem}; train again in another "
            "`run_dir` with a lower training.peak_learning_rate, a longer warm-up or "
            "training.clip_norm; the checkpoints are kept"
        )


def _score(trainer: Trainer, is_trained: bool) -> None:
    """Score the best weights on the test set, unless result.json has these scores.

    `is_trained` says whether an earlier session has chosen the weights.
    """
    directory, settings = trainer.directory, trainer.config.decoding
    pairs = read_test_set(trainer.config)
    is_scored = not pairs or has_result(directory, pairs, settings)
    saved_config = load_config(str(directory.config))
    searches_otherwise = saved_config.decoding != settings
    if searches_otherwise or not is_scored:  # the recipe may name another test set than before
        # a finished training stays as it was
        training = saved_config.training
        directory.write_config(trainer.config.model_copy(update={"training": training}))
    if searches_otherwise:
        trainer.log(f"{directory.config}: has the section decoding of the recipe now")
    if is_trained:
        _log_unused_settings(trainer, saved_config.training)
        remaining = "nothing to do" if is_scored else "its test set is not scored yet"
        step = trainer.state.step
        trainer.log(f"{directory.path}: already trained to step {step:,}; {remaining}")
        if trainer.stops_early():
            trainer.log(_describe_early_stop(trainer))
    if not is_scored:
        write_result(trainer, pairs)
    if not (is_trained and is_scored):
        trainer.log(f"translate with: nmt translate --model {shlex.quote(str(directory.path))}")


def _log_unused_settings(trainer: Trainer, saved: TrainingConfig) -> None:
    """Log which settings came too late for the finished training, whose settings are `saved`."""
    training, directory = trainer.config.training, trainer.directory
    if training.validation_metric != saved.validation_metric:
        trainer.log(
            f"{directory.best}: its weights were chosen by {saved.validation_metric}, which "
            "training.validation_metric was; raise training.max_steps to choose again"
        )
    changes = [
        f"training.{name} changed from {getattr(saved, name)} to {getattr(training, name)}"
        for name in ("average", "average_checkpoints")
        if getattr(saved, name) != getattr(training, name)
    ]
    if changes:
        trainer.log(
            f"{directory.averaged}: made before {' and '.join(changes)}; average other checkpoints "
            f"with: nmt average --model {shlex.quote(str(directory.path))} "
            f"--last {training.average_checkpoints}"
        )


def _write_session(trainer: Trainer, fingerprints: Mapping[str, str]) -> None:
    """Write recipe and environment of this session; repair what a killed process left undone."""
    directory, state = trainer.directory, trainer.state
    if state.step:  # a process may have been killed after it had written this checkpoint
        training, ranked = trainer.config.training, state.ranking.entries
        update_after_checkpoint(directory, training, state.step, ranked)
    else:  # replace files of a start that failed
        trainer.loaded.tokenizer.save(directory.tokenizer)
        if trainer.loaded.aligner:
            trainer.loaded.aligner.save(directory.tokenizer / FILE)
        directory.environment.unlink(missing_ok=True)
    processes = trainer.group.size
    write_environment(directory, trainer.device, trainer.precision, processes, fingerprints)
    directory.write_config(trainer.config)
