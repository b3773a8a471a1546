"""Chooses a first recipe for a text: each setting follows from the text, the machine and the time.

The rules come from the results of the bundled recipes (configs/README.md). Each choice holds the
sentence that explains it in the YAML.
"""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from nmt.config import Config, DataConfig
from nmt.config_file import replace_settings
from nmt.data.tokens.token_store import TokenStore
from nmt.data.tokens.vocabulary import learn_vocabulary
from nmt.device import pick_device
from nmt.errors import DataError
from nmt.planning.plan import RunTime, run_time
from nmt.planning.probe import Speed, probe
from nmt.planning.text_profile import TextProfile
from nmt.planning.workload import Workload
from nmt.processor import available_cores

SizeName = Literal["tiny", "small", "base", "big"]


class Size(NamedTuple):
    """A model size, and its peak learning rate with Muon."""

    d_model: int
    heads: int
    d_ff: int
    layers: int
    """layers of the encoder, and of the decoder"""
    peak_learning_rate: float
    description: str


SIZES: Mapping[SizeName, Size] = {
    "tiny": Size(128, 4, 512, 3, 5e-3, "for a few thousand pairs, or a few minutes"),
    "small": Size(256, 4, 512, 3, 5e-3, "keeps the cores of a laptop busy"),
    "base": Size(
        512, 8, 2048, 6, 2e-3, "the base model of the paper: for a GPU and 300,000 pairs or more"
    ),
    "big": Size(
        1024,
        16,
        4096,
        6,
        1.5e-3,
        "the big model of the paper: for a GPU, many hours and millions of pairs",
    ),
}
_VOCABULARIES = ((8_000, 2000), (20_000, 4000), (60_000, 6000), (1_000_000, 8000), (5e6, 16_000))
"""(pairs, entries): the vocabulary size for texts with fewer pairs than that"""
_LARGEST_VOCABULARY = 32_000
_MOST_EPOCHS = 60
"""epochs of a small corpus; more of them no longer improve the model"""
_VALIDATIONS = 8
_FEWEST_STEPS = 50
_CPU_MINUTES, _GPU_MINUTES = 30.0, 120.0


@dataclass(frozen=True)
class Choice:
    """One setting of the recipe."""

    key: str
    """section.name, as --set takes it"""
    value: Any
    reason: str = ""


@dataclass(frozen=True)
class FirstRecipe:
    """A recipe, and how long its training will take on this machine."""

    choices: list[Choice]
    config: Config
    time: RunTime
    speed: Speed
    epochs: float
    warnings: list[str]
    """sentences about why the training may take another time than the one that was asked for"""


@dataclass(frozen=True)
class Request:
    """What the user asked for; None leaves it to the text and the machine."""

    size: SizeName | None = None
    minutes: float | None = None


def choose_recipe(profile: TextProfile, data: DataConfig, request: Request) -> FirstRecipe:
    """Choose every setting; the speed of this machine is measured by a few training steps.

    `data` says where the text is and in which languages. If the time allows almost no steps, the
    recipe has the smallest size, or the one that was asked for, and takes `_FEWEST_STEPS` steps.
    """
    on_cpu = pick_device("auto").type == "cpu"
    minutes = request.minutes or (_CPU_MINUTES if on_cpu else _GPU_MINUTES)
    size = request.size or _size_for(profile.pairs, minutes, on_cpu)
    recipe = _recipe_of(size, profile, data, request, minutes)
    if recipe.time.total > minutes * 60 and not request.size and size != "tiny":
        recipe = _recipe_of("tiny", profile, data, request, minutes)
    return recipe


