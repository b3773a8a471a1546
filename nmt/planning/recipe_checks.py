"""Checks of a recipe on this machine: its text, its vocabulary, and the space that it needs."""

from collections.abc import Iterator
from pathlib import Path

import torch

from nmt.data.corpora.registry import Splits, find_corpus, find_splits
from nmt.data.prepared import find_prepared
from nmt.data.text.parallel_text import ParallelText
from nmt.data.tokens.tokenizer import EOS
from nmt.data.tokens.vocabulary import adopt_vocabulary
from nmt.errors import DataError, NmtError
from nmt.machine.device import pick_device
from nmt.model.transformer import Transformer
from nmt.planning.machine_checks import Check, free_memory, free_space, gigabytes
from nmt.planning.plan import Plan, make_plan
from nmt.recipe.config import Config, TextPair
from nmt.training.inheritance import inherit
from nmt.training.lora import add_adapters
from nmt.training.prepare import prepare_for_training, what_runs
from nmt.training.schedule import describe_endless_warmup
from nmt.training.step_memory import KEPT_ON_CPU
from nmt.training.threads import can_shard, number_of_shards
from nmt.training.tracking import check_trackers

_SAFE_SHARE = 0.8
"""share of the free memory; training that takes more may run out of memory"""
_PREPARE_AGAIN = "prepare the data again with `nmt prepare`"


def check_recipe(config: Config, runs: Path) -> Iterator[Check]:
    """Yield checks of settings, text, vocabulary, memory, and disk space in the folder `runs`.

    Reads the whole text. Checks that need the result of a failed check are left out.
    """
    try:
        config = inherit(config)  # what a training takes from `training.initialize_from`
        settings_check = _check_settings(config)
    except NmtError as error:
        settings_check = Check("recipe", "failure", str(error), "change the recipe or the machine")
    yield settings_check
    try:
        splits = find_splits(config.data)
    except NmtError as error:
        yield Check("data", "failure", str(error), "see `nmt data list`")
        return
    text_checks = list(_check_texts(config, splits))
    yield from text_checks
    if any(check.status == "failure" for check in text_checks):
        return
    vocabulary_check = _check_vocabulary(config)
    yield vocabulary_check
    if "failure" not in (settings_check.status, vocabulary_check.status):
        yield from _check_fit(config, runs)


def _check_settings(config: Config) -> Check:
    """Check what does not depend on the text: device, trackers and steps.

    Raises:
        NmtError: the device or a tracker is missing.
    """
    training = config.training
    pick_device(training.device)
    check_trackers(training.track)
    steps = f"{training.max_steps:,}"
    if found := describe_endless_warmup(training):
        return Check("recipe", "warning", found, "lower training.warmup_steps")
    if training.checkpoint_every > training.max_steps:
        found = (
            f"checkpoint_every ({training.checkpoint_every:,}) is more than max_steps ({steps}), "
            "so that a crash loses everything"
        )
        return Check("recipe", "warning", found, "lower training.checkpoint_every")
    return Check("recipe", "ok", f"{steps} steps of {training.batch_tokens:,} tokens")


def _check_texts(config: Config, splits: Splits | None) -> Iterator[Check]:
    """Check each text of the recipe by reading it to its end; `splits` None: not downloaded."""
    if splits is None:
        assert config.data.corpus is not None  # `find_splits` says so
        corpus = find_corpus(config.data.corpus)
        found = f"corpus {corpus.name} is not here yet; `nmt train` gets it ({corpus.download})"
        yield Check("data", "ok", found)
        return
    sets = {"train": splits.train, "validation": splits.validation, "test": splits.test}
    for name, texts in sets.items():
        for number, text in enumerate(texts, start=1):
            yield _check_text(name if number == 1 else f"{name}{number}", text, config)
    if not splits.test:
        found = "no test set, so the run ends without a score"
        yield Check("test", "warning", found, "name one as data.test")


