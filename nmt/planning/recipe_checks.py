"""Checks of a recipe on this machine: its text, its vocabulary, and the space that it needs."""

from collections.abc import Iterator
from pathlib import Path

import torch

from nmt.config import Config, TextPair
from nmt.data.corpora.registry import Splits, find_corpus, find_splits
from nmt.data.prepared import find_prepared
from nmt.data.text.parallel_text import ParallelText
from nmt.data.tokens.vocabulary import adopt_vocabulary
from nmt.device import pick_device
from nmt.errors import DataError, NmtError
from nmt.planning.machine_checks import Check, free_memory, free_space, gigabytes
from nmt.planning.plan import Plan, make_plan
from nmt.run_directory import find_run
from nmt.training.monitor import summary_writer
from nmt.training.step_memory import KEPT_ON_CPU

_TIGHT = 0.8
"""share of the free memory above which training may run out of it"""
_PREPARE_AGAIN = "prepare the data again with `nmt prepare`"


def check_recipe(config: Config, runs: Path) -> Iterator[Check]:
    """Yield checks of settings, text, vocabulary, memory, and disk space in the folder `runs`.

    Reads the whole text. Checks that need the result of a failed check are left out.
    """
    settings_check = _settings(config)
    yield settings_check
    try:
        splits = find_splits(config.data)
    except NmtError as error:
        yield Check("data", "failure", str(error), "see `nmt data list`")
        return
    text_checks = list(_texts(config, splits))
    yield from text_checks
    if any(check.status == "failure" for check in text_checks):
        return
    vocabulary_check = _vocabulary(config)
    yield vocabulary_check
    if "failure" not in (settings_check.status, vocabulary_check.status):
        yield from _fit(config, runs)


def _settings(config: Config) -> Check:
    """Check what needs no text: device, TensorBoard, pretrained run and numbers of steps."""
    training = config.training
    try:
        pick_device(training.device)
        if training.tensorboard:
            summary_writer()
        if training.initialize_from:
            find_run(Path(training.initialize_from))
    except NmtError as error:
        return Check("recipe", "failure", str(error), "change the recipe or the machine")
    steps = f"{training.max_steps:,}"
    if training.warmup_steps >= training.max_steps:
        found = (
            f"warmup_steps ({training.warmup_steps:,}) are not fewer than max_steps ({steps}), "
            "so the learning rate only rises"
        )
        return Check("recipe", "warning", found, "lower training.warmup_steps")
    if training.checkpoint_every > training.max_steps:
        found = (
            f"checkpoint_every ({training.checkpoint_every:,}) is more than max_steps ({steps}), "
            "so that a crash loses everything"
        )
        return Check("recipe", "warning", found, "lower training.checkpoint_every")
    return Check("recipe", "ok", f"{steps} steps of {training.batch_tokens:,} tokens")


def _texts(config: Config, splits: Splits | None) -> Iterator[Check]:
    """Read each split of the data to its end and check it."""
    if splits is None:
        assert config.data.corpus is not None
        corpus = find_corpus(config.data.corpus)
        found = f"corpus {corpus.name} is not here yet; `nmt train` gets it ({corpus.download})"
        yield Check("data", "ok", found)
        return
    sets = {"train": splits.train, "validation": splits.validation, "test": splits.test}
    for name, texts in sets.items():
        for number, text in enumerate(texts, start=1):
            yield _text(name if number == 1 else f"{name}{number}", text, config)
    if not splits.test:
        found = "no test set, so the run ends without a score"
        yield Check("test", "warning", found, "name one as data.test")


def _text(name: str, text: TextPair, config: Config) -> Check:
    """Check that both sides have as many lines; held-out sets are also decoded as UTF-8."""
    try:
        pairs = ParallelText(text, config.data.languages)
        if name.startswith("train"):  # blocks of bytes: much faster than decoded lines
            count = sum(len(block) for block in pairs.blocks())
        else:
            count = sum(1 for _ in pairs)
    except NmtError as error:
        return Check(name, "failure", str(error), "correct the text, or the recipe's data section")
    return Check(name, "ok", f"{count:,} pairs, aligned, in {' and '.join(text.paths)}")


def _vocabulary(config: Config) -> Check:
    """Check that the vocabulary has all ids of prepared data, or that it can be learnt."""
    try:
        prepared = find_prepared(config)
        if prepared is None and config.tokenizer.models:
            size = adopt_vocabulary(config.tokenizer).target.size
            return Check("tokenizer", "ok", f"{size:,} entries of {config.tokenizer.models[-1]}")
        if prepared is None:
            settings = config.tokenizer
            found = f"{settings.vocabulary_size:,} {settings.kind} entries, to be learnt"
            return Check("tokenizer", "ok", found)
        largest_source = int(prepared.train.source.ids.max(initial=0))
        largest_target = int(prepared.train.target.ids.max(initial=0))
    except NmtError as error:
        return Check("tokenizer", "failure", str(error), _PREPARE_AGAIN)
    folder, largest = prepared.directory, max(largest_source, largest_target)
    sizes = prepared.tokenizer.source.size, prepared.tokenizer.target.size
    if largest_source >= sizes[0] or largest_target >= sizes[1]:
        found = (
            f"{folder} holds ids up to {largest:,}, outside of vocabularies of {sizes[0]:,} and "
            f"{sizes[1]:,} entries"
        )
        return Check("tokenizer", "failure", found, f"delete {folder} and run `nmt prepare`")
    found = f"{sizes[1]:,} entries, ids up to {largest:,} of {len(prepared.train):,} pairs"
    return Check("tokenizer", "ok", found)


def _fit(config: Config, runs: Path) -> Iterator[Check]:
    """Check that memory and disk are large enough for the training, as `nmt plan` estimates it."""
    try:
        plan = make_plan(config, measure=False)
    except DataError as error:
        yield Check("fit", "failure", str(error), _PREPARE_AGAIN)
        return
    yield _memory_fit(plan)
    needed, free = gigabytes(plan.disk.total), free_space(runs)
    if plan.disk.total <= free:
        yield Check("disk fit", "ok", f"checkpoints take {needed} of {gigabytes(free)}")
        return
    found = f"checkpoints take {needed}, and {gigabytes(free)} are free in {runs}"
    remedy = "free some space, choose another --run-dir, or lower training.average_checkpoints"
    yield Check("disk fit", "failure", found, remedy)


def _memory_fit(plan: Plan) -> Check:
    needed = plan.memory.total
    likely = needed + (KEPT_ON_CPU if plan.device == "cpu" else 0)
    free = free_memory(torch.device(plan.device))
    found = f"training takes {gigabytes(needed)}"
    if likely > needed:
        found += f", in the long run about {gigabytes(likely)}"
    if free is None:
        return Check("memory fit", "ok", found)
    found += f" of {gigabytes(free)}"
    remedy = "lower training.micro_batch_tokens, or set training.activation_checkpointing: true"
    if needed > free:
        return Check("memory fit", "failure", found, remedy)
    if likely > _TIGHT * free:
        return Check("memory fit", "warning", found, remedy)
    return Check("memory fit", "ok", found)
