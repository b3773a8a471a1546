"""`nmt translate`: raw text in, raw text out, a line for a line."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from nmt.cli.model_options import (
    BatchTokensOption,
    BeamSizeOption,
    CheckpointOption,
    Device,
    DeviceOption,
    LengthPenaltyOption,
    ModelOption,
    Precision,
    PrecisionOption,
    load_translator,
)
from nmt.cli.streams import STDIN, count_lines, open_lines, open_output, warn


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
