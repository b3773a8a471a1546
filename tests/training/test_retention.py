"""Which validations are the best, and which checkpoints stay on disk."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from nmt.files import read_json
from nmt.recipe.config import TrainingConfig
from nmt.run.directory import RunDirectory
from nmt.training.retention import (
    Ranking,
    checkpoints_to_average,
    ranking_size,
    update_after_checkpoint,
)

Changes = dict[str, Any]
Steps = list[int]
TRAINING = TrainingConfig(checkpoint_every=10, average_checkpoints=3)


def ranked(*scores: float, size: int = 2) -> Ranking:
    ranking = Ranking(size, "bleu")
    for step, score in enumerate(scores, start=1):
        ranking.add(step, score, {"loss": 1.0, "bleu": score})
    return ranking


def run_with(path: Path, steps: Steps) -> RunDirectory:
    """A run with empty checkpoints of these steps."""
    run = RunDirectory(path)
    for step in steps:
        run.checkpoint(step).mkdir(parents=True)
    return run


def test_the_best_stand_first_of_equal_ones_the_earlier_and_add_says_whether_it_is_one() -> None:
    assert ranked(3, 5, 5, 4).steps == [2, 3]
    assert ranked(3, 5, 5, 4, size=1).entries == [{"step": 2, "score": 5, "loss": 1.0, "bleu": 5}]
    ranking = ranked(3, 5)
    found = [ranking.add(3 + n, score, {}) for n, score in enumerate((4, 4, 2, 9))]
    assert found == [True, False, False, True]


def test_of_equal_scores_the_lower_loss_is_better_and_a_gain() -> None:
    ranking = Ranking(2, "bleu")
    losses = (7.0, 6.5, 6.8, 6.5)
    found = [ranking.add(step, 0.0, {"loss": loss}) for step, loss in enumerate(losses, start=1)]
    assert found == [True, True, True, True]
    assert (ranking.steps, ranking.without_gain) == ([2, 4], 2)
    assert ranking.add(5, 0.1, {"loss": 9.0}) and ranking.steps == [5, 2]


def test_only_the_very_best_ends_the_wait_for_a_gain() -> None:
    waits = [ranked(*scores).without_gain for scores in ((3,), (3, 2), (3, 2, 2.5), (3, 2, 4))]
    assert waits == [0, 1, 2, 0]


def test_a_step_that_could_not_be_saved_is_rolled_back() -> None:
    ranking = ranked(3)
    ranking.commit()
    ranking.add(2, 7, {})
    ranking.rollback()
    assert ranking.steps == [1]


def test_a_ranking_continues_from_its_state_also_with_fewer_places() -> None:
    new = Ranking(1, "bleu")
    new.load_state(ranked(3, 5, 4).state())
    assert (new.steps, new.without_gain) == ([2], 1)
    new.add(9, 1, {})
    new.rollback()
    assert new.steps == [2]


@pytest.mark.parametrize(
    ("metric", "steps", "without_gain"), [("bleu", [2, 1], 1), ("loss", [1, 2], 0), ("chrf", [], 0)]
)
def test_another_metric_ranks_anew_what_has_its_figure(
    metric: str, steps: Steps, without_gain: int
) -> None:
    old, new = Ranking(2, "bleu"), Ranking(2, metric)
    for step, (bleu, loss) in enumerate(((20.0, 2.0), (30.0, 3.0), (10.0, 1.0)), start=1):
        old.add(step, bleu, {"loss": loss, "bleu": bleu})
    new.load_state(old.state())
    assert (new.steps, new.without_gain) == (steps, without_gain)


@pytest.mark.parametrize(
    ("training", "saved", "best_first", "averaged"),
    [
        ({}, [10, 20, 25, 30, 40, 41], [25], [20, 30, 40]),  # the last regular ones
        ({}, [5, 7], [], [7]),  # none is regular
        ({"average": "best"}, [10, 15, 20, 25, 30], [25, 15, 30, 10], [15, 25, 30]),
        ({"average": "best"}, [10, 15, 20, 25, 30], [], [10, 20, 30]),
    ],
)
def test_the_last_regular_checkpoints_or_the_best_are_averaged(
    tmp_path: Path, training: Changes, saved: Steps, best_first: Steps, averaged: Steps
) -> None:
    run = run_with(tmp_path, saved)
    found = checkpoints_to_average(run, TRAINING.model_copy(update=training), best_first)
    assert found == [run.checkpoint(step) for step in averaged]


@pytest.mark.parametrize(
    ("training", "saved", "best_first", "kept"),
    [
        ({}, [5, 10, 20, 25, 30, 35, 40, 50, 51, 52], [25], [25, 30, 40, 50, 51, 52]),
        ({}, [10, 20, 30, 40, 50], [], [30, 40, 50]),
        (
            {"average_checkpoints": 1, "keep_last": 3},
            [3, 5, 10, 20, 31],
            [5, 3],
            [3, 5, 10, 20, 31],
        ),
        ({"average_checkpoints": 1, "keep_last": 3}, [3, 5, 9, 10, 20, 31], [5], [5, 10, 20, 31]),
        # from the last one before a cooldown the training could go on for longer
        (
            {"max_steps": 50, "cooldown_steps": 32},
            [5, 10, 18, 20, 30, 40],
            [5],
            [5, 18, 20, 30, 40],
        ),
        ({"max_steps": 50, "schedule": "linear"}, [10, 18, 20, 30, 40], [], [20, 30, 40]),
    ],
)
def test_those_to_average_the_best_and_the_last_stay(
    tmp_path: Path, training: Changes, saved: Steps, best_first: Steps, kept: Steps
) -> None:
    run = run_with(tmp_path, saved)
    entries = [{"step": step, "loss": 1.5} for step in best_first]
    update_after_checkpoint(run, TRAINING.model_copy(update=training), saved[-1], entries)
    assert run.saved_checkpoints() == [run.checkpoint(step) for step in kept]
    assert read_json(run.last) == {"weights": f"checkpoints/step-{saved[-1]:08d}"}
    assert run.best.exists() is bool(best_first)
    if best_first:
        weights = f"checkpoints/step-{best_first[0]:08d}"
        assert read_json(run.best) == {"weights": weights, **entries[0]}


def test_as_many_of_the_best_stay_as_asked_for_and_averaged() -> None:
    changes: list[Changes] = [{}, {"keep_best": 2}, {"average": "best", "keep_best": 2}]
    assert [ranking_size(TRAINING.model_copy(update=each)) for each in changes] == [1, 2, 3]


def test_a_checkpoint_that_cannot_be_deleted_holds_up_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_with(tmp_path, [10, 20, 30, 40, 50, 60])
    moved = run.checkpoint(10).rename(tmp_path / "moved")
    run.checkpoint(10).symlink_to(moved)
    delete = shutil.rmtree

    def refuse_the_second(path: Path) -> None:
        if path == run.checkpoint(20):
            raise PermissionError(13, "Permission denied")
        delete(path)

    monkeypatch.setattr(shutil, "rmtree", refuse_the_second)
    update_after_checkpoint(run, TRAINING, 60, [])
    assert run.saved_checkpoints() == [run.checkpoint(step) for step in (20, 40, 50, 60)]
    assert moved.is_dir()
    assert "step-00000020: not deleted: Permission denied; delete it" in capsys.readouterr().err
