"""Threads that compute the gradients of shards of a step at the same time, each on its own cores.

With small matrices a second core makes a single operation little faster, because both cores wait
for each other after every operation. Whole passes through the model need no such waiting.
"""

import threading
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import TypeVar

import torch

from nmt.recipe.config import TrainingConfig

_T = TypeVar("_T")

# Limit in bytes of all gradients together: each thread computes one of the whole model.
_GRADIENT_BYTES = 1 << 30


def number_of_shards(threads: int, parameters: int) -> int:
    """Return the number of shards: one per thread, or fewer if gradients take too much memory."""
    return max(1, min(threads, _GRADIENT_BYTES // (4 * parameters)))  # 4 bytes: float32


def can_shard(device: torch.device, training: TrainingConfig, processes: int = 1) -> bool:
    """Return whether threads can compute shards of a step: on a CPU, in a single process.

    Not with activation checkpointing: each thread draws dropout from a generator of its own, but
    PyTorch restores only the global one before it computes a layer again.
    """
    return device.type == "cpu" and processes == 1 and not training.activation_checkpointing


class ThreadTeam:
    """Python threads, each of which runs its PyTorch operations on its share of the cores."""

    def __init__(self, members: int, cores: int) -> None:
        """Start `members` threads that divide `cores` among them.

        PyTorch is told how many cores each thread has. With one core, the C kernels can compute
        (`nmt.kernels.library.can_use_kernels`).
        """
        self.members = members
        # as equal as possible: member i gets every `members`-th core from i on
        core_counts = iter([len(range(i, cores, members)) for i in range(members)])
        self._pool = ThreadPoolExecutor(
            members,
            thread_name_prefix="gradient",
            initializer=lambda: torch.set_num_threads(next(core_counts)),  # once in each thread
        )
        self.cancelled = threading.Event()
        """set when the running tasks should end early, because one of them has failed"""

    def map(self, compute: Callable[[int], _T], count: int) -> list[_T]:
        """Return [compute(0), …, compute(count - 1)], or raise the first exception.

        It waits for all running tasks, even if one has failed; they should check `cancelled`.
        """
        self.cancelled.clear()
        tasks: list[Future[_T]] = []
        try:
            tasks += [self._pool.submit(compute, index) for index in range(count)]
            wait(tasks, return_when=FIRST_EXCEPTION)
            self._stop(tasks)
            # no loop here: its variable would keep a failed task, and so what that has computed
            return list(map(Future.result, tasks))
        finally:
            self._stop(tasks)  # also if a stop signal has interrupted the waiting
            tasks.clear()  # the traceback of an exception keeps this frame, and so the results

    def _stop(self, tasks: list[Future[_T]]) -> None:
        """Start none of the tasks any more, and wait for the running ones."""
        self.cancelled.set()
        for task in tasks:
            task.cancel()
        wait(tasks)
