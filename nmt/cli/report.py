"""`nmt report`: one HTML file about a run."""

import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from nmt.cli.lines.streams import STDOUT, check_output, open_output
from nmt.cli.options.groups import with_option_groups
from nmt.cli.options.model import OneModelOption, WeightsOptions
from nmt.cli.options.test_set import text_files

OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE", dir_okay=False, help="[default: RUN/report.html]"
    ),
]
TestSetOption = Annotated[
    Literal["test", "validation"] | None,
    typer.Option(help="The set to translate and score.  [default: test, else validation]"),
]
SentencesOption = Annotated[
    int | None,
    typer.Option(
        min=0, metavar="N", help="Translate the first N of the set; 0: none.  [default: all]"
    ),
]
SentenceOption = Annotated[
    list[str] | None,
    typer.Option(metavar="TEXT", help="Show the attention of this text; may be repeated."),
]


@with_option_groups
def report(
    *,
    model: OneModelOption,
    output: OutputOption = None,
    test_set: TestSetOption = None,
    sentences: SentencesOption = None,
    sentence: SentenceOption = None,
    weights: WeightsOptions,
) -> None:
    """Write one HTML file about a run.

    It shows curves, data, scores, translations and attention. The file needs no network and no
    other file. It says what is missing.
    """
    from tqdm import tqdm

    from nmt.machine.device import pick_device
    from nmt.report.run_report import ReportOptions, build_report
    from nmt.run.directory import find_run

    directory = find_run(Path(model))
    path = output or directory.path / "report.html"
    run_files = [directory.config, directory.metrics, directory.environment]
    texts = text_files(directory.config_with_texts().data)
    check_output(path, [*run_files, *texts])
    report_options = ReportOptions(
        weights.checkpoint, test_set, max_sentences=sentences, sentences=sentence
    )
    with suppress(OSError):  # open_output reports this error
        path.parent.mkdir(parents=True, exist_ok=True)
    with open_output(path) as sink, tqdm(unit=" lines", disable=None, leave=False) as bar:

        def progress(newly_translated: int, total: int) -> None:
            bar.total = total
            bar.update(newly_translated)

        log = partial(tqdm.write, file=sys.stderr)  # above the progress bar
        text = build_report(Path(model), report_options, pick_device(weights.device), log, progress)
        sink.write(text.encode("utf-8"))
    if str(path) not in STDOUT:  # if the page itself went to stdout, nothing else may stand there
        typer.echo(path)
