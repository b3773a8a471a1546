"""Threads that compute the gradients of shares of a step side by side, on cores of their own.

On a CPU a second core makes one operation little faster where matrices are small: the two wait for
each other after every one of them. Whole passes through the model do not.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

import torch

_T = TypeVar("_T")

# Bytes: each thread holds a gradient of the whole model for a moment.
_GRADIENTS = 1 << 30


def team_size(threads: int, parameters: int) -> int:
    """How many threads share a step of a model with so many float32 parameters."""
    return max(1, min(threads, _GRADIENTS // (4 * parameters)))


class Team:
    """A few threads that work on one thing at a time; operations of each use its own cores."""

    def __init__(self, size: int, threads: int) -> None:
        """Share `threads` cores among `size` members."""
        self.size = size
        self._pool = ThreadPoolExecutor(
            size, "gradient", lambda: torch.set_num_threads(max(1, threads // size))
        )
        self._given_up = threading.Event()

    @property
    def given_up(self) -> bool:
        """Whether nobody waits for what is being computed any more."""
        return self._given_up.is_set()

    def each(self, compute: Callable[[int], _T]) -> list[_T]:
        """`compute` of every member's number, from 0; an exception of one is raised for all.

        Returns or raises when all are done. They should look at `given_up` now and then.
        """
        self._given_up.clear()
        tasks = [self._pool.submit(compute, number) for number in range(self.size)]
        try:
            wait(tasks)
        except BaseException:
            self._given_up.set()
            wait(tasks)
            raise
        return [task.result() for task in tasks]
