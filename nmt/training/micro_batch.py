"""How much of a step is computed at once: what memory has room for, and less where it has not."""

from typing import TypedDict

from nmt.data.tokens.token_store import TokenStore
from nmt.device import memory_of
from nmt.run_directory import LoadedModel
from nmt.training.step_memory import Hardware, micro_batch


class MicroBatchState(TypedDict):
    """How much was computed at once, and why."""

    tokens: int
    auto: bool
    """whether the recipe left it open"""
    halved: bool
    """whether more has been tried, and memory ran out"""


class MicroBatchSize:
    """The recipe's, or what fits by estimate; halved where memory runs out all the same."""

    def __init__(self, run: LoadedModel, store: TokenStore, precision: str, processes: int) -> None:
        """For one of so many `processes`."""
        self._run, self._precision, self._processes = run, precision, processes
        self._device = next(run.model.parameters()).device
        self._auto = run.config.training.micro_batch_tokens == "auto"
        self._length = max(float(side.lengths.mean()) for side in (store.source, store.target))
        self.tokens = 0
        """rows times the longest side, over all shares"""
        self.halved = False

    def fit(self, shares: int) -> None:
        """Find it for so many shares that are computed side by side."""
        memory = memory_of(self._device)
        hardware = Hardware(self._device.type, self._precision, memory, shares, self._processes)
        tokens = micro_batch(self._run.config, self._run.model, hardware, self._length)
        self.tokens = min(tokens, self.tokens) if self.halved else tokens

    def halve(self, smallest: int) -> bool:
        """Compute less at once from now on, at least `smallest`; whether that is any less."""
        if self.tokens <= smallest:
            return False
        self.tokens = max(self.tokens // 2, smallest)
        self.halved = True
        return True

    def state(self) -> MicroBatchState:
        """What a run needs that goes on from here."""
        return {"tokens": self.tokens, "auto": self._auto, "halved": self.halved}

    def load_state(self, before: MicroBatchState) -> None:
        """Compute as much at once as `before`, unless the recipe says otherwise now.

        What has once been found to be too much stays so, whatever the recipe says.
        """
        if before["halved"] or (before["auto"] and self._auto):
            self.tokens = min(self.tokens, before["tokens"])
        self.halved = self.halved or before["halved"]
