"""`nmt translate`: raw text in, raw text out, a line for a line."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.streams import STDIN, count_lines, open_lines, open_output, warn

if TYPE_CHECKING:
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
    str, typer.Option(help="Which weights of the run: best, last, averaged or step-N.")
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
    beam_size: int | None,
    length_penalty: float | None,
    batch_tokens: int | None,
) -> "Translator":
    """Load a run's weights; the settings given here replace those of its configuration.

    Raises:
        CheckpointError: `model` holds no usable weights.
    """
    from nmt.decoding.translator import Translator
    from nmt.device import pick_device, tune_memory
    from nmt.run_directory import load_run

    tune_memory()
    run = load_run(model, pick_device(device.value), checkpoint)
    given = {
        "beam_size": beam_size,
        "length_penalty": length_penalty,
        "batch_tokens": batch_tokens,
    }
    changes = {name: value for name, value in given.items() if value is not None}
    return Translator(run, run.config.decoding.model_copy(update=changes), precision.value)


def translate(
    model: Annotated[str, ModelOption],
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="Text to translate; stdin by default.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to write; stdout by default."),
    ] = None,
    checkpoint: CheckpointOption = "best",
    beam_size: BeamSizeOption = None,
    length_penalty: LengthPenaltyOption = None,
    batch_tokens: BatchTokensOption = None,
    device: DeviceOption = Device.auto,
    precision: PrecisionOption = Precision.fp32,
) -> None:
    """Translate text, one sentence a line: line n of the output translates line n of the input.

    Typed at a terminal, each line is answered at once; Ctrl-D ends.
    """
    with open_lines(file) as lines, open_output(output) as sink:
        from tqdm import tqdm

        from nmt.decoding.translator import WINDOW_LINES

        from_stdin = file is None or str(file) in STDIN
        typed = from_stdin and sys.stdin.isatty()
        translator = load_translator(
            model, checkpoint, device, precision, beam_size, length_penalty, batch_tokens
        )
        show = not from_stdin and sys.stderr.isatty()
        total = count_lines(file) if show else None
        with tqdm(total=total, unit=" lines", disable=not show) as bar:
            window_lines = 1 if typed else WINDOW_LINES
            for translation in translator.translate(lines, window_lines, warn, bar.update):
                sink.write(translation.text.encode("utf-8") + b"\n")
                if typed:
                    sink.flush()
