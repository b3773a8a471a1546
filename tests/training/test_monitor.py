"""What metrics.jsonl holds, also after a run was cut short."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from nmt.training.monitor import Monitor


@pytest.fixture
def monitor(tmp_path: Path) -> Monitor:
    return Monitor(tmp_path / "metrics.jsonl")


def records(monitor: Monitor) -> list[dict[str, Any]]:
    return [json.loads(line) for line in monitor.metrics.read_text("utf-8").splitlines()]


def with_steps(monitor: Monitor, *steps: int) -> None:
    for step in steps:
        monitor.count(loss=2.0, tokens=1)
        monitor.record_training(step, epoch=0.5, learning_rate=0.1)


def test_loss_is_the_mean_per_token_since_the_last_record(monitor: Monitor) -> None:
    monitor.count(loss=30.0, tokens=10)
    monitor.count(loss=10.0, tokens=30)
    monitor.record_training(step=2, epoch=0.123456, learning_rate=0.1)
    monitor.count(loss=6.0, tokens=2)
    monitor.record_training(step=3, epoch=0.2, learning_rate=0.2)
    first, second = records(monitor)
    assert (first["event"], first["step"], first["epoch"]) == ("train", 2, 0.1235)
    assert (first["loss"], first["target_tokens"], first["learning_rate"]) == (1.0, 40, 0.1)
    assert (second["loss"], second["target_tokens"], second["learning_rate"]) == (3.0, 42, 0.2)
    assert second["seconds"] >= first["seconds"] >= 0
    assert first["tokens_per_second"] > 0


def test_validation_is_recorded_and_told(
    monitor: Monitor, capsys: pytest.CaptureFixture[str]
) -> None:
    monitor.record_validation(1000, {"loss": math.log(8), "chrf": 12.345}, "all is well")
    (record,) = records(monitor)
    assert (record["event"], record["step"], record["chrf"]) == ("validation", 1000, 12.345)
    assert record["perplexity"] == pytest.approx(8)
    out, err = capsys.readouterr()
    assert out == ""
    assert "step 1,000" in err and "min: all is well, perplexity 8.00" in err


def test_a_hopeless_loss_has_a_finite_perplexity(monitor: Monitor) -> None:
    monitor.record_validation(1, {"loss": 5000.0}, "")
    assert math.isfinite(records(monitor)[0]["perplexity"])


def test_records_after_the_resumed_step_are_dropped(monitor: Monitor) -> None:
    with_steps(monitor, 10, 20, 30, 40)
    monitor.record_validation(40, {"loss": 1.0}, "")
    monitor.drop_records_after(20)
    assert [record["step"] for record in records(monitor)] == [10, 20]
    with_steps(monitor, 30)
    assert [record["step"] for record in records(monitor)] == [10, 20, 30]


@pytest.mark.parametrize("missing", [1, 2, 20])
def test_a_last_line_that_was_cut_is_dropped(monitor: Monitor, missing: int) -> None:
    with_steps(monitor, 10, 20, 30)
    text = monitor.metrics.read_text("utf-8")
    monitor.metrics.write_text(text[:-missing], "utf-8")
    monitor.drop_records_after(20)
    with_steps(monitor, 30)
    assert [record["step"] for record in records(monitor)] == [10, 20, 30]


@pytest.mark.parametrize("missing", [2, 20])
def test_a_cut_line_is_dropped_whatever_step_it_was_of(monitor: Monitor, missing: int) -> None:
    with_steps(monitor, 10, 20)
    text = monitor.metrics.read_text("utf-8")
    monitor.metrics.write_text(text[:-missing], "utf-8")
    monitor.drop_records_after(20)
    assert [record["step"] for record in records(monitor)] == [10]


def test_nothing_is_rewritten_where_nothing_is_dropped(monitor: Monitor) -> None:
    with_steps(monitor, 10, 20)
    before = monitor.metrics.stat().st_ino
    monitor.drop_records_after(20)
    assert monitor.metrics.stat().st_ino == before


def test_a_run_without_records_has_none_to_drop(monitor: Monitor) -> None:
    monitor.drop_records_after(0)
    assert not monitor.metrics.exists()


def test_state_carries_an_unfinished_mean_over_a_stop(monitor: Monitor, tmp_path: Path) -> None:
    with_steps(monitor, 10)
    monitor.count(loss=8.0, tokens=2)
    resumed = Monitor(tmp_path / "metrics.jsonl")
    resumed.load_state(json.loads(json.dumps(monitor.state())))
    resumed.drop_records_after(11)
    resumed.count(loss=1.0, tokens=1)
    resumed.record_training(12, epoch=1.0, learning_rate=0.1)
    last = records(resumed)[-1]
    assert (last["loss"], last["target_tokens"]) == (3.0, 4)


def test_paused_time_is_no_training_time(monitor: Monitor, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("nmt.training.monitor.time.perf_counter", lambda: now)
    monitor.open_bar(step=0, max_steps=10)
    now = 103.0
    monitor.count(loss=1.0, tokens=6)
    with monitor.paused():
        now = 150.0
    now = 152.0
    monitor.count(loss=1.0, tokens=4)
    monitor.close_bar()
    assert monitor.seconds == 5.0
    monitor.record_training(2, epoch=1.0, learning_rate=0.1)
    assert records(monitor)[0]["tokens_per_second"] == 2.0


def test_no_bar_is_drawn_where_there_is_no_terminal(
    monitor: Monitor, capsys: pytest.CaptureFixture[str]
) -> None:
    monitor.open_bar(step=0, max_steps=10)
    with_steps(monitor, 1)
    monitor.close_bar()
    assert "%|" not in capsys.readouterr().err


def test_records_of_a_full_disk_are_written_later(
    monitor: Monitor, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with_steps(monitor, 1)

    def full(path: Path, mode: str) -> Any:
        with open(path, mode) as file:
            file.write(b'{"half of a li')
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", full)
        with_steps(monitor, 2, 3)
    assert [record["step"] for record in records(monitor)] == [1]
    assert "not written: No space left on device; will be tried again" in (capsys.readouterr().err)
    monitor.drop_records_after(2)
    monitor.flush()
    assert [record["step"] for record in records(monitor)] == [1, 2]
    with_steps(monitor, 3)
    assert [record["step"] for record in records(monitor)] == [1, 2, 3]
