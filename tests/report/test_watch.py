"""The table of a run that goes on elsewhere: only what is whole, and never more than is known."""

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from nmt.errors import DataError
from nmt.files import write_json
from nmt.recipe.config import Config
from nmt.report.watch import SPARK_WIDTH, duration, read_progress, render_progress, spark_line
from nmt.run.directory import RunDirectory
from tests.report.conftest import training, validation, write_metrics

THIS_PROCESS = f"process {os.getpid()} on {socket.gethostname()}"


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    directory = RunDirectory(tmp_path / "run")
    directory.checkpoints.mkdir(parents=True)
    settings = {"data": {"corpus": "demo"}, "training": {"max_steps": 400}}
    directory.write_config(Config.model_validate(settings))
    return directory


def train(step: int, loss: float = 3.0) -> dict[str, Any]:
    return training(step, loss, tokens_per_second=1234.5, seconds=step / 2)


def rows(run: RunDirectory) -> dict[str, list[str]]:
    lines = render_progress(read_progress(run)).splitlines()[1:]
    return {line[2:22].strip(): line[22:].split() for line in lines}


def test_every_figure_is_the_last_one_and_lines_are_cut_off(run: RunDirectory) -> None:
    trained = train(50, loss=4.0), train(100)
    write_metrics(run.metrics, *trained, validation(50, 2.5, 12.5), validation(100, 2.5, 11.0))
    table = rows(run)
    assert table["step"][:3] == ["100", "of", "400"]
    assert table["training objective"] == ["3.000", "█▁"]
    assert table["validation loss"][0] == "2.500"
    assert table["validation BLEU"] == ["11.00", "█▁"]
    assert table["its best"] == ["12.50", "step", "50"]
    assert table["tokens per second"][0] in ("1,234", "1,235")
    assert table["trained for"] == ["50", "s"]
    assert table["time left"][:2] == ["2.5", "min"]
    assert all(len(line) <= 30 for line in render_progress(read_progress(run), 30).splitlines())


def test_only_whole_records_are_shown(run: RunDirectory) -> None:
    assert render_progress(read_progress(run)).endswith("nothing is recorded yet")
    write_metrics(run.metrics, tail='{"ev')
    assert render_progress(read_progress(run)).endswith("nothing is recorded yet")
    write_metrics(run.metrics, train(50), tail='{"event": "train", "st')
    assert rows(run)["step"][0] == "50"
    back = {"event": "roll_back", "step": 50, "to": 20}  # without figures
    write_metrics(run.metrics, back, {"step": None}, {"event": "train"})
    assert list(rows(run)) == ["state", "step"]
    write_metrics(run.metrics, tail="nonsense\n")
    with pytest.raises(DataError, match=r"metrics\.jsonl:1: not a metrics record"):
        read_progress(run)


def state(run: RunDirectory, process: str = "") -> str:
    """What is said of the run while this process holds its lock."""
    (run.path / ".lock").write_text(process, "utf-8")
    return " ".join(rows(run)["state"])


def test_a_model_of_several_languages_is_not_one_of_the_first(run: RunDirectory) -> None:
    texts = [
        {"source": "a", "target": "b", "languages": ["en", language], "tags": [language]}
        for language in ("de", "fr")
    ]
    run.write_config(Config.model_validate({"data": {"train": texts}}))
    first_line = render_progress(read_progress(run), width=1000).split("\n")[0]
    assert first_line.endswith("en → mul")


def test_it_says_who_trains_it(run: RunDirectory) -> None:
    dead = f"process {2**22 + 1} on {socket.gethostname()}"  # beyond the largest process number
    assert state(run, "") == state(run, dead) == "no process is training it"
    for process in (THIS_PROCESS, "process 7 on another-host"):
        assert state(run, process) == process


@pytest.mark.parametrize(
    ("chosen", "steps", "living", "finished"),
    [
        (400, 400, True, True),
        (400, 400, False, True),
        (200, 200, False, True),  # stopped early
        (200, 200, True, False),  # goes on after another end
        (200, 250, False, False),
        (None, 400, True, False),  # its best weights are still being chosen
        ("many", 400, False, False),
    ],
)
def test_a_run_is_finished_once_its_best_weights_are_chosen(
    run: RunDirectory, chosen: Any, steps: int, living: bool, finished: bool
) -> None:
    write_metrics(run.metrics, train(steps))
    write_json(run.best, {"trained_steps": chosen} if chosen else {"weights": "averaged"})
    assert (state(run, THIS_PROCESS if living else "") == "finished") is finished
    assert read_progress(run).finished is finished


def test_a_spark_line_goes_from_the_lowest_to_the_highest() -> None:
    assert spark_line([0, 1, 2, 3, 4, 5, 6, 7]) == "▁▂▃▄▅▆▇█"
    assert spark_line([5.0, 5.0]) == "▁▁"
    assert spark_line([]) == ""
    assert spark_line([3, 1, 1, 3], width=2) == "▁▁"
    assert len(spark_line(list(range(1000)))) == SPARK_WIDTH


def test_durations_have_at_most_two_numbers() -> None:
    seconds = [0, 59.4, 59.6, 90, 599.9, 3570, 5400, 180_000]
    words = "0 s, 59 s, 1.0 min, 1.5 min, 10 min, 1 h 00 min, 1 h 30 min, 2 d 2 h"
    assert ", ".join(map(duration, seconds)) == words
