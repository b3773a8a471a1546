"""Which checkpoints are not deleted: the last, the best by validation, and those to average."""

import math
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nmt.errors import print_warning
from nmt.files import write_json
from nmt.recipe.config import TrainingConfig
from nmt.run.directory import RunDirectory
from nmt.training.schedule import steps_before_cooldown


class Ranking:
    """Up to `size` validated steps, best first.

    Of equal scores, such as a BLEU of 0, the one with the lower loss is better, and of equal losses
    the earlier one.

    `add` ranks a step before its checkpoint is written. Call `commit` when it is written; if that
    fails, `rollback` restores the ranking of the last commit.
    """

    def __init__(self, size: int, metric: str) -> None:
        """Rank by the name of a figure, `training.validation_metric`."""
        self._size, self._metric = size, metric
        self.entries: Sequence[dict[str, Any]] = ()
        """dicts of step, score and figures (loss, metrics), best first; not changed in place"""
        self._committed: Sequence[dict[str, Any]] = ()
        self.without_gain = 0
        """number of validations since the best one, for early stopping"""

    @property
    def steps(self) -> list[int]:
        """The numbers of the ranked steps, best first."""
        return [entry["step"] for entry in self.entries]

    def add(self, step: int, score: float, figures: Mapping[str, float]) -> bool:
        """Rank a validation (a higher score is better); return whether it is among the entries."""
        new_entry = {"step": step, "score": score, **figures}
        ranked = sorted([*self.entries, new_entry], key=_order)
        self.entries = ranked[: self._size]
        self.without_gain = 0 if ranked[0] is new_entry else self.without_gain + 1
        return any(entry is new_entry for entry in self.entries)

    def commit(self) -> None:
        """Make the ranking permanent: the checkpoints of all ranked steps have been saved."""
        self._committed = self.entries

    def rollback(self) -> None:
        """Return to the ranking of the last commit: the checkpoint of a step was not saved."""
        self.entries = self._committed

    def state(self) -> dict[str, Any]:
        """Return entries and `without_gain`, for `load_state`."""
        return {"entries": list(self.entries), "without_gain": self.without_gain}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continue from the `state()` of a saved run; only its first `size` entries are kept.

        If the run had another metric so far, entries without the figure of this one are left out,
        the others are ranked by it, and early stopping starts counting again.
        """
        saved = state["entries"]
        ranked = [{**entry, "score": self._score(entry)} for entry in saved]
        ranked = sorted((e for e in ranked if e["score"] is not None), key=_order)
        self.entries = self._committed = ranked[: self._size]
        has_same_metric = [e["score"] for e in ranked] == [e["score"] for e in saved]
        self.without_gain = state["without_gain"] if has_same_metric else 0

    def _score(self, entry: Mapping[str, Any]) -> float | None:
        """Return the score of an entry by the metric, higher is better; None if it has none."""
        figure = entry.get(self._metric)
        return -figure if figure is not None and self._metric == "loss" else figure


def _order(entry: Mapping[str, Any]) -> tuple[float, float]:
    """Return what entries are sorted by: the best is the lowest."""
    return -entry["score"], entry.get("loss", math.inf)


def ranking_size(training: TrainingConfig) -> int:
    """Return how many of the best checkpoints must not be deleted: to keep or to average them."""
    averaged = training.average_checkpoints if training.average == "best" else 1
    return max(training.keep_best, averaged)


def checkpoints_to_average(
    directory: RunDirectory, training: TrainingConfig, ranked: Sequence[int]
) -> list[Path]:
    """Return the folders of up to `training.average_checkpoints` checkpoints, oldest first.

    With `training.average: best` they are those of the first `ranked` steps (best first). Else, or
    if none of these exists, they are the last ones at multiples of `checkpoint_every`; without any,
    it is the last checkpoint. The order is always the same, because it decides how the sum of the
    weights is rounded.
    """
    if training.average == "best":
        best_steps = sorted(ranked[: training.average_checkpoints])
        best = [directory.checkpoint(step) for step in best_steps]
        existing = [path for path in best if path.exists()]
        if existing:
            return existing
    saved = directory.saved_checkpoints()
    regular = [path for path in saved if directory.step_of(path) % training.checkpoint_every == 0]
    if not regular:
        return saved[-1:]
    return regular[-training.average_checkpoints :]


def update_after_checkpoint(
    directory: RunDirectory,
    training: TrainingConfig,
    last_step: int,
    ranked: Sequence[Mapping[str, Any]],
) -> None:
    """Write last.json and best.json, and delete the checkpoints that are not needed any more.

    `last_step` is the one whose checkpoint was just written, `ranked` the entries of a `Ranking`;
    without entries, best.json is not written. Needed are the checkpoints of `ranked`, those to
    average, the last `training.keep_last`, and the last one from before a cooldown, from which a
    longer training could go on.
    """

    def relative_path(step: int) -> str:
        return str(directory.checkpoint(step).relative_to(directory.path))

    write_json(directory.last, {"weights": relative_path(last_step)})
    if ranked:
        best = ranked[0]
        write_json(directory.best, {"weights": relative_path(best["step"]), **best})
    saved = directory.saved_checkpoints()
    ranked_steps = [entry["step"] for entry in ranked]
    needed = {directory.checkpoint(step) for step in ranked_steps}
    needed.update(checkpoints_to_average(directory, training, ranked_steps))
    needed.update(saved[-training.keep_last :])
    before_cooldown = steps_before_cooldown(training)
    needed.update([path for path in saved if directory.step_of(path) <= before_cooldown][-1:])
    for path in saved:
        if path not in needed:
            _delete(path)


def _delete(path: Path) -> None:
    """Delete a checkpoint; where that fails, warn, because training can go on with it."""
    try:
        if path.is_symlink():  # its folder stays where somebody has moved it
            path.unlink()
        else:
            shutil.rmtree(path)
    except OSError as error:
        print_warning(f"{path}: not deleted: {error.strerror or error}; delete it yourself")
