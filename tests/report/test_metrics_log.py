"""Reading metrics.jsonl, and smoothing curves."""

from pathlib import Path

import numpy as np
import pytest

from nmt.errors import DataError
from nmt.report.metrics_log import curve, evenly_spaced, read_metrics, running_mean
from tests.report.records import training, validation, write_metrics


def test_a_line_without_a_newline_is_ignored(tmp_path: Path) -> None:
    path = write_metrics(tmp_path / "m", training(10, 8.0), tail='{"event": "train", "st')
    assert len(read_metrics(path)) == 1


@pytest.mark.parametrize("line", ["{broken", "[1, 2]", "\x00", "[" * 100_000])
def test_a_broken_line_is_named(tmp_path: Path, line: str) -> None:
    path = write_metrics(tmp_path / "metrics.jsonl", training(10, 8.0), tail=f"{line}\n")
    with pytest.raises(DataError, match=r"metrics\.jsonl:2: not a metrics record"):
        read_metrics(path)


def test_a_missing_and_an_unreadable_file_are_errors(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"m\.jsonl: no metrics here; give the directory of a run"):
        read_metrics(tmp_path / "m.jsonl")
    with pytest.raises(DataError, match="cannot be read: "):
        read_metrics(tmp_path)


def test_a_step_counts_once_steps_ascend_and_values_are_finite() -> None:
    records = [training(step, loss) for step, loss in ((20, 6.0), (10, 8.0), (20, 5.0))]
    records += [training(30, float("nan")), training(40, float("inf")), validation(60, 7.0, None)]
    records += [{"event": "train", "step": 50}, {"event": "note"}]
    assert curve(records, "train", "loss") == {10: 8.0, 20: 5.0}
    assert curve(records, "validation", "loss") == {60: 7.0}
    assert curve(records, "validation", "bleu") == {}


@pytest.mark.parametrize("count", [1, 3, 39, 40, 120])
def test_each_mean_covers_a_20th_of_the_curve_and_is_symmetric_at_its_start(count: int) -> None:
    values = np.random.default_rng(count).normal(size=count)
    means = running_mean(dict(enumerate(values))).values()
    for position, mean in enumerate(means):
        before = min(count // 40, position)
        assert mean == pytest.approx(values[position - before : position + before + 1].mean())


@pytest.mark.parametrize("count", [0, 1, 7, 8, 100])
def test_evenly_spaced_numbers_keep_both_ends(count: int) -> None:
    chosen = evenly_spaced(count, 7)
    assert len(chosen) == min(count, 7) and chosen == sorted(set(chosen))
    assert not chosen or (chosen[0], chosen[-1]) == (0, count - 1)
