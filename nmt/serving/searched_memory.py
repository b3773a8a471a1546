"""A translation memory as engines search it, and what a client is told if that fails."""

import contextlib
import sqlite3
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from nmt.errors import DataError
from nmt.memory.match import Match
from nmt.memory.store import Memory
from nmt.serving.answers import RequestError, busy


class SearchedMemory:
    """A memory as engines search it; each process opens the file when it first does so.

    Lines of several clients are translated together, so the line before is not that of a text.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    @cached_property
    def _memory(self) -> Memory:
        return Memory.open(self._path)

    def search(
        self, text: str, count: int = 1, minimum: float = 0.5, before: str | None = None
    ) -> list[Match]:
        """Return what `Memory.search` finds.

        Raises:
            RequestError: the file is locked or damaged.
        """
        with clients_told():
            return self._memory.search(text, count, minimum)


@contextlib.contextmanager
def clients_told() -> Iterator[None]:
    """Turn an error of the file of a memory inside the block into a RequestError without a path."""
    try:
        yield
    except DataError as error:
        if not isinstance(error.__cause__, sqlite3.Error):
            raise
        code = error.__cause__.sqlite_errorcode & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise busy("another program writes into the memory; try again later") from error
        raise RequestError(
            500, "the translation memory cannot be read or written; its operator finds why"
        ) from error
