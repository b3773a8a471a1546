"""The data behind the learning curves, and the picture itself."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.errors import DataError
from nmt.report.curves import Curve, plot_loss, read_curves, read_metrics, running_mean


def write(path: Path, *records: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
    return path


def training(step: int, loss: float) -> dict[str, Any]:
    return {"event": "train", "step": step, "epoch": 0.5, "loss": loss, "learning_rate": 1e-4}


def validation(step: int, loss: float, bleu: float | None) -> dict[str, Any]:
    return {"event": "validation", "step": step, "loss": loss, "bleu": bleu}


def test_records_are_grouped_into_curves(tmp_path: Path) -> None:
    curves = read_curves(
        write(
            tmp_path / "metrics.jsonl",
            training(10, 8.0),
            training(20, 6.0),
            validation(20, 5.5, None),
            training(30, 5.0),
            validation(40, 5.0, 12.5),
        )
    )
    assert curves.training == Curve((10, 20, 30), (8.0, 6.0, 5.0))
    assert curves.validation == Curve((20, 40), (5.5, 5.0))
    assert curves.quality == Curve((40,), (12.5,))


def test_a_step_recorded_twice_counts_once_and_steps_ascend(tmp_path: Path) -> None:
    path = write(tmp_path / "m", training(20, 6.0), training(10, 8.0), training(20, 5.0))
    assert read_curves(path).training == Curve((10, 20), (8.0, 5.0))


def test_losses_that_are_no_numbers_are_left_out(tmp_path: Path) -> None:
    records = [training(10, float("nan")), training(20, float("inf")), training(30, 2.0)]
    path = write(tmp_path / "m", *records, {"event": "train", "step": 40}, {"event": "note"})
    assert read_curves(path).training == Curve((30,), (2.0,))


def test_a_line_still_being_written_is_left_out(tmp_path: Path) -> None:
    path = write(tmp_path / "m", training(10, 8.0))
    with path.open("a") as file:
        file.write('{"event": "train", "st')
    assert len(read_metrics(path)) == 1


def test_a_missing_file_is_one_clear_sentence(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"m\.jsonl: no metrics here; give the directory of a run"):
        read_curves(tmp_path / "m.jsonl")


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read: "):
        read_metrics(tmp_path)


@pytest.mark.parametrize("text", ["", "\n", '{"event": "start", "step": 0}\n'])
def test_a_file_without_losses_says_so(tmp_path: Path, text: str) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text(text)
    with pytest.raises(DataError, match=r"no losses recorded yet; let the run train"):
        read_curves(path)


@pytest.mark.parametrize("line", ["{broken", "[1, 2]", "\x00", "[" * 100_000])
def test_a_broken_line_is_named(tmp_path: Path, line: str) -> None:
    path = write(tmp_path / "metrics.jsonl", training(10, 8.0))
    with path.open("a") as file:
        file.write(line + "\n")
    with pytest.raises(DataError, match=r"metrics\.jsonl:2: not a metrics record"):
        read_metrics(path)


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30),
    st.integers(0, 20).map(lambda n: 2 * n + 1),
)
def test_running_mean_is_the_mean_of_its_window(values: list[float], window: int) -> None:
    means = running_mean(values, window)
    assert len(means) == len(values)
    for position, mean in enumerate(means):
        before = min(window // 2, position)
        part = values[position - before : position + before + 1]
        assert np.isclose(mean, np.mean(part), atol=1e-6)


def test_running_mean_of_window_one_changes_nothing() -> None:
    assert running_mean([3.0, 1.0, 2.0], 1) == [3.0, 1.0, 2.0]


@pytest.mark.parametrize(
    "records",
    [
        [training(1, 8.0)],
        [validation(5, 7.0, None)],
        [training(1, 8.0), validation(1, 7.0, 0.0)],
        [training(s, 9 / s) for s in range(1, 200)] + [validation(s, 1.0, s) for s in (9, 99)],
    ],
    ids=["one record", "validation alone", "untrained", "a run"],
)
def test_curves_are_drawn_from_any_start_of_a_run(
    tmp_path: Path, records: list[dict[str, Any]]
) -> None:
    paths = plot_loss(write(tmp_path / "m.jsonl", *records), tmp_path / "loss")
    assert [path.name for path in paths] == ["loss.png", "loss.svg"]
    assert all(path.stat().st_size > 1000 for path in paths)
