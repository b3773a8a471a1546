"""How fast a translation memory is, and how large, as it grows.

For each size: processor time to add the pairs, the file beside the text in it, the time to open it,
and the processor time of searches in one thread. Processor time, as other programs may run.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
from data import variations
from measuring import report

from nmt.memory.match import MemoryPair
from nmt.memory.store import Memory


def pairs_of(source: Path, target: Path, count: int) -> Iterator[MemoryPair]:
    """Yield pairs of two files; once they are at their end, variations of them."""
    lines = zip(variations(source), variations(target), strict=False)
    for source_line, target_line in islice(lines, count):
        yield MemoryPair(source_line.decode().rstrip("\n"), target_line.decode().rstrip("\n"))


def search_times(memory: Memory, queries: list[str]) -> tuple[list[float], float]:
    """Return milliseconds of processor time for each search, and the share that finds a pair."""
    times, found = [], 0
    for text in queries:
        start = time.process_time()
        found += bool(memory.search(text))
        times.append(1000 * (time.process_time() - start))
    return times, found / len(queries)


def measure(arguments: argparse.Namespace, count: int, folder: Path) -> None:
    """Print the figures of a memory of `count` pairs."""
    path = folder / f"{count}.memory"
    start = time.process_time()
    with Memory.create(path, "en", "fr") as memory:
        memory.add(pairs_of(arguments.source, arguments.target, count))
    added = time.process_time() - start
    pairs = pairs_of(arguments.source, arguments.target, count)
    text = sum(len(f"{pair.source}{pair.target}".encode()) for pair in pairs)
    start = time.process_time()
    with Memory.open(path) as memory:
        memory.search("")
        opened = 1000 * (time.process_time() - start)
        queries = arguments.queries.read_text("utf-8").splitlines()
        search_times(memory, queries[:100])  # pages of the file into memory
        times, share = search_times(memory, queries)
    report(
        f"memory of {count:,} pairs",
        add_seconds=added,
        text_megabytes=text / 1e6,
        file_over_text=path.stat().st_size / text,
        open_milliseconds=opened,
        search_milliseconds_median=float(np.median(times)),
        search_milliseconds_99=float(np.quantile(times, 0.99)),
        share_with_match=share,
    )
    path.unlink()


def main() -> None:
    """Read the arguments and measure each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, required=True, help="plain text, a line a sentence")
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--queries", type=Path, required=True, help="sentences to search for")
    parser.add_argument("--pairs", type=int, nargs="+", default=[10_000, 1_000_000])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for count in arguments.pairs:
            measure(arguments, count, Path(folder))


if __name__ == "__main__":
    main()
