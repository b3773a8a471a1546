"""`nmt report`: one HTML file that shows a run."""

import sys
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from nmt.cli.lines.streams import STDOUT, open_output
from nmt.cli.options.model import CheckpointOption, DeviceOption
from nmt.cli.plot import ModelOption


class TestSet(StrEnum):
    """Which of the run's own sets is translated and scored."""

    __test__ = False  # no test of pytest

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
        typer.Option(
            help="The set that is translated and scored.  [default: test, else validation]"
        ),
    ] = None,
    sentences: Annotated[
        int | None,
        typer.Option(
            min=0, metavar="N", help="Translate the first N of the set; 0: none.  [default: all]"
        ),
    ] = None,
    sentence: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="Show its attention; may be given several times."),
    ] = None,
    checkpoint: CheckpointOption = "best",
    device: DeviceOption = "auto",
) -> None:
    """Write one HTML file about a run: curves, data, scores, translations and attention.

    It needs no network and nothing beside it. What is not there is said in its place.
    """
    from tqdm import tqdm

    from nmt.device import pick_device
    from nmt.report.run_report import Wishes, write_report
    from nmt.run_directory import find_run

    path = output or find_run(Path(model)).path / "report.html"
    with suppress(OSError):  # which is told in a moment
        path.parent.mkdir(parents=True, exist_ok=True)
    wishes = Wishes(checkpoint, test_set and test_set.value, sentences, sentence or [])
    with open_output(path) as sink, tqdm(unit=" lines", disable=None, leave=False) as bar:

        def progress(more: int, total: int) -> None:
            bar.total = total
            bar.update(more)

        def log(message: str) -> None:
            tqdm.write(message, file=sys.stderr)

        text = write_report(Path(model), wishes, pick_device(device), log, progress)
        sink.write(text.encode("utf-8"))
    if str(path) not in STDOUT:
        typer.echo(path)
