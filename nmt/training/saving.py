"""Checkpoints written in the background: training waits only while its state is copied."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from torch import Tensor

from nmt.checkpoint import save_checkpoint
from nmt.config import TrainingConfig
from nmt.errors import CheckpointError
from nmt.run_directory import RunDirectory
from nmt.training.ranking import Ranking
from nmt.training.retention import forget_old_checkpoints, point_to


def snapshot(value: Any, former: Any = None) -> Any:
    """Copies, on the CPU, of the tensors in dicts, lists and tuples; other values stay the same.

    Tensors of a `former` snapshot are overwritten where they fit: new memory takes longer to fill.
    """
    if isinstance(value, Tensor):
        if isinstance(former, Tensor) and _alike(value, former):
            return former.copy_(value.detach())
        return value.detach().to("cpu", copy=True)
    if isinstance(value, Mapping):
        known = former if isinstance(former, Mapping) else {}
        return {name: snapshot(item, known.get(name)) for name, item in value.items()}
    if isinstance(value, list | tuple):
        known = dict(enumerate(former)) if isinstance(former, list | tuple) else {}
        return type(value)(snapshot(item, known.get(i)) for i, item in enumerate(value))
    return value


def _alike(one: Tensor, other: Tensor) -> bool:
    return (one.shape, one.dtype, one.stride()) == (other.shape, other.dtype, other.stride())


class Saver:
    """Writes one checkpoint at a time, and keeps what points to checkpoints true."""

    def __init__(self, directory: RunDirectory, training: TrainingConfig) -> None:
        self._directory, self._training = directory, training
        self._thread = ThreadPoolExecutor(1, "saving")
        self._writing: Future[None] | None = None
        self._copied: Any = None

    def start(
        self,
        step: int,
        weights: Mapping[str, Tensor],
        state: Mapping[str, Any],
        ranking: Ranking,
        *,
        anew: bool = False,
    ) -> None:
        """Begin to save `step`, `anew` if it is saved already, once `problem` has been asked for.

        What is ranked is saved by then, or is this step.
        """
        assert self._writing is None
        needed = anew or not self._directory.checkpoint(step).exists()
        if needed:
            self._copied = snapshot((weights, state), self._copied)
        self._writing = self._thread.submit(self._write, step, ranking.best, ranking.steps, needed)

    def _write(
        self, step: int, best: Mapping[str, Any], ranked: Sequence[int], needed: bool
    ) -> None:
        if needed:
            save_checkpoint(self._directory.checkpoint(step), *self._copied)
        point_to(self._directory, step, best)
        forget_old_checkpoints(self._directory, self._training, ranked)

    def writing(self) -> bool:
        """Whether the last checkpoint begun is still being written."""
        return self._writing is not None and not self._writing.done()

    def wait(self) -> None:
        """Until nothing is being written."""
        if self._writing is not None:
            wait([self._writing])

    def problem(self) -> str | None:
        """Wait for the last checkpoint begun; tell once what stood in its way, if anything did."""
        self.wait()
        writing, self._writing = self._writing, None
        try:
            if writing is not None:
                writing.result()
        except CheckpointError as error:
            return str(error)
        except OSError as error:
            return f"{error.filename or self._directory.path}: not written: {error.strerror}"
        return None
