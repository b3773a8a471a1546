"""The options of commands that read a recipe or use a model: which weights, where, which search."""

from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.data.tokens.tokenizer import Tokenizer
    from nmt.recipe.config import Config, Sampling
    from nmt.run.model import LoadedModel
    from nmt.translation.translator import Translator

SettingsOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override section.key; may be repeated."),
]
ModelOption = typer.Option(
    "--model",
    "-m",
    metavar="RUN",
    help="Run directory or checkpoint. Several of them translate together, as an ensemble.",
)
ModelsOption = Annotated[list[str], ModelOption]
OneModelOption = Annotated[
    str, typer.Option("--model", "-m", metavar="RUN", help="Run directory or checkpoint.")
]


@dataclass(frozen=True)
class RecipeOptions:
    """A recipe, and settings that replace some of its own."""

    config: str
    """A YAML file, or the name of a bundled recipe."""
    settings: SettingsOption = None
    backward: Annotated[bool, typer.Option("--backward")] = False
    """Exchange source and target of the recipe: its model translates back, as `nmt synthesize`
    needs it."""

    def load(self) -> "Config":
        """Read the recipe, with the settings that it takes from `training.initialize_from`.

        Raises:
            ConfigError: There is no such recipe, or it holds a mistake.
            NmtError: The model of `training.initialize_from` is missing or cannot be used.
        """
        config = self.load_without_parent()
        if not config.training.initialize_from:
            return config
        from nmt.training.inheritance import inherit

        return inherit(config)

    def load_without_parent(self, *changes: str) -> "Config":
        """Read the recipe alone, without the settings of `training.initialize_from`.

        `changes` are KEY=VALUE settings that replace those of --set.

        Raises:
            ConfigError: There is no such recipe, or it holds a mistake.
        """
        from nmt.recipe.config_file import exchange_sides, load_config

        config = load_config(self.config, [*(self.settings or []), *changes])
        return exchange_sides(config) if self.backward else config

    @property
    def name(self) -> str:
        """The name of the recipe's file without its ending; with `-backward` for --backward."""
        from nmt.recipe.config_file import find_config

        return find_config(self.config).stem + ("-backward" if self.backward else "")


@dataclass(frozen=True)
class WeightsOptions:
    """Which weights of a run to use, and where."""

    checkpoint: str = "best"
    """The weights of the run to use: best, last, averaged, moving-average or step-N."""
    device: Annotated[str, typer.Option(metavar="auto|cpu|cuda|...")] = "auto"
    """Where to compute: auto (a GPU of CUDA if there is one), cpu, cuda, cuda:1, mps, xpu."""


@dataclass(frozen=True)
class ComputeOptions(WeightsOptions):
    """Which weights of a run to use, where, and in which number format."""

    precision: Literal["auto", "fp32", "bf16", "int8"] = "auto"
    """int8 is the fastest on a CPU, bf16 on a GPU; their translations differ slightly from those of
    fp32. auto is int8 where the C library searches (see nmt/translation/README.md), else bf16 if
    the processor multiplies it, else fp32."""
    adapter: Annotated[Path | None, typer.Option(metavar="ADAPTER")] = None
    """What was trained from the model with training.lora: a run, a checkpoint or a file."""


EXACT = ComputeOptions(precision="fp32")
"""the defaults of commands whose figures are compared with those of other machines"""


@dataclass(frozen=True)
class BeamOptions:
    """Size of the beam and of the batches; None keeps those of the run."""

    beam_size: Annotated[int | None, typer.Option(min=1)] = None
    """Number of hypotheses kept for each sentence; 1 is greedy search.  [default: the run's]"""
    batch_tokens: Annotated[int | None, typer.Option(min=1)] = None
    """Number of padded source tokens translated at once.  [default: the run's]"""


@dataclass(frozen=True)
class SearchOptions(BeamOptions):
    """Settings of the search that replace those of the run; None keeps the run's."""

    length_penalty: Annotated[float | None, typer.Option(min=0, max=10)] = None
    """alpha of the length penalty; 0 is no penalty.  [default: the run's]"""
    shortlist: Annotated[int | None, typer.Option(metavar="N", min=1, max=200)] = None
    """Search only frequent tokens and the N likeliest translations of each source token, which
    `nmt shortlist` has learnt: faster.  [default: the whole vocabulary]"""


@dataclass(frozen=True)
class AllSearchOptions(SearchOptions):
    """All settings of the search, as `nmt translate` has them."""

    length_normalization: Literal["gnmt", "average", "none"] | None = None
    """What log P is divided by: gnmt ((5 + length) / 6)^alpha, average (the length) or none.
    [default: the run's]"""
    min_length: Annotated[int | None, typer.Option(min=0)] = None
    """Smallest number of tokens of a translation.  [default: the run's]"""
    no_repeat_ngram: Annotated[int | None, typer.Option(min=0)] = None
    """No sequence of this many tokens comes twice in a translation; 0 allows all.  [default: the
    run's]"""
    coverage_penalty: Annotated[float | None, typer.Option(min=0)] = None
    """beta: lowers the score of translations that leave out a part of the source.  [default: the
    run's]"""
    copy_unknown: Annotated[bool | None, typer.Option("--copy-unknown")] = None
    """Replace the unknown symbol by the source word that the decoder attended to."""
    early_stopping: Annotated[bool | None, typer.Option("--early-stopping/--exact-stopping")] = None
    """Stop as soon as --beam-size hypotheses have ended, although another might still be better:
    faster.  [default: the run's]"""

    def __post_init__(self) -> None:
        normalization = self.length_normalization
        if self.length_penalty is not None and normalization not in (None, "gnmt"):
            raise ConfigError(
                f"--length-penalty is the alpha of gnmt, and --length-normalization {normalization}"
                " has none; leave one of them out"
            )


