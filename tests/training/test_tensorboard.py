"""TensorBoard shows what metrics.jsonl holds, also of a run that was resumed."""

import json
import sys
from pathlib import Path

import pytest

from nmt.errors import MissingExtraError
from nmt.run_directory import RunDirectory
from nmt.training.train import train
from tests.training.runs import Recipe, quiet


def curves(run: RunDirectory) -> dict[str, dict[int, float]]:
    """The value at each step of every curve that TensorBoard shows."""
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = accumulator.EventAccumulator(str(run.tensorboard)).Reload()
    return {
        name: {event.step: event.value for event in events.Scalars(name)}
        for name in events.Tags()["scalars"]
    }


def test_every_figure_becomes_a_curve_also_in_a_resumed_run(recipe: Recipe, tmp_path: Path) -> None:
    for steps in (9, 12):
        config = recipe("training.tensorboard=true", f"training.max_steps={steps}")
        run = train(config, tmp_path / "run", quiet)
    records = [json.loads(line) for line in run.metrics.read_text("utf-8").splitlines()]
    shown = curves(run)
    for event in ("train", "validation"):
        losses = {r["step"]: r["loss"] for r in records if r["event"] == event}
        assert shown[f"{event}/loss"] == pytest.approx(losses)
    assert {"train/learning_rate", "train/tokens_per_second", "validation/bleu"} <= shown.keys()


def test_without_the_package_it_is_said_how_to_get_it(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(MissingExtraError, match=r"training.tensorboard .* 'nmt\[tensorboard\]'"):
        train(recipe("training.tensorboard=true"), tmp_path / "run", quiet)
    assert not (tmp_path / "run").exists()


def test_a_full_disk_costs_the_curves_and_not_the_run(
    recipe: Recipe,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("tensorboard")
    from torch.utils.tensorboard import SummaryWriter

    def fail(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(SummaryWriter, "add_scalar", fail)
    run = train(recipe("training.tensorboard=true"), tmp_path / "run", quiet)
    assert run.checkpoint(12).is_dir()
    said = capsys.readouterr().err
    assert said.count("tensorboard: not written any more: No space left on device") == 1
