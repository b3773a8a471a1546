"""The best validations of a run: which checkpoints stay, and when to give up."""

from collections.abc import Mapping, Sequence
from typing import Any


class Ranking:
    """Up to `size` validated steps, best first; of equal scores the earlier one is better.

    Its entries hold step, score and figures. A step is `entered` when it is validated, and `keep`
    says that it has been saved; where that failed, `take_back` restores what was kept before.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self.entries: Sequence[dict[str, Any]] = ()
        self._kept: Sequence[dict[str, Any]] = ()
        self.without_gain = 0
        """validations in a row that were no better than the best one"""

    @property
    def best(self) -> Mapping[str, Any]:
        """Step, score and figures of the best validation; empty where there is none."""
        return self.entries[0] if self.entries else {}

    @property
    def steps(self) -> list[int]:
        """The ranked steps, best first."""
        return [entry["step"] for entry in self.entries]

    def add(self, step: int, score: float, figures: Mapping[str, float]) -> bool:
        """Take in a validation; say whether it is among the best."""
        entry = {"step": step, "score": score, **figures}
        ranked = sorted([*self.entries, entry], key=lambda entry: -entry["score"])
        self.entries = ranked[: self._size]
        self.without_gain = 0 if ranked[0] is entry else self.without_gain + 1
        return any(kept is entry for kept in self.entries)

    def keep(self) -> None:
        """What is ranked is saved."""
        self._kept = self.entries

    def rollback(self) -> None:
        """What is not saved cannot be the best that there is."""
        self.entries = self._kept

    def state(self) -> dict[str, Any]:
        """What `load_state` needs."""
        return {"entries": list(self.entries), "without_gain": self.without_gain}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state()`, whose entries are saved."""
        self.entries = self._kept = state["entries"][: self._size]
        self.without_gain = state["without_gain"]
