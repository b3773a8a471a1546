"""`nmt translate`: raw text in, raw text out, a line for a line."""

import json
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from nmt.cli.candidate_options import (
    AlignmentsOption,
    CandidatesOption,
    MbrOption,
    alignment_column,
    as_record,
    refuse_needless_candidates,
    with_choices,
)
from nmt.cli.model_options import (
    BatchTokensOption,
    BeamSizeOption,
    CheckpointOption,
    Device,
    DeviceOption,
    LengthPenaltyOption,
    MinLengthOption,
    ModelsOption,
    NoRepeatNgramOption,
    NormalizationOption,
    Precision,
    PrecisionOption,
    SampleOption,
    SeedOption,
    TemperatureOption,
    TopKOption,
    TopPOption,
    load_translator,
    refuse_needless_alpha,
)
from nmt.cli.streams import STDIN, count_lines, open_lines, open_output, warn
from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.decoding.aligner import AligningTranslator
    from nmt.decoding.minimum_bayes_risk import BayesRiskTranslator
    from nmt.decoding.translator import Translation, Translator

FileArgument = Annotated[
    Path | None, typer.Argument(metavar="FILE", help="Text to translate; stdin by default.")
]
OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Where to write; stdout by default."),
]
NBestOption = Annotated[
    int,
    typer.Option(
        min=1, help="So many translations of each line, as `line number ||| text ||| score`."
    ),
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="A JSON object a line: source and translations.")
]


def translate(
    model: ModelsOption,
    file: FileArgument = None,
    output: OutputOption = None,
    checkpoint: CheckpointOption = "best",
    beam_size: BeamSizeOption = None,
    length_penalty: LengthPenaltyOption = None,
    batch_tokens: BatchTokensOption = None,
    normalization: NormalizationOption = None,
    min_length: MinLengthOption = None,
    no_repeat_ngram: NoRepeatNgramOption = None,
    n_best: NBestOption = 1,
    as_json: JsonOption = False,
    sample: SampleOption = False,
    temperature: TemperatureOption = 1.0,
    top_k: TopKOption = None,
    top_p: TopPOption = None,
    seed: SeedOption = 1,
    mbr: MbrOption = None,
    candidates: CandidatesOption = None,
    alignments: AlignmentsOption = False,
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
    refuse_needless_alpha(length_penalty, normalization)
    refuse_needless_candidates(mbr, candidates)
    with open_lines(file) as lines, open_output(output) as sink:
        from nmt.decoding.sampling import Sampling

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
        chosen = with_choices(translator, mbr, candidates, alignments)
        _translate_lines(chosen, lines, sink, file, n_best, as_json)


def _translate_lines(
    translator: "Translator | BayesRiskTranslator | AligningTranslator",
    lines: Iterable[str],
    sink: BinaryIO,
    file: Path | None,
    n_best: int,
    as_json: bool,
) -> None:
    """Put out what each line of `file` or stdin becomes, at once where somebody types."""
    from tqdm import tqdm

    from nmt.decoding.windows import WINDOW_LINES

    from_stdin = file is None or str(file) in STDIN
    typed = from_stdin and sys.stdin.isatty()
    show = not from_stdin and sys.stderr.isatty()
    total = count_lines(file) if show else None
    with tqdm(total=total, unit=" lines", disable=not show) as bar:
        sources: deque[str] = deque()  # read, and not yet written
        window_lines = 1 if typed else WINDOW_LINES
        found = translator.alternatives(
            _noted(lines, sources), n_best, window_lines, warn, bar.update
        )
        for number, translations in enumerate(found, start=1):
            text = _written(number, sources.popleft(), translations, n_best, as_json)
            sink.write(text.encode("utf-8") + b"\n")
            if typed:
                sink.flush()


def _noted(lines: Iterable[str], notes: deque[str]) -> Iterator[str]:
    for line in lines:
        notes.append(line)
        yield line


def _written(
    number: int, source: str, translations: "list[Translation]", n_best: int, as_json: bool
) -> str:
    """What is put out for a line: its translation, a list of several, or a JSON object."""
    if as_json:
        found = [as_record(translation) for translation in translations]
        return json.dumps({"source": source, "translations": found}, ensure_ascii=False)
    if n_best > 1:
        return "\n".join(
            f"{number} ||| {t.text} ||| {t.score:.4f}{alignment_column(t, ' ||| ')}"
            for t in translations
        )
    return translations[0].text + alignment_column(translations[0], "\t")