_NOT_SAMPLED = {
    "beam_size": "--beam-size",
    "shortlist": "--shortlist",
    "coverage_penalty": "--coverage-penalty",
    "early_stopping": "--early-stopping/--exact-stopping",
}
"""the options of a search, by their fields, that --sample cannot follow"""


@dataclass(frozen=True)
class SamplingOptions:
    """Whether translations are drawn at random, and how."""

    sample: Annotated[bool, typer.Option("--sample")] = False
    """Draw translations at random instead of searching."""
    temperature: Annotated[float, typer.Option(min=1e-3, max=1e6)] = 1.0
    """Sampling temperature; lower is more deterministic."""
    top_k: Annotated[int | None, typer.Option(min=1)] = None
    """Sample only among the K most probable tokens."""
    top_p: Annotated[float | None, typer.Option(min=1e-3, max=1)] = None
    """Sample only among the most probable tokens whose probabilities add up to P."""
    seed: Annotated[int, typer.Option(min=0)] = 1
    """Seed of --sample."""

    def __post_init__(self) -> None:
        defaults = tuple(field.default for field in fields(self))
        if not self.sample and astuple(self) != defaults:
            raise ConfigError(
                "--temperature, --top-k, --top-p and --seed say how --sample draws; "
                "add --sample, or leave them out"
            )

    def sampling(self) -> "Sampling | None":
        """Return the settings of random sampling, or None without --sample (beam search)."""
        if not self.sample:
            return None
        from nmt.recipe.config import Sampling

        return Sampling(
            temperature=self.temperature, top_k=self.top_k, top_p=self.top_p, seed=self.seed
        )


def check_translates_nothing(what: str, compute: ComputeOptions, search: BeamOptions) -> None:
    """Check that no option says how to translate, because there are only files of translations.

    `what` begins the message, such as "--hypothesis is".

    Raises:
        ConfigError: One does.
    """
    values = asdict(compute) | asdict(search)
    defaults = asdict(EXACT) | asdict(type(search)())
    given = [f"--{key.replace('_', '-')}" for key in values if values[key] != defaults[key]]
    if given:
        raise ConfigError(f"{what} translated already; leave out {', '.join(given)}")


def target_tag(language: str | None, tokenizer: "Tokenizer") -> str:
    """Return the tag that asks a model for a target language, such as `>>fr<<`; "" for None.

    `language` is a word that the model has as a tag, or a code or the English name of a language.

    Raises:
        ConfigError: The model has learnt no such tag.
    """
    if language is None:
        return ""
    from nmt.data.languages import language_among
    from nmt.data.tokens.vocabulary import NAMED_TAGS, check_tags
    from nmt.recipe.config import spell_tag

    tag, known = spell_tag(language), [each.strip("<>") for each in tokenizer.source.tags]
    if language not in known and known:
        try:
            return spell_tag(language_among(language, known))
        except ConfigError as error:
            if len(known) > NAMED_TAGS:
                raise ConfigError(f"--to {language}: {error}") from error
    check_tags(tokenizer, [tag], f"--to {language}")
    return tag


def set_source_language(loaded: "LoadedModel", language: str | None) -> None:
    """Let a model of many languages translate from `language`, a code or name; None: its own.

    Raises:
        ConfigError: The model has no such language, or has one source language.
    """
    if language is None:
        return
    from nmt.data.languages import language_among

    data = loaded.config.data
    if not data.language_tags:
        raise ConfigError(
            f"--from {language}: the model has one source language, {data.source_language}; leave "
            "out --from, which is for models such as NLLB"
        )
    try:
        changes = {"source_language": language_among(language, data.language_tags)}
    except ConfigError as error:
        raise ConfigError(f"--from {language}: {error}") from error
    loaded.config = loaded.config.model_copy(update={"data": data.model_copy(update=changes)})


def make_translator(
    models: Sequence[str],
    compute: ComputeOptions,
    search: BeamOptions,
    sampling: "Sampling | None" = None,
    source_language: str | None = None,
) -> "Translator":
    """Load one model, or several as an ensemble, with the settings that the options ask for.

    An option that is None keeps the setting of the first model's run. Without `sampling` (None),
    translations come from beam search. `source_language` is that of --from, see
    `set_source_language`.

    Raises:
        CheckpointError: a model has no usable weights.
        ConfigError: the vocabularies differ, the shortlist is missing, or options exclude each
            other.
    """
    from nmt.machine.memory import tune_memory
    from nmt.translation.load import load_translator

    changes = asdict(search)
    without_effect = [name for key, name in _NOT_SAMPLED.items() if changes.get(key) is not None]
    if without_effect and sampling:
        raise ConfigError(
            "--sample draws from the whole vocabulary, without a beam; leave out "
            f"{', '.join(without_effect)}"
        )
    tune_memory()
    translator = load_translator(
        models,
        compute.checkpoint,
        compute.device,
        compute.precision,
        changes,
        sampling,
        compute.adapter,
    )
    normalization = translator.settings.length_normalization
    if changes.get("length_penalty") is not None and normalization != "gnmt":
        raise ConfigError(
            "--length-penalty is the alpha of gnmt, and the run's length_normalization is "
            f"{normalization}; leave it out"
        )
    set_source_language(translator.loaded, source_language)
    return translator
