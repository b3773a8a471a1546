"""A translation memory in a file of SQLite."""

import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from types import TracebackType

import numpy as np

from nmt.data.text.similarity import normalise_spaces, signature, similarities
from nmt.errors import ConfigError, DataError
from nmt.memory.match import Match, MemoryPair

_SCHEMA = """
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE pairs (
    id INTEGER PRIMARY KEY, source TEXT, target TEXT, time INTEGER, author TEXT, domain TEXT,
    context TEXT, signature TEXT
);
"""


class Memory:
    """Pairs that were translated before, in a file that several processes may use at once."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection, self._path = connection, path
        about = dict(connection.execute("SELECT name, value FROM about"))
        self.languages: tuple[str, str] = (about["source"], about["target"])

    @classmethod
    def create(cls, path: Path, source_language: str, target_language: str) -> "Memory":
        """Create an empty memory for a direction."""
        if path.exists():
            raise ConfigError(f"{path}: exists already; choose another file, or remove it")
        connection = sqlite3.connect(path, timeout=30, check_same_thread=False)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.executescript(_SCHEMA)
        rows = (("source", source_language), ("target", target_language))
        with connection:
            connection.executemany("INSERT INTO about VALUES (?, ?)", rows)
        return cls(connection, path)

    @classmethod
    def open(cls, path: Path) -> "Memory":
        """Open a memory."""
        if not path.is_file():
            raise DataError(f"{path}: no such memory; make one with nmt memory create")
        return cls(sqlite3.connect(path, timeout=30, check_same_thread=False), path)

    def __enter__(self) -> "Memory":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def add(self, pairs: Iterable[MemoryPair]) -> int:
        """Add pairs, and return how many are new; they are found at once."""
        count = 0
        with self._connection:
            for pair in pairs:
                self._connection.execute(
                    "INSERT INTO pairs VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        *(pair.source, pair.target, pair.time or int(time.time())),
                        *(pair.author, pair.domain, pair.context, signature(pair.source)),
                    ),
                )
                count += 1
        return count

    def search(
        self, text: str, count: int = 1, minimum: float = 0.5, before: str | None = None
    ) -> list[Match]:
        """Return up to `count` pairs whose sources are most similar to a text, best first.

        Args:
            text: The sentence to look for.
            count: The most results.
            minimum: The lowest score, from 0 to 1.
            before: The sentence before the text; of pairs that are as near, one with the same
                sentence before it is first.
        """
        rows = self._connection.execute(
            "SELECT id, source, target, context, signature FROM pairs ORDER BY id DESC"
        ).fetchall()
        scores = similarities(signature(text), [row[4] for row in rows], minimum)
        normal = normalise_spaces(text)
        found = []
        for i in np.flatnonzero(scores >= max(minimum, 1e-9)):
            identity, source, target, context, _ = rows[i]
            score = float(scores[i])
            if score == 1 and normalise_spaces(source) != normal:
                score = 0.99
            is_same = before is not None and normalise_spaces(before) == normalise_spaces(context)
            found.append(Match(source, target, score, identity, is_same))
        found.sort(key=lambda match: (match.score, match.same_context, match.identity))
        return found[::-1][:count]

    def pairs(self) -> Iterator[MemoryPair]:
        """Yield all pairs, in the order in which they were added."""
        query = "SELECT source, target, time, author, domain, context FROM pairs ORDER BY id"
        with closing(self._connection.execute(query)) as rows:
            yield from (MemoryPair(*row) for row in rows)
