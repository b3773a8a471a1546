"""The text of a plan."""

from pathlib import Path

import pytest

from nmt.config_file import load_config, parse_config
from nmt.planning import plan as module
from nmt.planning.plan import describe
from nmt.planning.plan import make_plan
from nmt.planning.probe import Speed

SPEED = Speed("cpu", "bf16", 2, 26.3, 868.0, 6, 1973, 0.5, 30.0, 5.0, 0)


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_base_is_compared_with_the_paper() -> None:
    text = describe(make_plan(load_config("base.yaml"), measure=False))
    assert "63,082,496: embeddings 18,944,000, encoder 18,914,304, decoder 25,224,192" in text
    assert (
        "the paper's table 3 states 65 M for its base, which takes about 40,745 entries; ours has "
        "63.1 M" in text
    )
    assert "381 MFLOP a target token" in text and "not measured (--no-probe)" in text
    assert "base: 100,000 steps, 12.0 h on 8 P100, 3.3e+18 FLOP" in text


def test_time_and_the_load_of_other_processes_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "probe", lambda config, store, sizes: SPEED)
    text = describe(make_plan(load_config("base.yaml")))
    assert "training 30.4 days" in text
    assert "26.3 s a step, 868 target tokens/s" in text
    assert "measured on 2 threads, bf16, over 6 steps of 1,973 tokens" in text
    assert "other processes used the processor for 50% of that time" in text
    assert "if they go on, training takes 60.9 days" in text


def test_unknown_epochs_and_too_small_gpus_are_reported() -> None:
    config = parse_config(
        "data: {train: {source: a, target: b}, validation: {source: c, target: d}}\n"
        "model: {d_model: 8192, heads: 64, d_ff: 32768}\n"
    )
    text = describe(make_plan(config, measure=False))
    assert "too little memory" in text
    assert "nothing is known before `nmt prepare`; 25 tokens a sentence assumed" in text
    assert "100,000 steps; the size of an epoch is not known" in text
