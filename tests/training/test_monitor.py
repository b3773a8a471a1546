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


def records(metrics: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in metrics.read_text("utf-8").splitlines()]


def steps(monitor: Monitor) -> list[int]:
    return [record["step"] for record in records(monitor.metrics)]


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
    first, second = records(monitor.metrics)
    assert (first["event"], first["step"], first["epoch"]) == ("train", 2, 0.1235)
    assert (first["loss"], first["target_tokens"], first["learning_rate"]) == (1.0, 40, 0.1)
    assert (second["loss"], second["target_tokens"], second["learning_rate"]) == (3.0, 42, 0.2)
    assert second["seconds"] >= first["seconds"] >= 0
    assert first["tokens_per_second"] > 0


def test_validation_is_recorded_and_printed(
    monitor: Monitor, capsys: pytest.CaptureFixture[str]
) -> None:
    monitor.record_validation(1000, {"loss": math.log(8), "chrf": 12.345}, "all is well")
    monitor.record_validation(1001, {"loss": 5000.0}, "")
    first, second = records(monitor.metrics)
    assert (first["event"], first["step"], first["chrf"]) == ("validation", 1000, 12.345)
    assert first["perplexity"] == pytest.approx(8) and math.isfinite(second["perplexity"])
    out, err = capsys.readouterr()
    assert out == ""
    assert "step 1,000" in err and "min: all is well, perplexity 8.00" in err


@pytest.mark.parametrize(
    ("loss", "printed"),
    [
        (0.0, "1.00"),
        (math.log(8), "8.00"),
        (math.log(12.345), "12.3"),
        (math.log(126.4), "126"),
        (math.log(999.7), "1,000"),
        (math.log(12_345), "12,300"),
        (math.log(1.5e7), "1.5e+07"),
        (600.0, "3.77e+260"),
        (1.5e6, "1.01e+304"),
    ],
)
def test_perplexity_has_three_digits_however_large_it_is(
    monitor: Monitor, capsys: pytest.CaptureFixture[str], loss: float, printed: str
) -> None:
    monitor.record_validation(1, {"loss": loss}, "")
    assert capsys.readouterr().err.endswith(f"perplexity {printed}\n")


def test_the_time_left_counts_validations_and_is_smooth(
    monitor: Monitor, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Steps of a minute, and after every tenth a validation of twenty: three minutes a step."""
    now = 0.0
    monkeypatch.setattr("nmt.training.monitor.time.perf_counter", lambda: now)
    monitor.open_bar(step=100, max_steps=1000)
    left = []
    for step in range(101, 141):
        now += 60 if step != 125 else 300  # one slow step
        monitor.count(loss=1.0, tokens=60)
        monitor.record_training(step, epoch=1, learning_rate=1.0)
        left.append(float(capsys.readouterr().err.split(", ")[-1].split(" min left")[0]))
        if step % 10 == 0:
            with monitor.paused():
                now += 20 * 60
                monitor.record_validation(step, {"loss": 1.0}, "")
            capsys.readouterr()
    assert left[:2] == [899, 898]  # no validation is known yet
    assert left[10:24] == [3 * (1000 - step) for step in range(111, 125)]
    assert left[24] < 1.3 * left[23]  # the slow step weighs a fifth
    assert left[-1] == pytest.approx(3 * 860, rel=0.02)


def test_records_after_the_resumed_step_are_dropped(monitor: Monitor) -> None:
    monitor.drop_records_after(0)
    assert not monitor.metrics.exists()
    with_steps(monitor, 10, 20, 30, 40)
    monitor.record_validation(40, {"loss": 1.0}, "")
    monitor.drop_records_after(20)
    before = monitor.metrics.stat().st_ino
    monitor.drop_records_after(20)
    assert monitor.metrics.stat().st_ino == before  # a file without later records stays the same
    with_steps(monitor, 30)
    assert steps(monitor) == [10, 20, 30]


@pytest.mark.parametrize(
    ("missing", "step", "kept"), [(1, 20, [10, 20]), (2, 20, [10]), (20, 20, [10]), (20, 10, [10])]
)
def test_a_last_line_that_was_cut_is_dropped(
    monitor: Monitor, missing: int, step: int, kept: list[int]
) -> None:
    with_steps(monitor, 10, 20)
    text = monitor.metrics.read_text("utf-8")
    monitor.metrics.write_text(text[:-missing], "utf-8")
    monitor.drop_records_after(step)
    with_steps(monitor, 30)
    assert steps(monitor) == [*kept, 30]


def test_a_last_line_that_was_cut_inside_of_a_character_is_dropped(monitor: Monitor) -> None:
    with_steps(monitor, 10)
    with monitor.metrics.open("ab") as file:
        file.write('{"event": "validation", "bleu ñ'.encode()[:-1])
    monitor.drop_records_after(10)
    assert steps(monitor) == [10]


@pytest.mark.parametrize("line", ["\0\0{}", "{}", '{"step": "x", "event": "train"}'])
def test_a_line_that_is_no_record_is_dropped(monitor: Monitor, line: str) -> None:
    with_steps(monitor, 10)
    with monitor.metrics.open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")
    monitor.drop_records_after(10)
    assert steps(monitor) == [10]


def test_paused_time_is_no_training_time_and_a_bar_is_only_for_terminals(
    monitor: Monitor, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 100.0
    monkeypatch.setattr("nmt.training.monitor.time.perf_counter", lambda: now)
    monitor.open_bar(step=0, max_steps=10)
    now = 130.0
    monitor.count(loss=1.0, tokens=60)
    with monitor.paused():
        now = 500.0
    now = 520.0
    monitor.count(loss=1.0, tokens=40)
    monitor.close()
    assert monitor.seconds == 50.0
    monitor.record_training(2, epoch=1.0, learning_rate=0.1)
    assert records(monitor.metrics)[0]["tokens_per_second"] == 2.0
    said = capsys.readouterr().err
    assert "step 2 of 10: epoch 1.0, loss 0.020, 2 tokens/s, 3 min left\n" in said  # 200 s
    assert "%|" not in said


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
    assert steps(monitor) == [1]
    assert "not written: No space left on device; will be tried again" in capsys.readouterr().err
    monitor.drop_records_after(2)
    monitor.flush()
    assert steps(monitor) == [1, 2]
    with_steps(monitor, 3)
    assert steps(monitor) == [1, 2, 3]
