"""Learning curves, schedule and positional encoding: the data of the plots, and the files."""

from pathlib import Path
from typing import Any

import pytest

from nmt.errors import ConfigError, DataError
from nmt.report.metrics_log import Curve
from nmt.report.plots import plot_loss, plot_positions, read_curves
from tests.report.records import training, validation, write_metrics


def test_records_are_grouped_into_curves(tmp_path: Path) -> None:
    curves = read_curves(
        write_metrics(
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


def test_a_step_counts_once_steps_ascend_and_losses_are_finite(tmp_path: Path) -> None:
    records = [training(step, loss) for step, loss in ((20, 6.0), (10, 8.0), (20, 5.0))]
    records += [training(30, float("nan")), training(40, float("inf"))]
    records += [{"event": "train", "step": 50}, {"event": "note"}]
    path = write_metrics(tmp_path / "m", *records)
    assert read_curves(path).training == Curve((10, 20), (8.0, 5.0))


@pytest.mark.parametrize("text", ["", "\n", '{"event": "start", "step": 0}\n'])
def test_a_file_without_losses_is_an_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text(text)
    with pytest.raises(DataError, match=r"no losses recorded yet; let the run train"):
        read_curves(path)


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
def test_curves_are_drawn_from_any_part_of_a_run(
    tmp_path: Path, records: list[dict[str, Any]]
) -> None:
    paths = plot_loss(write_metrics(tmp_path / "m.jsonl", *records), tmp_path / "loss")
    assert [path.name for path in paths] == ["loss.png", "loss.svg"]
    assert all(path.stat().st_size > 1000 for path in paths)


def test_the_axes_of_the_positional_encoding_are_labelled(tmp_path: Path) -> None:
    png, svg = plot_positions(12, 6, tmp_path / "positions")
    text = svg.read_text("utf-8")
    assert all(f"<!-- {label}" in text for label in ("position", "dimension", "PE(position"))
    assert png.stat().st_size > 1000


def test_an_odd_number_of_dimensions_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--d-model 7: expected an even number"):
        plot_positions(12, 7, tmp_path / "positions")
    assert not list(tmp_path.iterdir())
