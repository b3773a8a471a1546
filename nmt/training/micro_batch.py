"""How many tokens are computed at once: an estimate of what fits, and less if memory runs out."""

from typing import TypedDict

from nmt.data.tokens.token_store import TokenStore
from nmt.device import hardware_kind, memory_of
from nmt.run_directory import LoadedModel
from nmt.training.step_memory import Hardware, micro_batch_tokens


class MicroBatchState(TypedDict):
    """The size that was used, and why."""

    tokens: int
    auto: bool
    """whether the recipe left the size open"""
    halved: bool
    """whether a larger size was tried and memory ran out"""


class MicroBatchSize:
    """The size in the recipe, or an estimate of what fits; halved if memory runs out."""

    def __init__(self, run: LoadedModel, store: TokenStore, precision: str, processes: int) -> None:
        """`processes` compute each step together, this is one of them."""
        self._run, self._precision, self._processes = run, precision, processes
        self._device = next(run.model.parameters()).device
        self._auto = run.config.training.micro_batch_tokens == "auto"
        self._length = max(float(side.lengths.mean()) for side in (store.source, store.target))
        self.tokens = 0
        """rows times the longest side, of all shards together"""
        self.halved = False

    def fit(self, cpu_shards: int) -> None:
        """Set the size for this many shards that are computed at the same time."""
        memory = memory_of(self._device)
        kind = hardware_kind(self._device)
        hardware = Hardware(kind, self._precision, memory, cpu_shards, self._processes)
        tokens = micro_batch_tokens(self._run.config, self._run.model, hardware, self._length)
        self.tokens = min(tokens, self.tokens) if self.halved else tokens

    def halve(self, smallest: int) -> bool:
        """Halve the size down to `smallest`; returns False if it is that small already."""
        if self.tokens <= smallest:
            return False
        self.tokens = max(self.tokens // 2, smallest)
        self.halved = True
        return True

    def state(self) -> MicroBatchState:
        """Return what `load_state` needs."""
        return {"tokens": self.tokens, "auto": self._auto, "halved": self.halved}

    def load_state(self, saved: MicroBatchState) -> None:
        """Use the saved size, unless the recipe now sets another one.

        A size for which memory ran out once is never tried again, whatever the recipe says.
        """
        if saved["halved"] or (saved["auto"] and self._auto):
            self.tokens = min(self.tokens, saved["tokens"])
        self.halved = self.halved or saved["halved"]