def _recipe_of(
    size: SizeName, profile: TextProfile, data: DataConfig, request: Request, minutes: float
) -> FirstRecipe:
    """Choose every setting for a model of this size."""
    on_cpu = pick_device("auto").type == "cpu"
    tokenizer, store, vocabulary = _learn_sample_vocabulary(profile)
    choices = [
        *tokenizer,
        *_model_choices(size, profile, request),
        *_batch_choices(on_cpu),
        *_thread_choices(),
        Choice("decoding.beam_size", 5),
        Choice("decoding.length_penalty", 1.0, "better than 0.6 on the texts that were tried"),
    ]
    draft = _configured(Config(data=data), choices)
    speed = probe(draft, store, (vocabulary, vocabulary))
    workload = _workload(profile, draft, store, vocabulary)
    steps, reason = _steps(draft, workload, speed, minutes)
    epochs = steps / (workload.steps_per_epoch or 1)
    choices += _dropout(size, epochs, minutes)
    choices += _step_choices(SIZES[size], steps, reason)
    config = _configured(Config(data=data), choices)
    time = run_time(config, workload, speed)
    return FirstRecipe(choices, config, time, speed, epochs, _warnings(speed, time, minutes))


def _warnings(speed: Speed, time: RunTime, minutes: float) -> list[str]:
    """Return a sentence for each reason why the training may not take the `minutes`."""
    warnings = []
    if speed.busy:
        warnings.append(
            f"other processes used the processor for {speed.waiting:.0%} of the measured time, so "
            "the planned time is uncertain; run `nmt init` again when the machine is idle"
        )
    if time.total > minutes * 60:
        warnings.append(
            f"{_FEWEST_STEPS} steps of this model take more than {minutes:g} min here "
            f"({speed.step_seconds:.1f} s each), and fewer steps teach it nothing; the training is "
            f"planned to take {time.total / 60:.1f} min"
        )
    return warnings


def _size_for(pairs: int, minutes: float, on_cpu: bool) -> SizeName:
    if on_cpu:
        return "tiny" if pairs < 8_000 or minutes < 4 else "small"
    if pairs < 300_000:
        return "small"
    return "big" if pairs >= 10_000_000 and minutes >= 600 else "base"


def _learn_sample_vocabulary(profile: TextProfile) -> tuple[list[Choice], TokenStore, int]:
    """Return the settings of the tokenizer, the sample in its ids, and the vocabulary size.

    The vocabulary is halved until the text of the sample has enough different pieces for it.
    """
    limit = next((size for pairs, size in _VOCABULARIES if profile.pairs < pairs), None)
    size = limit or _LARGEST_VOCABULARY
    fixed = _alphabet_choices(profile)
    while True:
        choices = [
            Choice("tokenizer.vocabulary_size", size, f"subwords, for {profile.pairs:,} pairs"),
            *fixed,
        ]
        config = _configured(Config(), choices).tokenizer
        try:
            tokenizer = learn_vocabulary(profile.sample, config)
            break
        except DataError:
            if size <= 500:
                raise
            size //= 2
    sources = tokenizer.source.encode([pair.source for pair in profile.sample])
    targets = tokenizer.target.encode([pair.target for pair in profile.sample])
    longest = Config().data.cleaning.max_length
    kept = [(s, t) for s, t in zip(sources, targets, strict=True) if max(len(s), len(t)) <= longest]
    store = TokenStore.of([s for s, _ in kept], [t for _, t in kept])
    return choices, store, tokenizer.target.size


def _alphabet_choices(profile: TextProfile) -> list[Choice]:
    choices = []
    if profile.tokenized:
        choices.append(
            Choice("tokenizer.normalization", "identity", "the text is tokenised: leave it as is")
        )
    if not (profile.source.spaced and profile.target.spaced):
        choices += [
            Choice("tokenizer.character_coverage", 0.9995, "rare ideographs get no entry"),
            Choice("tokenizer.byte_fallback", True, "and are spelt in bytes instead"),
        ]
    return choices


def _model_choices(name: SizeName, profile: TextProfile, request: Request) -> list[Choice]:
    size = SIZES[name]
    chosen = "as --size asked" if request.size else f"for {profile.pairs:,} pairs on this machine"
    return [
        Choice("model.d_model", size.d_model, f"size {name}, {chosen}: {size.description}"),
        Choice("model.heads", size.heads),
        Choice("model.d_ff", size.d_ff),
        Choice("model.encoder_layers", size.layers),
        Choice("model.decoder_layers", size.layers),
        Choice(
            "model.initialization_gain", 0.5, "post-norm layers need it where the warm-up is short"
        ),
    ]


