"""`nmt translate`: raw text in, raw text out, a line for a line."""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
from nmt.cli.json_lines import JsonInputOption, read_record, written_record
from nmt.cli.model_options import (
    BatchTokensOption,
    BeamSizeOption,
    CheckpointOption,
    Device,
    DeviceOption,
    DocumentOption,
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
    sampling_of,
)
from nmt.cli.partial_output import (
    ResumeOption,
    WindowOutput,
    is_complete,
    open_windows,
    refuse_to_resume,
)
from nmt.cli.streams import STDIN, count_lines, open_lines, warn
from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.decoding.document import LineTranslator
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
# options that change no translation, or that the settings of the search name otherwise
WITHOUT_EFFECT = {"model", "checkpoint", "file", "output", "resume", "device", "normalization"}


def translate(
    context: typer.Context,
    model: ModelsOption,
    file: FileArgument = None,
    output: OutputOption = None,
    resume: ResumeOption = False,
    document: DocumentOption = False,
    json_input: JsonInputOption = False,
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
    sampling = sampling_of(sample, temperature, top_k, top_p, seed)
    refuse_needless_alpha(length_penalty, normalization)
    refuse_needless_candidates(mbr, candidates)
    _refuse_paragraphs(document, n_best, alignments)
    if resume and _nothing_is_left(file, output):
        return
    with open_lines(file) as lines, open_windows(file, output, resume) as sink:
        translator = load_translator(
            model,
            checkpoint,
            device,
            precision,
            sampling,
            beam_size=beam_size,
            length_penalty=length_penalty,
            length_normalization=normalization and normalization.value,
            min_length=min_length,
            no_repeat_ngram=no_repeat_ngram,
            batch_tokens=batch_tokens,
        )
        chosen = with_choices(translator, mbr, candidates, alignments, document)
        done = sink.begin(lines, lambda: _settings(translator, context.params))
        _translate_lines(chosen, Form(json_input, as_json, n_best), lines, done, sink, file)


@dataclass(frozen=True)
class Form:
    """What a line of the input is, and what is put out for it."""

    json_input: bool
    as_json: bool
    n_best: int

    def read(self, line: str, where: str) -> dict[str, object]:
        """The text of a line under "source", beside what else it brings along."""
        return read_record(line, where) if self.json_input else {"source": line}

    def written(
        self, number: int, record: Mapping[str, object], translations: "list[Translation]"
    ) -> str:
        """What is put out for a line: its translation, a list of several, or a JSON object."""
        if self.as_json:
            found = [as_record(translation) for translation in translations]
            return written_record({**record, "translations": found})
        if self.n_best > 1:
            return "\n".join(
                f"{number} ||| {t.text} ||| {t.score:.4f}{alignment_column(t, ' ||| ')}"
                for t in translations
            )
        return translations[0].text + alignment_column(translations[0], "\t")


def _translate_lines(
    translator: "LineTranslator",
    form: Form,
    lines: Iterator[str],
    done: int,
    sink: WindowOutput,
    file: Path | None,
) -> None:
    """Put out what each line of `file` or stdin becomes, at once where somebody types.

    `done` lines before these are put out already.
    """
    from tqdm import tqdm

    from nmt.decoding import document, windows

    from_stdin = file is None or str(file) in STDIN
    typed = from_stdin and sys.stdin.isatty()
    show = not from_stdin and sys.stderr.isatty()
    total = count_lines(file) if show else None
    name = "stdin" if from_stdin else str(file)
    paragraphs = isinstance(translator, document.DocumentTranslator)
    window_lines = document.WINDOW_PARAGRAPHS if paragraphs else windows.WINDOW_LINES
    with tqdm(total=total, initial=done, unit=" lines", disable=not show) as bar:
        for window in windows.windows(lines, 1 if typed else window_lines, len):
            numbers = range(done + 1, done + 1 + len(window))
            records = [
                form.read(line, f"{name}:{number}")
                for number, line in zip(numbers, window, strict=True)
            ]
            texts = [str(record["source"]) for record in records]
            found = translator.alternatives(
                texts, form.n_best, len(texts), warn, bar.update, numbers[0]
            )
            rows = [form.written(*line) for line in zip(numbers, records, found, strict=True)]
            sink.write(window, "".join(f"{row}\n" for row in rows).encode("utf-8"))
            done += len(window)


def _settings(translator: "Translator", options: Mapping[str, object]) -> dict[str, object]:
    """Everything that decides what a line becomes: weights and settings."""
    from nmt.checkpoint import weights_digest

    search = translator.settings.model_dump()
    others = {
        name: value
        for name, value in options.items()
        if name not in WITHOUT_EFFECT and name not in search
    }
    return {"weights": weights_digest(translator.run.model)[:16], **search, **others}


def _nothing_is_left(file: Path | None, output: Path | None) -> bool:
    """Whether --resume finds the output complete, which it then says."""
    refuse_to_resume(file, output)
    if not is_complete(output):
        return False
    print(
        f"{output} is complete, so nothing is left to do; leave out --resume to translate anew",
        file=sys.stderr,
    )
    return True


def _refuse_paragraphs(document: bool, n_best: int, alignments: bool) -> None:
    if document and (n_best > 1 or alignments):
        raise ConfigError(
            "--document puts each line together from the best translations of its sentences, so "
            "it goes neither with --n-best nor with --alignments; leave them out"
        )
