"""`nmt report`: one HTML file about a run."""

import sys
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.lines.streams import STDOUT, check_output_is_no_input, open_output
from nmt.cli.options.model import CheckpointOption, DeviceOption
from nmt.cli.options.test_set import text_files
from nmt.cli.plot import ModelOption

if TYPE_CHECKING:
    from nmt.report.run_report import ReportOptions


class TestSet(StrEnum):
    """The set of the run that is translated and scored."""

    __test__ = False  # not a test of pytest

    test = "test"
    validation = "validation"


def report(
    model: ModelOption,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", dir_okay=False, help="[default: RUN/report.html]"
        ),
    ] = None,
    test_set: Annotated[
        TestSet | None,
        typer.Option(help="The set to translate and score.  [default: test, else validation]"),
    ] = None,
    sentences: Annotated[
        int | None,
        typer.Option(
            min=0, metavar="N", help="Translate the first N of the set; 0: none.  [default: all]"
        ),
    ] = None,
    sentence: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="Show the attention of this text; may be repeated."),
    ] = None,
    checkpoint: CheckpointOption = "best",
    device: DeviceOption = "auto",
) -> None:
    """Write one HTML file about a run: curves, data, scores, translations and attention.

    The file needs no network and no other file. It says what is missing.
    """
    from nmt.config_file import load_config
    from nmt.report.run_report import ReportOptions
    from nmt.run_directory import find_run

    run = find_run(Path(model))
    path = output or run.path / "report.html"
    inputs = [run.config, run.metrics, run.environment]
    check_output_is_no_input(path, [*inputs, *text_files(load_config(str(run.config)).data)])
    chosen = ReportOptions(checkpoint, test_set and test_set.value, sentences, sentence or [])
    _write(path, Path(model), chosen, device)
    if str(path) not in STDOUT:
        typer.echo(path)


def _write(path: Path, model: Path, options: "ReportOptions", device: str) -> None:
    """Write the report, with a progress bar on a terminal."""
    from tqdm import tqdm

    from nmt.device import pick_device
    from nmt.report.run_report import write_report

    with suppress(OSError):  # open_output reports it
        path.parent.mkdir(parents=True, exist_ok=True)
    with open_output(path) as sink, tqdm(unit=" lines", disable=None, leave=False) as bar:

        def progress(more: int, total: int) -> None:
            bar.total = total
            bar.update(more)

        def log(message: str) -> None:
            tqdm.write(message, file=sys.stderr)

        text = write_report(model, options, pick_device(device), log, progress)
        sink.write(text.encode("utf-8"))
