"""The options of every command that translates, and the model they ask for."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from nmt.decoding.sampling import Sampling
    from nmt.decoding.translator import Translator


class Device(StrEnum):
    """Where to compute."""

    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"


class Precision(StrEnum):
    """How precisely to compute matrix products."""

    fp32 = "fp32"
    bf16 = "bf16"


ModelOption = typer.Option("--model", "-m", metavar="RUN", help="Run directory or checkpoint.")
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
BatchTokensOption = Annotated[
    int | None,
    typer.Option(min=1, help="Padded source tokens translated at once.  [default: the run's]"),
]
DeviceOption = Annotated[Device, typer.Option(help="Where to compute.")]
PrecisionOption = Annotated[
    Precision, typer.Option(help="bf16: faster matrix products, slightly other translations.")
]


def load_translator(
    model: str,
    checkpoint: str,
    device: Device,
    precision: Precision,
    sampling: "Sampling | None" = None,
    **given: int | float | str | None,
) -> "Translator":
    """Load a run's weights; settings given here, None aside, replace those of its configuration.

    Raises:
        CheckpointError: `model` holds no usable weights.
    """
    from nmt.decoding.translator import Translator
    from nmt.device import pick_device, tune_memory
    from nmt.run_directory import load_run

    tune_memory()
    run = load_run(model, pick_device(device.value), checkpoint)
    changes = {name: value for name, value in given.items() if value is not None}
    settings = run.config.decoding.model_copy(update=changes)
    return Translator(run, settings, precision.value, sampling)
