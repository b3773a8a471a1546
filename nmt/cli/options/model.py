"""The options of every command that uses a model, and the model they ask for."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.options.search import SearchOptions
from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.search.sampling import Sampling
    from nmt.translation.scoring import Scorer
    from nmt.translation.translator import Translator


class Precision(StrEnum):
    """The number format to compute in."""

    auto = "auto"
    fp32 = "fp32"
    bf16 = "bf16"
    int8 = "int8"


ModelOption = typer.Option(
    "--model",
    "-m",
    metavar="RUN",
    help="Run directory or checkpoint. Several of them translate together, as an ensemble.",
)
ModelsOption = Annotated[list[str], ModelOption]
CheckpointOption = Annotated[
    str,
    typer.Option(
        help="The weights of the run to use: best, last, averaged, moving-average or step-N."
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


@dataclass(frozen=True)
class ComputeOptions:
    """Which weights of a run to use, where, and in which number format."""

    checkpoint: CheckpointOption = "best"
    device: DeviceOption = "auto"
    precision: Annotated[
        Precision,
        typer.Option(
            help="auto is bf16 if the processor supports it, else fp32. int8 is for processors "
            "without bf16. Both are faster than fp32, and their translations differ slightly."
        ),
    ] = Precision.auto


EXACT = ComputeOptions(precision=Precision.fp32)
"""the defaults of commands whose figures are compared with those of other machines"""


def load_translator(
    models: Sequence[str],
    compute: ComputeOptions,
    search: SearchOptions,
    sampling: "Sampling | None" = None,
) -> "Translator":
    """Load models; the options given replace the settings of the first one's configuration.

    Raises:
        CheckpointError: one of the models has no usable weights.
        ConfigError: vocabularies that differ, a missing shortlist, or options that exclude each
            other.
    """
    from nmt.device import tune_memory
    from nmt.translation import text_translator

    if search.shortlist and sampling:
        raise ConfigError("--sample draws from the whole vocabulary; leave out --shortlist")
    tune_memory()
    translator = text_translator.load_translator(
        models,
        compute.checkpoint,
        compute.device,
        compute.precision.value,
        search.settings(),
        sampling,
        search.shortlist,
    )
    search.check_alpha(translator.settings.length_normalization)
    return translator


def load_scorer(
    models: Sequence[str], compute: ComputeOptions, batch_tokens: int | None
) -> "Scorer":
    """Load models to score translations with.

    Raises:
        CheckpointError: one of the models has no usable weights.
        ConfigError: vocabularies that differ, or int8, which does not compute scores.
    """
    from nmt.translation.scoring import Scorer

    if compute.precision is Precision.int8:
        raise ConfigError(
            "--precision int8 is for translating; score in fp32 or bf16, or leave it out"
        )
    loaded = load_translator(models, compute, SearchOptions(batch_tokens=batch_tokens))
    return Scorer(loaded.run, loaded.settings.batch_tokens, loaded.precision)
