"""`nmt translate`: raw text in, raw text out, a line for a line."""

import json
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.decoding.translator import Translation


class Normalization(StrEnum):
    """What log P is divided by."""

    gnmt = "gnmt"
    average = "average"
    none = "none"


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
    normalization: Annotated[
        Normalization | None,
        typer.Option(
            "--length-normalization",
            help="What log P is divided by: gnmt ((5 + length) / 6)^alpha, average (the length) or "
            "none.  [default: the run's]",
        ),
    ] = None,
    min_length: Annotated[
        int | None, typer.Option(min=0, help="The fewest tokens.  [default: the run's]")
    ] = None,
    no_repeat_ngram: Annotated[
        int | None,
        typer.Option(min=0, help="No sequence of so many tokens twice.  [default: the run's]"),
    ] = None,
    n_best: Annotated[
        int,
        typer.Option(
            min=1, help="So many translations of each line, as `line number ||| text ||| score`."
        ),
    ] = 1,
    as_json: Annotated[
        bool, typer.Option("--json", help="A JSON object a line: source and translations.")
    ] = False,
    sample: Annotated[
        bool, typer.Option("--sample", help="Draw translations at random, without a beam.")
    ] = False,
    temperature: Annotated[
        float, typer.Option(min=1e-3, help="Of --sample: below 1, what is probable more so.")
    ] = 1.0,
    top_k: Annotated[
        int | None, typer.Option(min=1, help="Of --sample: among so many tokens.")
    ] = None,
    top_p: Annotated[
        float | None,
        typer.Option(min=1e-3, max=1, help="Of --sample: among tokens of so much probability."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of --sample: which draw.")] = 1,
    device: DeviceOption = Device.auto,
    precision: PrecisionOption = Precision.fp32,
) -> None:
    """Translate text, one sentence a line: line n of the output translates line n of the input.

    Typed at a terminal, each line is answered at once; Ctrl-D ends.
    """
    if not sample and (temperature, top_k, top_p, seed) != (1.0, None, None, 1):
        raise ConfigError(
            "--temperature, --top-k, --top-p and --seed say how --sample draws; "
            "add --sample, or leave them out"
        )
    if length_penalty is not None and normalization not in (None, Normalization.gnmt):
        raise ConfigError(
            f"--length-penalty is the alpha of gnmt, and --length-normalization {normalization} "
            "has none; leave one of them out"
        )
    with open_lines(file) as lines, open_output(output) as sink:
        from tqdm import tqdm

        from nmt.decoding.sampling import Sampling
        from nmt.decoding.translator import WINDOW_LINES

        from_stdin = file is None or str(file) in STDIN
        typed = from_stdin and sys.stdin.isatty()
        translator = load_translator(
            model,
            checkpoint,
            device,
            precision,
            Sampling(temperature, top_k, top_p, seed) if sample else None,
            beam_size=beam_size,
            length_penalty=length_penalty,
            length_normalization=normalization and normalization.value,
            min_length=min_length,
            no_repeat_ngram=no_repeat_ngram,
            batch_tokens=batch_tokens,
        )
        show = not from_stdin and sys.stderr.isatty()
        total = count_lines(file) if show else None
        with tqdm(total=total, unit=" lines", disable=not show) as bar:
            window_lines = 1 if typed else WINDOW_LINES
            sources: deque[str] = deque()  # read, and not yet written
            found = translator.alternatives(
                _noted(lines, sources), n_best, window_lines, warn, bar.update
            )
            for number, translations in enumerate(found, start=1):
                source = sources.popleft()
                if as_json:
                    text = _as_json(source, translations)
                elif n_best > 1:
                    text = "\n".join(
                        f"{number} ||| {t.text} ||| {t.score:.4f}" for t in translations
                    )
                else:
                    text = translations[0].text
                sink.write(text.encode("utf-8") + b"\n")
                if typed:
                    sink.flush()


def _noted(lines: Iterable[str], notes: deque[str]) -> Iterator[str]:
    for line in lines:
        notes.append(line)
        yield line


def _as_json(source: str, translations: "list[Translation]") -> str:
    found = [{"text": t.text, "score": round(t.score, 4)} for t in translations]
    return json.dumps({"source": source, "translations": found}, ensure_ascii=False)
