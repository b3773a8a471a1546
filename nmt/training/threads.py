"""Threads that compute the gradients of shares of a step side by side, on cores of their own.

On a CPU a second core makes one operation little faster where matrices are small: the two wait for
each other after every one of them. Whole passes through the model do not.
"""

import threading
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import TypeVar

import torch

from nmt.config import TrainingConfig

_T = TypeVar("_T")

# Bytes: each thread holds a gradient of the whole model for a moment.
_GRADIENTS = 1 << 30


def number_of_shards(threads: int, parameters: int) -> int:
    """How many shares a step is cut into for so many threads, at so many float32 parameters."""
    return max(1, min(threads, _GRADIENTS // (4 * parameters)))


def can_shard(device: torch.device, training: TrainingConfig, processes: int = 1) -> bool:
    """Whether threads can compute shares of a step: on a CPU, where one process trains.

    Not where activations are computed again, which restores only the generator of all threads.
    """
    return device.type == "cpu" and processes == 1 and not training.activation_checkpointing


class ThreadTeam:
    """Threads that divide the cores among them; operations of each use its own."""

    def __init__(self, members: int, threads: int) -> None:
        """Divide the cores of so many `threads` among so many `members`."""
        self.members = members
        # cores that cannot be divided evenly go to the first of them
        cores = iter([len(range(number, threads, members)) for number in range(members)])
        self._pool = ThreadPoolExecutor(
            members, "gradient", lambda: torch.set_num_threads(next(cores))
        )
        self._given_up = threading.Event()

    @property
    def given_up(self) -> bool:
        """Whether nobody waits for what is being computed any more."""
        return self._given_up.is_set()

    def map(self, compute: Callable[[int], _T], count: int) -> list[_T]:
        """`compute` of each number below `count`; an exception of one is raised for all.

        Returns or raises when none is being computed any more; they should look at `given_up` now
        and then.
        """
        self._given_up.clear()
        tasks: list[Future[_T]] = []
        failed: BaseException | None = None
        try:
            tasks += [self._pool.submit(compute, number) for number in range(count)]
            wait(tasks, return_when=FIRST_EXCEPTION)
            failed = _failure(tasks)
            if failed:
                raise failed
            return [task.result() for task in tasks]
        finally:
            self._given_up.set()
            _end(tasks)
            failed = None  # whose traceback holds this frame, and so all that it still names


def _failure(tasks: list[Future[_T]]) -> BaseException | None:
    ended = (task.exception() for task in tasks if task.done())
    return next(filter(None, ended), None)


def _end(tasks: list[Future[_T]]) -> None:
    """Start none of them any more, wait for the others, and forget all."""
    for task in tasks:
        task.cancel()
    wait(tasks)
    tasks.clear()