def _batch_choices(on_cpu: bool) -> list[Choice]:
    tokens = 4096 if on_cpu else 25_000
    reason = "small steps learn faster on a CPU" if on_cpu else "as in the paper"
    return [
        Choice("training.batch_tokens", tokens, f"tokens of a step: {reason}"),
        Choice("training.optimizer", "muon", "learns in about 0.7 of the steps that Adam takes"),
    ]


def _thread_choices() -> list[Choice]:
    """Return the number of threads, if OMP_NUM_THREADS asks for fewer than there are cores."""
    asked = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    if not asked.isdecimal() or not 0 < int(asked) < available_cores():
        return []
    return [Choice("training.threads", int(asked), "as in OMP_NUM_THREADS; auto: one a core")]


def _workload(profile: TextProfile, config: Config, store: TokenStore, vocabulary: int) -> Workload:
    lengths = float(store.source.lengths.mean()), float(store.target.lengths.mean())
    tokens = profile.pairs * max(lengths)
    return Workload(
        origin="a sample of the text",
        pairs=profile.pairs,
        source_length=lengths[0],
        target_length=lengths[1],
        steps_per_epoch=max(1, round(tokens / config.training.batch_tokens)),
        source_vocabulary=vocabulary,
        target_vocabulary=vocabulary,
        validation_pairs=min(1000, profile.pairs // 50),
    )


def _steps(config: Config, workload: Workload, speed: Speed, minutes: float) -> tuple[int, str]:
    """Return the number of steps that fit in the time and still gain quality, and the reason.

    It is at least `_FEWEST_STEPS`, however slow this machine is.
    """
    training = config.training.model_copy(update={"max_steps": 1, "validate_every": 1})
    once = run_time(config.model_copy(update={"training": training}), workload, speed)
    available = minutes * 60 - _VALIDATIONS * once.validations - once.ending
    steps = int(available / speed.step_seconds)
    if steps < _FEWEST_STEPS:
        return _FEWEST_STEPS, "the fewest steps that teach the model anything"
    most = _MOST_EPOCHS * (workload.steps_per_epoch or 1)
    if most < steps:
        return max(most, _FEWEST_STEPS), f"{_MOST_EPOCHS} times through the text; more overfits"
    return steps, f"{minutes:g} minutes of this machine, {speed.step_seconds:.2f} s a step"


def _dropout(size: SizeName, epochs: float, minutes: float) -> list[Choice]:
    """Return the dropout, which is higher the more often each pair is seen."""
    table = ((3, 0.1), (8, 0.15), (25, 0.25), (math.inf, 0.35 if size != "tiny" else 0.3))
    dropout = next(value for limit, value in table if epochs < limit)
    return [Choice("model.dropout", dropout, f"each pair is seen {epochs:.1f} times")]


def _step_choices(size: Size, steps: int, reason: str) -> list[Choice]:
    every = math.ceil(steps / _VALIDATIONS)
    return [
        Choice("training.max_steps", steps, reason),
        Choice("training.warmup_steps", min(4000, max(10, steps // 16)), "of a rising rate"),
        Choice("training.cooldown_steps", steps * 2 // 3, "of a rate that falls to zero"),
        Choice("training.peak_learning_rate", size.peak_learning_rate, "suits Muon at this width"),
        Choice("training.weight_decay", 0.1, "against overfitting"),
        Choice("training.validate_every", every, f"{_VALIDATIONS} validations in all"),
        Choice("training.checkpoint_every", max(1, steps // 40), "a crash loses at most so many"),
    ]


def _configured(config: Config, choices: list[Choice]) -> Config:
    """Return the configuration with the choices applied."""
    values = config.model_dump()
    for choice in choices:
        section, _, name = choice.key.partition(".")
        values[section][name] = choice.value
    return replace_settings(config, values, "nmt init")
