"""What a run was said to take on disk is what it takes."""

from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.config import Config
from nmt.planning.arithmetic import blank_model
from nmt.planning.disk import disk_space
from nmt.training.train import train

Recipe = Callable[..., Config]


@pytest.mark.parametrize(
    "settings",
    [
        (),
        ("training.average=best", "training.keep_best=3"),
        ("training.moving_average=0.9", "training.checkpoint_every=40"),
    ],
)
def test_a_run_takes_no_more_disk_than_was_said(
    recipe: Recipe, tmp_path: Path, settings: tuple[str, ...]
) -> None:
    sizes = ("model.d_model=64", "model.d_ff=256")
    config = recipe(*settings, *sizes, "training.validation_metric=loss")
    run = train(config, tmp_path / "run", lambda message: None)
    disk = disk_space(config, blank_model(config.model, 60, 60))
    held = [sum(f.stat().st_size for f in p.rglob("*")) for p in run.saved_checkpoints()]
    assert all(size == pytest.approx(disk.checkpoint, rel=0.1) for size in held)
    assert len(held) < disk.checkpoints <= len(held) + 3
