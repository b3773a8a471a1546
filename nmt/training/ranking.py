"""The best validations of a run: they decide which checkpoints stay and when to stop early."""

from collections.abc import Mapping, Sequence
from typing import Any


class Ranking:
    """Up to `size` validated steps, best first; of equal scores the earlier step is better.

    `add` ranks a validated step. `commit` says that the ranked steps have been saved; if saving
    failed, `rollback` restores the steps of the last commit.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self.entries: Sequence[dict[str, Any]] = ()
        """step, score and figures of each"""
        self._committed: Sequence[dict[str, Any]] = ()
        self.without_gain = 0
        """validations in a row that were no better than the best one"""

    @property
    def best(self) -> Mapping[str, Any]:
        """Step, score and figures of the best validation; empty if there is none."""
        return self.entries[0] if self.entries else {}

    @property
    def steps(self) -> list[int]:
        """The ranked steps, best first."""
        return [entry["step"] for entry in self.entries]

    def add(self, step: int, score: float, figures: Mapping[str, float]) -> bool:
        """Rank a validation; return whether it is among the best."""
        entry = {"step": step, "score": score, **figures}
        ranked = sorted([*self.entries, entry], key=lambda entry: -entry["score"])
        self.entries = ranked[: self._size]
        self.without_gain = 0 if ranked[0] is entry else self.without_gain + 1
        return any(kept is entry for kept in self.entries)

    def commit(self) -> None:
        """Note that the checkpoints of all ranked steps have been saved."""
        self._committed = self.entries

    def rollback(self) -> None:
        """Return to the last commit, because the checkpoint of a step was not saved."""
        self.entries = self._committed

    def state(self) -> dict[str, Any]:
        """Return what `load_state` needs."""
        return {"entries": list(self.entries), "without_gain": self.without_gain}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continue from a `state()` whose steps have been saved."""
        self.entries = self._committed = state["entries"][: self._size]
        self.without_gain = state["without_gain"]
