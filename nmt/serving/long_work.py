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
        self._lanes = [_Lane() for _ in range(len(LANES) + 1)]

    async def run(self, client: str, characters: float, work: Callable[[], Result]) -> Result:
        """Return the result of `work`, on texts of so many characters, once it is its turn."""
        if characters <= QUICK_CHARACTERS:
            return work()
        lane = self._lanes[bisect_left(LANES, characters)]
        # a client that waits for its own lock has one place among those that wait for the lane
        own_turn = lane.turns.setdefault(client, asyncio.Lock())
        async with own_turn, lane.is_free:
            return await asyncio.get_running_loop().run_in_executor(lane.thread, work)


class _Lane:
    def __init__(self) -> None:
        self.thread = ThreadPoolExecutor(1, "long work")
        self.is_free = asyncio.Lock()
        self.turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