def _check_text(name: str, text: TextPair, config: Config) -> Check:
    """Check that both sides have as many lines; held-out sets are also decoded as UTF-8."""
    try:
        pairs = ParallelText(text, config.data.languages)
        # to count is much faster than to decode
        count = pairs.count_pairs() if name.startswith("train") else sum(1 for _ in pairs)
    except NmtError as error:
        return Check(name, "failure", str(error), "correct the text, or the recipe's data section")
    return Check(name, "ok", f"{count:,} pairs, aligned, in {' and '.join(text.paths)}")


def _check_vocabulary(config: Config) -> Check:
    """Check that the ids of prepared data are in the vocabulary, or that its files can be read."""
    settings = config.tokenizer
    try:
        prepared = find_prepared(config)
        if prepared is None:
            found = f"{settings.vocabulary_size:,} {settings.kind} entries, to be learnt"
            if settings.models:
                size = adopt_vocabulary(settings).target.size
                found = f"{size:,} entries of {settings.models[-1]}"
            return Check("tokenizer", "ok", found)
    except NmtError as error:
        return Check("tokenizer", "failure", str(error), _PREPARE_AGAIN)
    folder, store, tokenizer = prepared.directory, prepared.train, prepared.tokenizer
    source_size, target_size = tokenizer.source.size, tokenizer.target.size
    largest_source = int(store.source.ids.max(initial=0))
    largest_target = int(store.target.ids.max(initial=0))
    largest = max(largest_source, largest_target)
    if largest_source >= source_size or largest_target >= target_size:
        found = (
            f"{folder} holds ids up to {largest:,}, outside of vocabularies of {source_size:,} and "
            f"{target_size:,} entries"
        )
        return Check("tokenizer", "failure", found, f"delete {folder} and run `nmt prepare`")
    found = f"{target_size:,} entries, ids up to {largest:,} of {len(store):,} pairs"
    return Check("tokenizer", "ok", found)


def _check_fit(config: Config, runs: Path) -> Iterator[Check]:
    """Check that memory and disk are large enough for the training, as `nmt plan` estimates it."""
    try:
        plan = make_plan(config, measure=False)
    except DataError as error:
        yield Check("fit", "failure", str(error), _PREPARE_AGAIN)
        return
    yield Check("code", "ok", _what_runs(config, plan))
    yield _check_memory_fit(plan)
    needed, free = gigabytes(plan.disk["total"]), free_space(runs)
    if plan.disk["total"] <= free:
        yield Check("disk fit", "ok", f"checkpoints take {needed} of {gigabytes(free)}")
        return
    found = f"checkpoints take {needed}, and {gigabytes(free)} are free in {runs}"
    remedy = "free some space, choose another run directory, or lower training.average_checkpoints"
    yield Check("disk fit", "failure", found, remedy)


def _what_runs(config: Config, plan: Plan) -> str:
    """Return in a line what computes the model in training, as the log of the training says it."""
    training, device = config.training, pick_device(config.training.device)
    sizes = config.model.model_copy(update={"encoder_layers": 1, "decoder_layers": 1})
    model = Transformer(sizes, EOS + 1, EOS + 1).to(device)
    if training.lora:
        add_adapters(model, training.lora)
    threads, shards = torch.get_num_threads(), 1  # `make_plan` has set the threads
    if can_shard(device, training):
        shards = min(threads, number_of_shards(threads, plan.parameters["total"]))
    return what_runs(prepare_for_training(model, training, plan.precision), threads // shards)


def _check_memory_fit(plan: Plan) -> Check:
    """Check that the free memory of the device is enough, now and after many steps."""
    needed = plan.memory.total
    found = f"training takes {gigabytes(needed)}"
    needed_later = needed
    if plan.device == "cpu":
        needed_later += KEPT_ON_CPU
        found += f", in the long run about {gigabytes(needed_later)}"
    free = free_memory(torch.device(plan.device))
    if free is None:
        return Check("memory fit", "ok", found)
    found += f" of {gigabytes(free)}"
    remedy = "lower training.micro_batch_tokens, or set training.activation_checkpointing: true"
    if needed > free:
        return Check("memory fit", "failure", found, remedy)
    if needed_later > _SAFE_SHARE * free:
        return Check("memory fit", "warning", found, remedy)
    return Check("memory fit", "ok", found)
