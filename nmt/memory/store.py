"""A translation memory: a file of SQLite, which several processes may search and add to at once.

Each transaction is complete or absent, also after a crash, because SQLite writes it to a log first
(WAL). What is added is found by the next search, in other processes as well.
"""

import contextlib
import itertools
import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from nmt.data.languages import find_language
from nmt.data.text.lines import check_text
from nmt.data.text.similarity import equality_key, signature, similarities
from nmt.errors import ConfigError, DataError
from nmt.files import check_format
from nmt.memory.index import SCHEMA, index_new_pairs, likely_pairs, segments
from nmt.memory.match import Match, MemoryPair, Query

FORMAT = 1
"""of the file; another one if `signature` or the tables change"""
_APPLICATION = 0x6E6D746D
"""the number by which SQLite knows files of this program"""
_SECONDS = 30.0
"""how long a process waits for another one that writes"""
_TABLES = f"""
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {FORMAT};
PRAGMA journal_mode = WAL;
CREATE TABLE about (source TEXT, target TEXT);
CREATE TABLE pairs (
    id INTEGER PRIMARY KEY, key INTEGER, source TEXT, target TEXT, time INTEGER, author TEXT,
    domain TEXT, context TEXT, signature TEXT
);
CREATE INDEX pairs_by_key ON pairs (key);
{SCHEMA}
"""
_FIELDS = "source, target, time, author, domain, context"
_BATCH = 10_000
"""pairs that are added in one transaction"""
_MOST_COMPARED = 96
"""indexed pairs that are compared word by word with a text"""
_MORE = 5
"""pairs that are read beyond those that are wanted, as numbers may change their order"""
_MOST_EQUAL = 50
"""equal sources of which the best pair is chosen"""


