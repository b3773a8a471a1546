"""Chooses a first recipe for a text: each setting follows from the text, the machine and the time.

The rules come from the results of the bundled recipes (configs/README.md).
first_recipe.yaml.jinja is the recipe as YAML, with the sentence that explains each setting.
"""

import os
import time
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from nmt.data.links import LINKING_SECONDS
from nmt.data.quality import length_ratios
from nmt.data.tokens.token_store import TokenStore
from nmt.data.tokens.tokenizer import Tokenizer
from nmt.data.tokens.vocabulary import learn_vocabulary
from nmt.errors import DataError
from nmt.machine.device import pick_device
from nmt.machine.processor import available_cores
from nmt.planning.plan import MIN_STEPS, RunTime, read_template, run_time
from nmt.planning.probe import Speed, probe
from nmt.planning.resources import known_figures
from nmt.planning.text_profile import TextProfile
from nmt.planning.workload import Workload
from nmt.recipe import strict_yaml
from nmt.recipe.config import Config, DataConfig
from nmt.recipe.config_file import parse_config

SizeName = Literal["tiny", "small", "base", "big"]
_VOCABULARIES = ((8_000, 2000), (20_000, 4000), (60_000, 6000), (1_000_000, 8000), (5e6, 16_000))
"""(limit, entries): a text of fewer than `limit` pairs gets a vocabulary of `entries` pieces"""
_LARGEST_VOCABULARY, _SMALLEST_VOCABULARY = 32_000, 500
_MANY_CHARACTERS = 0.25  # of the entries of a vocabulary: more leave too few for subwords
_BYTES = 256  # the entries of tokenizer.byte_fallback
_LEARNT_SHARE = 0.9  # of the sample: the training text is without held-out sets and repetitions
_LEAST_LENGTH_RATIO = 4.0  # of max_length_ratio: most European pairs need less
_DEVIATIONS = 4  # of the logarithm of the ratio of lengths; good pairs deviate less
_MAX_EPOCHS = 60  # more of them no longer improve the model
_LINKING_SHARE = 0.05  # of the training time, at most
_VALIDATIONS = (8, 4, 2, 1)  # numbers of validations in a training; the first that fits is taken
_VALIDATION_SHARE = 0.25  # of the time, for all validations together
_DROPOUTS = ((3, 0.1), (8, 0.15), (25, 0.25))
"""(limit, dropout) for trainings of fewer than `limit` epochs: more dropout for repeated pairs"""
_CPU_MINUTES, _GPU_MINUTES = 30.0, 120.0
"""the time to train if the user asks for none"""
_DRAFT = {"steps": 100_000, "steps_reason": "", "epochs": 0.0, "dropout": 0.1}
"""template values of a recipe whose speed is not measured yet; they do not change its speed"""


@dataclass(frozen=True)
class FirstRecipe:
    """A recipe, the measured speed of this machine, and the time the training will take on it."""

    text: str
    """the recipe as YAML, with a reason beside each setting"""
    config: Config
    time: RunTime
    speed: Speed
    epochs: float
    """how many times the training goes through the text"""
    warnings: list[str]
    """a sentence for each reason why the training may take longer than planned or asked for"""


def choose_recipe(
    profile: TextProfile,
    data: DataConfig,
    size: SizeName | None = None,
    minutes: float | None = None,
) -> FirstRecipe:
    """Choose every setting of a recipe; a few training steps measure how fast this machine is.

    `profile` describes the text, and `data` becomes the data section. `minutes` is the time to
    train (None: 30 on a CPU, 120 on a GPU). If `size` is None, it follows from text, machine and
    time; a model that would train for longer than `minutes` becomes a tiny one. A training has at
    least `MIN_STEPS` steps, even if they take longer than `minutes`.
    """
    on_cpu = pick_device("auto").type == "cpu"
    if not minutes:  # the user has not said how long
        minutes = _CPU_MINUTES if on_cpu else _GPU_MINUTES
    linking_minutes = profile.pairs * LINKING_SECONDS / 60
    values: dict[str, Any] = {  # variables of first_recipe.yaml.jinja
        "data": data,
        "pairs": profile.pairs,
        "tokenized": profile.tokenized,
        "size_asked": size is not None,
        "on_cpu": on_cpu,
        "threads": _thread_limit(),
        "validations": _VALIDATIONS[0],
        # guided alignment was not measured on a GPU, which cannot record its steps as graphs
        "learns_links": on_cpu and linking_minutes <= _LINKING_SHARE * minutes,
    }
    first_size = size or _size_for(profile.pairs, minutes, on_cpu)
    recipe = _recipe_of(first_size, profile, values, minutes)
    too_slow = recipe.time.total > minutes * 60
    if too_slow and size is None and first_size != "tiny":
        return _recipe_of("tiny", profile, values, minutes)
    return recipe


