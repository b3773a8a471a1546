"""`nmt translate`: raw text in, raw text out, a line for a line."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from nmt.cli.lines.line_translation import LineInput, translate_lines
from nmt.cli.lines.partial_output import check_inputs_remain, is_complete, open_windows
from nmt.cli.lines.streams import log, open_lines
from nmt.cli.options.groups import with_option_groups
from nmt.cli.options.model import (
    AllSearchOptions,
    ComputeOptions,
    ModelsOption,
    SamplingOptions,
    load_translator,
)
from nmt.cli.options.translation import JobOptions, OutputOptions, TerminologyOptions

if TYPE_CHECKING:
    from nmt.translation.line import Terminology
    from nmt.translation.translator import Translator

# options that change no translation, or that a digest or a setting of the search represents
NOT_COMPARED = {
    *("model", "checkpoint", "file", "output", "resume", "device", "workers"),
    *("glossary", "forbid", "forbid_file"),
}


@with_option_groups
def translate(
    context: typer.Context,
    model: ModelsOption,
    search: AllSearchOptions,
    sampling: SamplingOptions,
    options: OutputOptions,
    terms: TerminologyOptions,
    compute: ComputeOptions,
    job: JobOptions,
) -> None:
    """Translate text line by line; typed lines are translated at once, and Ctrl-D ends."""
    file, output = job.file, job.output
    check_inputs_remain(output, [file or Path("-"), terms.glossary, terms.forbid_file])
    terminology = terms.terminology()
    if job.resume and is_complete(file, output):
        log(
            f"{output} is complete, so nothing is left to do; leave out --resume to translate it "
            "again"
        )
        return
    with open_lines(file) as lines, open_windows(file, output, job.resume) as sink:
        translator = load_translator(model, compute, search, sampling.sampling())
        processes = job.processes(translator.searcher.device.type)
        request = options.request(translator, terminology)
        with translator.pipeline(request, processes) as pipeline:
            _ = translator.searcher.model  # what fails does so before an output is replaced
            done = sink.begin(lines, lambda: _settings(translator, terminology, context.params))
            translate_lines(pipeline, LineInput(file, lines, options, done), sink)


def _settings(
    translator: "Translator", terminology: "Terminology", options: Mapping[str, object]
) -> dict[str, object]:
    """Everything that decides what a line becomes: weights and settings."""
    from nmt.checkpoint import weights_digest

    precision = translator.precision  # not "auto", which differs from machine to machine
    search = translator.settings.model_dump()
    not_compared = {*NOT_COMPARED, *search, "precision"}
    others = {name: value for name, value in options.items() if name not in not_compared}
    if precision != "int8" and not translator.shortlist:
        # With either of them, the other lines of a batch have an influence.
        del search["batch_tokens"]
    if translator.shortlist:
        others["shortlist"] = translator.shortlist.digest
    weights = weights_digest(translator.run.model)[:16]
    asked = terminology.digest
    return {"weights": weights, "precision": precision, "terminology": asked, **search, **others}
