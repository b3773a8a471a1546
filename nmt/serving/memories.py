"""The translation memories of a server.

Without keys, everybody uses all of them. With keys, the entry of a key names those that it may use,
and others do not exist for it. The server itself looks for whole texts and adds pairs, in a thread
for each, so that no search waits while another program writes; the engines search for sentences.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from nmt.errors import ConfigError
from nmt.memory.match import MemoryPair
from nmt.memory.store import Memory
from nmt.serving.answers import RequestError
from nmt.serving.models import Models
from nmt.serving.searched_memory import clients_told
from nmt.serving.settings import ServerSettings

SEARCHED_AT_ONCE = 16
"""texts after which another request may search"""
Result = TypeVar("Result")


@dataclass(frozen=True)
class ServedMemory:
    """A memory, and the direction of the server that it is for."""

    name: str
    source: str
    target: str
    searched: Memory
    written: Memory
    """the same file, opened once more"""


class Memories:
    """The memories of a server, by their names."""

    def __init__(self, settings: ServerSettings, models: Models) -> None:
        """Open all of them.

        Raises:
            NmtError: one is missing or damaged, or no model translates in its direction.
        """
        self._memories = {
            name: _open(name, Path(path), models) for name, path in settings.memories.items()
        }
        self._searching, self._writing = (ThreadPoolExecutor(1, "memory") for _ in range(2))

    def close(self) -> None:
        """Close the files, after what is being done."""
        for thread in (self._searching, self._writing):
            thread.shutdown()
        for each in self._memories.values():
            each.searched.close()
            each.written.close()

    def of_names(self, names: Collection[str]) -> list[ServedMemory]:
        """Return the memories with these names, which a key may use."""
        return [memory for name, memory in self._memories.items() if name in names]

    def check_direction(self, names: Sequence[str], source: str, target: str) -> None:
        """Raise a RequestError if one of these memories is not for a pair of languages."""
        for each in self.of_names(names):
            if (each.source, each.target) != (source, target):
                raise RequestError(
                    400,
                    f"the memory {each.name!r} translates {each.source} to {each.target}, and "
                    f"{source} to {target} is asked for; leave it out",
                )

    async def have_whole(self, names: Sequence[str], texts: Sequence[str]) -> list[bool]:
        """Return for each text whether one of these memories has all of it as one source.

        Raises:
            RequestError: a memory cannot be read now.
        """
        memories = self.of_names(names)
        if not memories:
            return [False] * len(texts)

        def find(some: Sequence[str]) -> list[bool]:
            return [any(each.searched.search(t, 1, 1.0) for each in memories) for t in some]

        found: list[bool] = []
        for start in range(0, len(texts), SEARCHED_AT_ONCE):
            some = texts[start : start + SEARCHED_AT_ONCE]
            found += await self._run(self._searching, partial(find, some))
        return found

    async def add(self, name: str, pairs: Sequence[MemoryPair]) -> int:
        """Add pairs to a memory, all or none of them; return how many are new.

        Raises:
            RequestError: the file is locked or damaged.
        """
        [memory] = self.of_names([name])
        return await self._run(self._writing, partial(memory.written.add, pairs))

    async def _run(self, thread: ThreadPoolExecutor, work: Callable[[], Result]) -> Result:
        with clients_told():
            return await asyncio.get_running_loop().run_in_executor(thread, work)


def _open(name: str, path: Path, models: Models) -> ServedMemory:
    """Open a memory twice.

    Raises:
        NmtError: it is missing or damaged, or no model translates in its direction.
    """
    memory = Memory.open(path)
    source = models.source_code(memory.languages[0])
    target = models.target_code(memory.languages[1], source)
    if (source, target) not in [(each.source, each.target) for each in models.directions]:
        raise ConfigError(
            f"memory {name}: {path} is from {' to '.join(memory.languages)}, and no model of this "
            "server translates so; leave it out, or serve such a model"
        )
    return ServedMemory(name, source, target, memory, Memory.open(path))