def _recipe_of(
    size: SizeName, profile: TextProfile, values: dict[str, Any], minutes: float
) -> FirstRecipe:
    """Choose all other settings for a model of this size; `values` are the template's so far."""
    figures = next(row for row in known_figures("sizes") if row["name"] == size)
    values = {**values, "size": figures}
    wanted = next((n for limit, n in _VOCABULARIES if profile.pairs < limit), _LARGEST_VOCABULARY)
    spaced = profile.source.spaced and profile.target.spaced
    values["spelt_in_bytes"] = not spaced or profile.characters > _MANY_CHARACTERS * wanted
    values["characters"] = profile.characters
    values["vocabulary_size"], tokenizer = _learn_sample_vocabulary(profile, values, wanted)
    begin = time.perf_counter()
    entries, store = tokenizer.target.size, _encode_sample(profile, tokenizer)
    encoding = (time.perf_counter() - begin) * profile.pairs / len(profile.sample)  # the whole text
    values["data"] = _fit_length_ratio(values["data"], store)
    draft = parse_config(_fill_in(values | _DRAFT), "nmt init")
    speed = probe(draft, store, (entries, entries))
    workload = replace(_workload(profile, draft, store, entries), preparation=encoding)
    values["validations"], steps, reason = _steps(draft, workload, speed, minutes)
    epochs = steps / (workload.steps_per_epoch or 1)
    highest_dropout = 0.3 if size == "tiny" else 0.35
    dropout = next((value for limit, value in _DROPOUTS if epochs < limit), highest_dropout)
    values |= {"steps": steps, "steps_reason": reason, "epochs": epochs, "dropout": dropout}
    text = _fill_in(values)
    config = parse_config(text, "nmt init")
    planned = run_time(config, workload, speed)
    return FirstRecipe(text, config, planned, speed, epochs, _warnings(speed, planned, minutes))


def _fill_in(values: dict[str, Any]) -> str:
    """Return the recipe as YAML text: first_recipe.yaml.jinja with these values."""
    template = read_template("first_recipe.yaml.jinja", yaml=_section, align_comments=_align)
    return template.render(values)


def _section(settings: dict[str, Any]) -> str:
    """Return settings as the YAML lines of a section, indented by two spaces."""
    return "".join(f"  {line}\n" for line in strict_yaml.dump(settings).splitlines())


def _align(text: str) -> str:
    """Move the comments, which are two spaces after a setting, to a common column."""
    lines = []
    for line in text.split("\n"):
        setting, hash_sign, reason = line.partition("  # ")
        lines.append(f"{setting:<26} # {reason}" if hash_sign else line)
    return "\n".join(lines)


def describe_recipe(recipe: FirstRecipe, command: str) -> str:
    """Return the recipe as YAML, after comments: time, machine, warnings, the `command` to run."""
    speed = recipe.speed
    threads = "1 thread" if speed.threads == 1 else f"{speed.threads} threads"
    lines = [
        f"# planned  {recipe.time.total / 60:.1f} min for {recipe.config.training.max_steps:,} "
        f"steps ({recipe.epochs:.1f} times through the text)",
        f"# machine  {speed.device}, {speed.precision}, {speed.target_tokens:,.0f} target tokens a "
        f"second, measured in {speed.steps} steps with {threads}",
        *(f"# warning  {warning}" for warning in recipe.warnings),
        f"# run      {command}",
    ]
    return "\n".join([*lines, "", recipe.text])


def _warnings(speed: Speed, planned: RunTime, minutes: float) -> list[str]:
    """Return a sentence for each reason why the training may take longer than `minutes`."""
    warnings = []
    if speed.busy:
        warnings.append(
            f"other processes used the processor for {speed.waiting:.0%} of the measured time, so "
            "the planned time is uncertain; run `nmt init` again when the machine is idle"
        )
    if planned.total > minutes * 60:
        others = planned.total - planned.training
        warnings.append(
            f"{MIN_STEPS} steps of this model take more than {minutes:g} min here "
            f"({speed.step_seconds:.1f} s each, and {others:.0f} s to prepare the text, validate "
            "and score), and fewer steps teach it nothing; the training is planned to take "
            f"{planned.total / 60:.1f} min"
        )
    return warnings


def _size_for(pairs: int, minutes: float, on_cpu: bool) -> SizeName:
    """Return the largest model that this much text and this much time can train."""
    if on_cpu:
        return "tiny" if pairs < 8_000 or minutes < 4 else "small"
    if pairs < 300_000:
        return "small"
    return "big" if pairs >= 10_000_000 and minutes >= 600 else "base"


