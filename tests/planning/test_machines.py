"""Estimates for GPUs and figures of the paper are plausible."""

import pytest

from nmt.config import ModelConfig
from nmt.planning.machines import GPUS, PAPER, find_paper_model, step_seconds, utilization

BASE = ModelConfig()
BIG = ModelConfig(d_model=1024, heads=16, d_ff=4096, dropout=0.3)


def test_a_faster_gpu_needs_less_time_but_never_less_than_its_kernel_launches() -> None:
    slow, fast = min(GPUS, key=lambda g: g.teraflops), max(GPUS, key=lambda g: g.teraflops)
    assert step_seconds(fast, BIG, 3e13, 1) < step_seconds(slow, BIG, 3e13, 1)
    assert step_seconds(fast, BIG, 1.0, 1) == step_seconds(slow, BIG, 1.0, 1) > 0.001
    assert step_seconds(fast, BIG, 1.0, 4) == 4 * step_seconds(fast, BIG, 1.0, 1)


def test_narrow_models_reach_a_smaller_share_of_the_peak() -> None:
    assert utilization(ModelConfig(d_model=128)) < utilization(BASE) < utilization(BIG) < 0.42


def test_the_papers_models_are_recognised_by_their_sizes_alone() -> None:
    assert [find_paper_model(config) for config in (BASE, BIG)] == list(PAPER)
    assert find_paper_model(BASE.model_copy(update={"norm": "pre", "dropout": 0.3})) == PAPER[0]
    assert find_paper_model(BASE.model_copy(update={"d_ff": 1024})) is None


def test_the_papers_operations_follow_from_its_gpu_time() -> None:
    """Table 2: 8 P100 at 9.5 TFLOP/s."""
    for spent in PAPER:
        assert 8 * spent.hours * 3600 * 9.5e12 == pytest.approx(spent.operations, rel=0.02)
