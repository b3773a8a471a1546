"""The options of every command that uses a model, and the model they ask for."""

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.search.sampling import Sampling
    from nmt.translation.scoring import Scorer
    from nmt.translation.terminology import Terminology
    from nmt.translation.text_translator import TextTranslator
    from nmt.translation.translator import Translator


class Precision(StrEnum):
    """How precisely to compute."""

    auto = "auto"
    fp32 = "fp32"
    bf16 = "bf16"
    int8 = "int8"


class Normalization(StrEnum):
    """What log P is divided by."""

    gnmt = "gnmt"
    average = "average"
    none = "none"


ModelOption = typer.Option(
    "--model",
    "-m",
    metavar="RUN",
    help="Run directory or checkpoint; given several times, an ensemble of them.",
)
ModelsOption = Annotated[list[str], ModelOption]
CheckpointOption = Annotated[
    str,
    typer.Option(help="Which weights of the run: best, last, averaged, moving-average or step-N."),
]
BeamSizeOption = Annotated[
    int | None,
    typer.Option(
        min=1, help="Hypotheses kept for each sentence; 1 is greedy.  [default: the run's]"
    ),
]
LengthPenaltyOption = Annotated[
    float | None,
    typer.Option(min=0, max=10, help="alpha of the length penalty; 0: none.  [default: the run's]"),
]
NormalizationOption = Annotated[
    Normalization | None,
    typer.Option(
        "--length-normalization",
        help="What log P is divided by: gnmt ((5 + length) / 6)^alpha, average (the length) or "
        "none.  [default: the run's]",
    ),
]
MinLengthOption = Annotated[
    int | None, typer.Option(min=0, help="The fewest tokens.  [default: the run's]")
]
NoRepeatNgramOption = Annotated[
    int | None,
    typer.Option(min=0, help="No sequence of so many tokens twice.  [default: the run's]"),
]
CoveragePenaltyOption = Annotated[
    float | None,
    typer.Option(
        min=0,
        help="beta: what leaves out a part of the source counts for less.  [default: the run's]",
    ),
]
CopyUnknownOption = Annotated[
    bool | None,
    typer.Option(
        "--copy-unknown",
        help="Write the source word that was attended to for the unknown symbol.",
    ),
]
EarlyStoppingOption = Annotated[
    bool | None,
    typer.Option(
        "--early-stopping/--exact-stopping",
        help="End once as many hypotheses have ended as the beam is wide: faster.",
    ),
]
DocumentOption = Annotated[
    bool, typer.Option("--document", help="Split long lines into sentences, and join them again.")
]
SampleOption = Annotated[
    bool, typer.Option("--sample", help="Draw translations at random, without a beam.")
]
TemperatureOption = Annotated[
    float, typer.Option(min=1e-3, max=1e6, help="Of --sample: below 1, what is probable more so.")
]
TopKOption = Annotated[int | None, typer.Option(min=1, help="Of --sample: among so many tokens.")]
TopPOption = Annotated[
    float | None,
    typer.Option(min=1e-3, max=1, help="Of --sample: among tokens of so much probability."),
]
SeedOption = Annotated[int, typer.Option(min=0, help="Of --sample: which draw.")]
BatchTokensOption = Annotated[
    int | None,
    typer.Option(min=1, help="Padded source tokens translated at once.  [default: the run's]"),
]
ShortlistOption = Annotated[
    int | None,
    typer.Option(
        "--shortlist",
        metavar="N",
        min=1,
        max=200,
        help="Only the N likeliest translations of each source token, which `nmt shortlist` has "
        "learnt, and what is frequent: faster.  [default: the whole vocabulary]",
    ),
]
DeviceOption = Annotated[
    str,
    typer.Option(
        "--device",
        metavar="auto|cpu|cuda|...",
        help="Where to compute: auto (a GPU of CUDA if there is one), cpu, cuda, cuda:1, mps, xpu.",
    ),
]
PrecisionOption = Annotated[
    Precision,
    typer.Option(
        help="auto is bf16 where the processor has it, else fp32; int8 is for those without. "
        "Each is faster than fp32, and its translations differ slightly."
    ),
]


def sampling_of(
    sample: bool, temperature: float, top_k: int | None, top_p: float | None, seed: int
) -> "Sampling | None":
    """How to draw translations; None where they are searched for.

    Raises:
        ConfigError: a way to draw without --sample.
    """
    if sample:
        from nmt.search.sampling import Sampling

        return Sampling(temperature, top_k, top_p, seed)
    if (temperature, top_k, top_p, seed) != (1.0, None, None, 1):
        raise ConfigError(
            "--temperature, --top-k, --top-p and --seed say how --sample draws; "
            "add --sample, or leave them out"
        )
    return None


def load_translator(
    models: list[str],
    checkpoint: str,
    device: str,
    precision: Precision,
    sampling: "Sampling | None" = None,
    terminology: "Terminology | None" = None,
    shortlist: int | None = None,
    **given: int | float | str | None,
) -> "Translator":
    """Load models; settings given here, None aside, replace those of the first's configuration.

    `terminology` is what is asked of every translation; `shortlist` is how many candidates each
    source token has, from the first run's shortlist.

    Raises:
        CheckpointError: one of `models` holds no usable weights.
        ConfigError: models of different vocabularies, or no shortlist where one is asked for.
    """
    if shortlist and sampling:
        raise ConfigError("--sample draws from the whole vocabulary; leave out --shortlist")
    found = _load(models, checkpoint, device, precision, given, sampling, shortlist)
    translator = found.translator
    normalization = translator.settings.length_normalization
    if given.get("length_penalty") is not None and normalization != "gnmt":
        raise ConfigError(
            f"--length-penalty is the alpha of gnmt, and the run's length_normalization is "
            f"{normalization}; leave it out"
        )
    if terminology:
        translator.terminology = terminology
    return translator


def load_scorer(
    models: list[str],
    checkpoint: str,
    device: str,
    precision: Precision,
    batch_tokens: int | None,
) -> "Scorer":
    """Load models, to score translations with; the same errors as `load_translator`.

    Raises:
        ConfigError: a precision in which no score is computed.
    """
    if precision is Precision.int8:
        raise ConfigError(
            "--precision int8 is for translating; score in fp32 or bf16, or leave it out"
        )
    given = {"batch_tokens": batch_tokens}
    return _load(models, checkpoint, device, precision, given).scorer


def _load(
    models: list[str],
    checkpoint: str,
    device: str,
    precision: Precision,
    given: Mapping[str, object],
    sampling: "Sampling | None" = None,
    shortlist: int | None = None,
) -> "TextTranslator":
    from nmt.device import tune_memory
    from nmt.translation.text_translator import load_text_translator

    tune_memory()
    return load_text_translator(
        models, checkpoint, device, precision.value, given, sampling, shortlist
    )


def refuse_needless_alpha(
    length_penalty: float | None, normalization: Normalization | None
) -> None:
    """Raise a ConfigError where an alpha is given for what has none."""
    if length_penalty is not None and normalization not in (None, Normalization.gnmt):
        raise ConfigError(
            f"--length-penalty is the alpha of gnmt, and --length-normalization {normalization} "
            "has none; leave one of them out"
        )
