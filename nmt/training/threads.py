"""Threads that compute the gradients of shards of a step at the same time, each on its own cores.

With small matrices a second core makes a single operation little faster, because both cores wait
for each other after every operation. Whole passes through the model need no such waiting.
"""

import threading
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import TypeVar

import torch

from nmt.config import TrainingConfig

_T = TypeVar("_T")

# Bytes for all gradients together: each thread holds one of the whole model for a moment.
_GRADIENT_BYTES = 1 << 30


def number_of_shards(threads: int, parameters: int) -> int:
    """Return how many shards a step is cut into, for a model of so many float32 parameters."""
    return max(1, min(threads, _GRADIENT_BYTES // (4 * parameters)))


def can_shard(device: torch.device, training: TrainingConfig, processes: int = 1) -> bool:
    """Return whether threads can compute shards of a step: on a CPU, in a single process.

    Activation checkpointing excludes it: it restores only the global random generator.
    """
    return device.type == "cpu" and processes == 1 and not training.activation_checkpointing


class ThreadTeam:
    """Threads that divide the cores among them; PyTorch operations of a thread use its cores."""

    def __init__(self, members: int, threads: int) -> None:
        """Start `members` threads that share the cores of `threads`."""
        self.members = members
        # the first members get the cores that cannot be divided evenly
        cores = iter([len(range(number, threads, members)) for number in range(members)])
        self._pool = ThreadPoolExecutor(
            members, "gradient", lambda: torch.set_num_threads(next(cores))
        )
        self.cancelled = threading.Event()
        """set when the results of the running tasks are not needed any more"""

    def map(self, compute: Callable[[int], _T], count: int) -> list[_T]:
        """Return `compute(number)` for each number below `count`; raises the first exception.

        No task is running any more when this returns or raises, so a long task should look at
        `cancelled` now and then.
        """
        self.cancelled.clear()
        tasks: list[Future[_T]] = []
        try:
            tasks += [self._pool.submit(compute, number) for number in range(count)]
            wait(tasks, return_when=FIRST_EXCEPTION)
            self._stop(tasks)
            return list(map(Future.result, tasks))
        finally:
            self._stop(tasks)
            tasks.clear()  # the traceback of an exception keeps this frame, and so the results

    def _stop(self, tasks: list[Future[_T]]) -> None:
        """Start none of the tasks any more, and wait for the running ones."""
        self.cancelled.set()
        for task in tasks:
            task.cancel()
        wait(tasks)
