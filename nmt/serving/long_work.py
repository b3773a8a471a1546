"""Long work in Python, in threads: little of it at a time, and clients take turns.

Python lets one thread compute at a time. If many did such work, the one that answers all requests
would rarely have its turn.
"""

import asyncio
import math
from bisect import bisect_left
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar
from weakref import WeakValueDictionary

QUICK_CHARACTERS = 2_000
"""work on so many characters is done at once"""
LANES = (10_000, 100_000, 100_000_000)
"""most characters of what the first threads work on, so that a file keeps no text waiting"""
UNKNOWN = math.inf
"""in place of characters: nobody knows how long the work takes; the last thread does it"""
Result = TypeVar("Result")


class LongWork:
    """Does work in one of a few threads, according to its size; clients take turns in each."""

    def __init__(self) -> None:
        lanes = range(len(LANES) + 1)
        self._threads = [ThreadPoolExecutor(1, "long work") for _ in lanes]
        self._are_free = [asyncio.Lock() for _ in lanes]
        self._turns: list[WeakValueDictionary[str, asyncio.Lock]]
        self._turns = [WeakValueDictionary() for _ in lanes]

    async def run(self, client: str, characters: float, work: Callable[[], Result]) -> Result:
        """Return the result of `work`, on texts of so many characters, once it is its turn."""
        if characters <= QUICK_CHARACTERS:
            return work()
        lane = bisect_left(LANES, characters)
        # a client that waits for its own lock has one place among those that wait for the lane
        own_turn = self._turns[lane].setdefault(client, asyncio.Lock())
        async with own_turn, self._are_free[lane]:
            return await asyncio.get_running_loop().run_in_executor(self._threads[lane], work)
