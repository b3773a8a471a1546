"""The options of every command that uses a model, and the model they ask for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from nmt.cli.options.search import SearchOptions
from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.search.sampling import Sampling
    from nmt.translation.translator import Translator


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
    """auto is bf16 if the processor supports it, else fp32. int8 is for processors without bf16.
    Both are faster than fp32, and their translations differ slightly."""


EXACT = ComputeOptions(precision="fp32")
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
        compute.precision,
        search.settings(),
        sampling,
        search.shortlist,
    )
    normalization = translator.settings.length_normalization
    if search.length_penalty is not None and normalization != "gnmt":
        raise ConfigError(
            "--length-penalty is the alpha of gnmt, and the run's length_normalization is "
            f"{normalization}; leave it out"
        )
    return translator
