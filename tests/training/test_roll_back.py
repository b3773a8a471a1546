"""After a step that diverged a run stops, or continues with the weights of its last checkpoint."""

from pathlib import Path
from typing import Any

import pytest

from nmt.errors import DivergedError
from nmt.run.checkpoint import load_weights
from nmt.run.directory import RunDirectory
from nmt.training import resume as resume_module
from nmt.training import step as step_module
from nmt.training.optimizer import update_weights
from nmt.training.train import train
from nmt.training.trainer import Trainer
from tests.training.runs import Diverge, Recipe, Trained, quiet, records, same_weights

ROLL_BACK = "training.on_divergence=roll_back"


def roll_backs(run: RunDirectory) -> list[tuple[int, int]]:
    """The steps that diverged, and those whose weights replaced theirs."""
    return [(line["step"], line["to"]) for line in records(run) if line["event"] == "roll_back"]


@pytest.mark.parametrize(
    ("choice", "steps", "message"),
    [
        ("stop", (7,), r"step 7: .* for \d+ pairs .*\. All checkpoints in .* are from before"),
        ("stop", (2,), r"step 2: .* There is no checkpoint yet to go back to; lower"),
        ("roll_back", (2,), r"step 2: .* There is no checkpoint yet to go back to; lower"),
        ("roll_back", range(6, 11), "step 9: .* an earlier checkpoint 3 times already"),
    ],
)
def test_divergence_stops_with_advice(
    recipe: Recipe, tmp_path: Path, diverge: Diverge, choice: str, steps: Any, message: str
) -> None:
    diverge(*steps)
    with pytest.MonkeyPatch.context() as patched, pytest.raises(DivergedError, match=message):
        patched.setattr(resume_module, "MAX_ROLL_BACKS", 3)
        train(recipe(f"training.on_divergence={choice}"), tmp_path / "run", quiet)


def test_a_run_may_roll_back_instead(
    recipe: Recipe,
    trained: Trained,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    diverge: Diverge,
) -> None:
    """It takes the weights of the last checkpoint, and saves a roll-back of its last step."""
    whole = trained("training.keep_last=9")
    diverge(7, 12)
    waited, save = [], Trainer.save

    def noted(self: Trainer, *, overwrite: bool = False, wait: bool = False) -> None:
        waited.append((self.state.step, wait))
        save(self, overwrite=overwrite, wait=wait)

    monkeypatch.setattr(Trainer, "save", noted)
    log: list[str] = []
    run = train(recipe("training.keep_last=9", ROLL_BACK), tmp_path / "run", log.append)
    assert any("going on with the weights of step-00000005, without the" in line for line in log)
    assert same_weights(run.checkpoint(5), whole.checkpoint(5))
    assert roll_backs(run) == [(7, 5), (12, 10)]  # step 10 was saved because it validated best
    assert waited[-1] == (12, True)
    assert run.checkpoint(12).is_dir()


def test_weights_that_are_not_finite_are_not_saved(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The update of step 7 ruins them; step 6 remains to go back to."""

    def ruined(optimizers: Any, *arguments: Any) -> None:
        update_weights(optimizers, *arguments)
        calls.append(1)
        if len(calls) == 7:
            optimizers[0].param_groups[0]["params"][0].data.fill_(float("nan"))

    calls: list[int] = []
    monkeypatch.setattr(step_module, "update_weights", ruined)
    run = train(recipe(ROLL_BACK, "training.checkpoint_every=1"), tmp_path / "run", quiet)
    assert roll_backs(run) == [(7, 6)]
    assert all(w.isfinite().all() for w in load_weights(run.checkpoint(12)).values())