class Memory:
    """Pairs that were translated before, in a file.

    Threads may share it; after a fork, each process opens it again. All methods raise a DataError
    if the file cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        """Open the memory in a file."""
        if path.exists() and not path.is_file():
            raise DataError(f"{path}: is a folder or a device; name the file of a memory")
        if not path.is_file():
            raise DataError(f"{path}: no such memory; make one with nmt memory create {path}")
        self.path = path
        self._lock = threading.RLock()
        self._new_pairs: dict[int, str] = {}  # signatures of pairs that are in no segment
        with self._explain_errors():
            self._connection = sqlite3.connect(
                path, timeout=_SECONDS, isolation_level=None, check_same_thread=False
            )
            [application] = self._connection.execute("PRAGMA application_id").fetchone()
            [version] = self._connection.execute("PRAGMA user_version").fetchone()
            if application != _APPLICATION:
                raise DataError(f"{path}: is a database of another program, not a memory of nmt")
            check_format({"format": version}, FORMAT, path, "export the memory there as TMX")
            self._connection.execute("PRAGMA mmap_size = 2147418112")  # the most that it takes
            languages = self._connection.execute("SELECT source, target FROM about").fetchone()
            self.languages: tuple[str, str] = languages
            """the codes of source and target"""

    @classmethod
    def create(cls, path: Path, source_language: str, target_language: str) -> "Memory":
        """Create an empty memory of a direction and open it.

        Raises:
            ConfigError: the file exists, or a language is none.
        """
        codes = [find_language(code).code for code in (source_language, target_language)]
        if path.exists():
            raise ConfigError(f"{path}: exists already; choose another file, or remove it")
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            with _explained(path), contextlib.closing(sqlite3.connect(temporary)) as connection:
                connection.executescript(_TABLES)
                with connection:
                    connection.execute("INSERT INTO about VALUES (?, ?)", codes)
            temporary.rename(path)
        finally:
            temporary.unlink(missing_ok=True)
        return cls(path)

    @classmethod
    def open(cls, path: Path) -> "Memory":
        """Open the memory in a file.

        Raises:
            DataError: there is none, or it is damaged, or was written by a newer program.
        """
        return cls(path)

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

    def count_pairs(self) -> int:
        """Return the number of pairs."""
        with self._explain_errors():
            return int(self._connection.execute("SELECT count(*) FROM pairs").fetchone()[0])

    def add(self, pairs: Iterable[MemoryPair]) -> int:
        """Add pairs, and return how many are new.

        A pair that is there already, with the same target and a source that is the same but for
        spaces, takes the new time, and the new author, domain and context if they are not empty.
        Pairs are written in batches, each complete or absent.
        """
        count = 0
        remaining = iter(pairs)
        batch = list(itertools.islice(remaining, _BATCH))
        while batch:
            rows = [(equality_key(pair.source), pair, signature(pair.source)) for pair in batch]
            batch = list(itertools.islice(remaining, _BATCH))
            with self._transaction("BEGIN IMMEDIATE"):
                count += sum(self._add_row(*row) for row in rows)
                index_new_pairs(self._connection, added=0 if batch else count)
        return count

    def _add_row(self, key: int, pair: MemoryPair, of_source: str) -> bool:
        """Add a pair, or update what is known about it; return whether it is new.

        `key` and `of_source` are the equality key and the signature of its source.
        """
        check_text(f"{pair.source}{pair.target}", "a pair")
        query = "SELECT id, target, time FROM pairs WHERE key = ?"
        same = self._connection.execute(query, (key,)).fetchall()
        # newer than other targets of the source, also if they were added within this second
        others = (1 + seconds for _, target, seconds in same if target != pair.target)
        seconds = pair.time or max(int(time.time()), *others, 0)
        about = (seconds, pair.author, pair.domain, pair.context)
        for identity, target, _ in same:
            if target == pair.target:
                query = (
                    "UPDATE pairs SET time = ?, author = coalesce(nullif(?, ''), author), domain "
                    "= coalesce(nullif(?, ''), domain), context = coalesce(nullif(?, ''), context) "
                    "WHERE id = ?"
                )
                self._connection.execute(query, (*about, identity))
                return False
        values = (key, pair.source, pair.target, *about, of_source)
        query = "INSERT INTO pairs VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)"
        self._connection.execute(query, values)
        return True

    def search(
        self, text: str, count: int = 1, minimum: float = 0.5, before: str | None = None
    ) -> list[Match]:
        """Return up to `count` pairs whose sources are most similar to a text, best first.

        Of pairs that are as similar, those come first whose sentence before is that of the text,
        and then the newest ones.

        Args:
            text: The sentence to look for.
            count: The most results.
            minimum: The lowest score, above 0; scores are those of `nmt.data.text.similarity`.
            before: The sentence before the text.
        """
        query = Query(text, before)
        with self._transaction("BEGIN"):
            chosen = self._equal(text)
            chosen |= dict.fromkeys(self._similar(signature(text), count + _MORE, minimum))
            marks = ",".join("?" * len(chosen))
            rows = self._connection.execute(
                f"SELECT id, {_FIELDS} FROM pairs WHERE id IN ({marks})", list(chosen)
            ).fetchall()
        pairs = [(row[0], MemoryPair(*row[1:])) for row in rows]
        ranked = [
            (match.score, match.same_context, pair.time, match.identity, match)
            for match, pair in ((query.match(*each), each[1]) for each in pairs)
            if match.score >= minimum
        ]
        return [match for *_, match in sorted(ranked, key=lambda each: each[:4])[::-1][:count]]

    def _equal(self, text: str) -> dict[int, None]:
        """Return the newest pairs whose source equals a text."""
        query = "SELECT id FROM pairs WHERE key = ? ORDER BY time DESC LIMIT ?"
        rows = self._connection.execute(query, (equality_key(text), _MOST_EQUAL))
        return dict.fromkeys(identity for (identity,) in rows)

    def _similar(self, text: str, count: int, minimum: float) -> list[int]:
        """Return the pairs whose signatures are most similar to that of a text."""
        signatures = {**self._unindexed()}
        likely = likely_pairs(self._connection, text, minimum, _MOST_COMPARED)
        marks = ",".join("?" * len(likely))
        query = f"SELECT id, signature FROM pairs WHERE id IN ({marks})"
        signatures.update(self._connection.execute(query, likely))
        if not text or not signatures:
            return []
        scores = similarities(text, [*signatures.values()], minimum)
        best = (-scores).argsort(kind="stable")[:count]
        identities = [*signatures]
        return [identities[place] for place in best if scores[place] > 0]

    def _unindexed(self) -> dict[int, str]:
        """Return the signatures of the pairs that are in no segment; only new ones are read."""
        last = max((segment.last for segment in segments(self._connection)), default=0)
        known = max(self._new_pairs, default=last)
        if known < last or any(identity <= last for identity in self._new_pairs):
            self._new_pairs, known = {}, last
        query = "SELECT id, signature FROM pairs WHERE id > ?"
        self._new_pairs.update(self._connection.execute(query, (known,)))
        return self._new_pairs

    def facts(self) -> dict[str, Any]:
        """Return the number of pairs, their first and last time, and the pairs of each label."""
        with self._explain_errors():
            query = "SELECT count(*), min(time), max(time), sum(context != '') FROM pairs"
            count, first, last, contexts = self._connection.execute(query).fetchone()
            facts: dict[str, Any] = {"pairs": count, "with_context": contexts or 0}
            for name, seconds in (("first", first), ("last", last)):
                facts[name] = seconds and datetime.fromtimestamp(seconds, UTC).isoformat()
            for label in ("author", "domain"):
                query = f"SELECT {label}, count(*) FROM pairs WHERE {label} != '' GROUP BY {label}"
                facts[f"{label}s"] = dict(self._connection.execute(f"{query} ORDER BY 2 DESC"))
        return facts

    def pairs(self) -> Iterator[MemoryPair]:
        """Yield all pairs, in the order in which they were added."""
        last = 0
        query = f"SELECT id, {_FIELDS} FROM pairs WHERE id > ? ORDER BY id LIMIT {_BATCH}"
        while True:
            with self._explain_errors():
                rows = self._connection.execute(query, (last,)).fetchall()
            yield from (MemoryPair(*row[1:]) for row in rows)
            if not rows:
                return
            last = rows[-1][0]

    @contextlib.contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        """Run a block on one state of the file; what it writes is complete or absent."""
        with self._explain_errors():
            self._connection.execute(begin)
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:  # SQLite may have ended it
                    self._connection.execute("ROLLBACK")
                raise

    @contextlib.contextmanager
    def _explain_errors(self) -> Iterator[None]:
        with self._lock, _explained(self.path):
            yield


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn an error of SQLite inside the block into a DataError."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            reason = f"another process has written for over {_SECONDS:.0f} s; try again later"
        elif code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            reason = f"is damaged, or no translation memory ({error}); use a copy of it"
        elif code == sqlite3.SQLITE_FULL:
            reason = "the disk is full; what was added before stays. Free some space, and try again"
        else:
            reason = f"cannot be used: {error}; its folder must be one to write to"
        raise DataError(f"{path}: {reason}") from error