def _learn_sample_vocabulary(
    profile: TextProfile, values: dict[str, Any], wanted: int
) -> tuple[int, Tokenizer]:
    """Return the vocabulary size for the recipe, and a tokenizer of this size for the sample.

    It is `wanted`, which follows from the size of the text, or as many as leave room for subwords
    beside the characters. It is halved until the sample has enough different pieces for it, but
    each character has an entry.
    """
    needed = profile.characters
    if values["spelt_in_bytes"]:
        needed = profile.common_characters + _BYTES
    # a tenth more: the whole text may have more characters than the sample
    least = max(_SMALLEST_VOCABULARY, round(1.1 * needed))
    size = max(wanted, min(2 * least, _LARGEST_VOCABULARY)) if needed > wanted / 2 else wanted
    learnt = profile.sample[: round(_LEARNT_SHARE * len(profile.sample))]
    while True:
        draft = parse_config(_fill_in(values | _DRAFT | {"vocabulary_size": size}), "nmt init")
        try:
            return size, learn_vocabulary(learnt, draft.tokenizer)
        except DataError:
            if size <= least:  # the text is too small for any vocabulary
                raise
            size = max(size // 2, least)


def _fit_length_ratio(data: DataConfig, store: TokenStore) -> DataConfig:
    """Return the data section with a max_length_ratio that fits the two languages, if it has one.

    `store` has the sample. Some scripts need more: where frequent Thai phrases are one token each,
    good pairs are often four times as long on the other side. The standard deviation is estimated
    by the median of the deviations, which wrong pairs hardly change.
    """
    if data.cleaning.max_length_ratio is None:
        return data
    logarithms = np.log(length_ratios(store))
    usual = np.median(logarithms)
    deviation = 1.4826 * np.median(np.abs(logarithms - usual))  # as of a normal distribution
    widest = float(np.exp(np.abs(usual) + _DEVIATIONS * deviation))
    ratio = max(_LEAST_LENGTH_RATIO, round(widest, 1))
    cleaning = data.cleaning.model_copy(update={"max_length_ratio": ratio})
    return data.model_copy(update={"cleaning": cleaning})


def _encode_sample(profile: TextProfile, tokenizer: Tokenizer) -> TokenStore:
    """Return the ids of the sample, without the pairs that are too long to be trained on."""
    max_length = Config().data.cleaning.max_length
    sources = tokenizer.source.encode([pair.source for pair in profile.sample])
    targets = tokenizer.target.encode([pair.target for pair in profile.sample])
    pairs = [
        (source, target)
        for source, target in zip(sources, targets, strict=True)
        if max(len(source), len(target)) <= max_length
    ]
    if not pairs:
        raise DataError(
            f"the lines of the text have more than {max_length} tokens (data.cleaning.max_length), "
            "too many to learn from; write one sentence a line"
        )
    return TokenStore.of([source for source, _ in pairs], [target for _, target in pairs])


def _thread_limit() -> int | None:
    """Return OMP_NUM_THREADS if it is a smaller number than that of the cores, else None."""
    number = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]  # "4,2": 4 in the outer loop
    return int(number) if number.isdecimal() and 0 < int(number) < available_cores() else None


def _workload(profile: TextProfile, config: Config, store: TokenStore, vocabulary: int) -> Workload:
    """Return the size of an epoch of the whole text, with the sentence lengths of its sample.

    `store` has the sample, and `vocabulary` is the number of entries of the one vocabulary.
    """
    source_length = float(store.source.lengths.mean())
    target_length = float(store.target.lengths.mean())
    tokens = profile.pairs * max(source_length, target_length)  # batches count the longer side
    return Workload(
        origin="a sample of the text",
        pairs=profile.pairs,
        source_length=source_length,
        target_length=target_length,
        steps_per_epoch=max(1, round(tokens / config.training.batch_tokens)),
        source_vocabulary=vocabulary,
        target_vocabulary=vocabulary,
        validation_pairs=min(1000, profile.pairs // 50),
    )


def _steps(
    config: Config, workload: Workload, speed: Speed, minutes: float
) -> tuple[int, int, str]:
    """Return how many validations and steps fit into the time, and the reason for the steps."""
    # a run of one step has one validation, so its times give the seconds of a single validation
    training = config.training.model_copy(update={"max_steps": 1, "validate_every": 1})
    one_step = run_time(config.model_copy(update={"training": training}), workload, speed)
    longest = _VALIDATION_SHARE * minutes * 60
    few_enough = (n for n in _VALIDATIONS if n * one_step.validations <= longest)
    validations = next(few_enough, _VALIDATIONS[-1])
    others = (workload.preparation or 0.0) + validations * one_step.validations + one_step.ending
    affordable = int((minutes * 60 - others) / speed.step_seconds)
    useful = _MAX_EPOCHS * (workload.steps_per_epoch or 1)
    if affordable < MIN_STEPS:
        return validations, MIN_STEPS, "the fewest steps that teach the model anything"
    if useful < affordable:
        reason = f"{_MAX_EPOCHS} times through the text; more overfits"
        return validations, max(useful, MIN_STEPS), reason
    return (
        validations,
        affordable,
        f"{minutes:g} min of this machine, {speed.step_seconds:.2f} s a step",
    )
