"""Sentence pairs from line-aligned files, read without ever losing the alignment.

A line ends at the byte "\\n" and nowhere else. `str.splitlines` and text mode also split at
carriage returns, U+2028, form feeds and others, and one such character inside a sentence would
shift every later pair.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeVar

from nmt.config import TextPair
from nmt.data.text.compressed import raw_lines
from nmt.data.text.lines import decode_lines
from nmt.data.text.records import read_records
from nmt.errors import DataError

BLOCK = 20_000
"""pairs read at once: bounds the memory, whatever the size of the corpus"""
BLOCK_BYTES = 1 << 24
"""fewer pairs where their source sides come to more than this"""

_Line = TypeVar("_Line", bytes, tuple[bytes, bytes])


class SentencePair(NamedTuple):
    """A sentence and its translation."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive pairs as they stand in their files: undecoded, so cheap to hand on."""

    sources: list[bytes]
    targets: list[bytes]
    source_file: Path
    target_file: Path
    first_line: int
    """of both files, counted from 1"""
    stride: int = 1
    """from one line to the next in the files"""

    def every(self, stride: int, skip: int) -> "Block":
        """Every `stride`-th pair after the first `skip`."""
        return replace(
            self,
            sources=self.sources[skip::stride],
            targets=self.targets[skip::stride],
            first_line=self.first_line + skip,
            stride=stride,
        )

    def __len__(self) -> int:
        return len(self.sources)

    def line(self, place: int) -> "Block":
        """The one pair at `place`, counted from 0."""
        sources, targets = self.sources[place : place + 1], self.targets[place : place + 1]
        return replace(self, sources=sources, targets=targets, first_line=self.first_line + place)

    def pairs(self, errors: str = "strict") -> list[SentencePair]:
        """Decode the lines, without their ends; a byte order mark opens no sentence.

        `errors` is that of `bytes.decode`: what to do where the bytes are not UTF-8.

        Raises:
            DataError: naming file and line, unless `errors` lets it pass.
        """
        numbers = range(self.first_line, self.first_line + len(self) * self.stride, self.stride)
        sources = decode_lines(self.sources, self.source_file, numbers, errors)
        targets = decode_lines(self.targets, self.target_file, numbers, errors)
        return list(map(SentencePair, sources, targets))


@dataclass(frozen=True, slots=True)
class ParallelText:
    """The pairs of a text; iterating again reads them again."""

    text: TextPair
    languages: tuple[str, str] = ("source", "target")
    """the keys under which a record holds its two sides, unless the text names others"""

    def __iter__(self) -> Iterator[SentencePair]:
        for block in self.blocks():
            yield from block.pairs()

    def blocks(self) -> Iterator[Block]:
        """The same in blocks of up to `BLOCK` pairs.

        Raises:
            DataError: no pair at all, files of unequal length (both counts are named), or one
                that cannot be read.
        """
        if self.text.file is not None:
            path = Path(self.text.file)
            fields = self.text.source_field, self.text.target_field
            records = read_records(path, fields, self.languages)
            first = 1
            while block := _take(records):
                yield Block([r[0] for r in block], [r[1] for r in block], path, path, first)
                first += len(block)
            if first == 1:
                raise DataError(f"{path} is empty; expected one sentence pair a record")
            return
        yield from _aligned_blocks(*map(Path, self.text.paths))


def read_pairs(source: Path, target: Path) -> Iterator[SentencePair]:
    """Yield the pairs of two line-aligned files in order.

    Raises:
        DataError: a file is empty, or their line counts differ (found at the end of the shorter
            one; both counts are named); and whatever `read_lines` raises.
    """
    return iter(ParallelText(TextPair(source=str(source), target=str(target))))


def _aligned_blocks(source: Path, target: Path) -> Iterator[Block]:
    """Blocks of two files in step."""
    source_lines, target_lines = raw_lines(source), raw_lines(target)
    count = 0
    while True:
        sources = _take(source_lines)
        # one more where the source has ended: is the target longer?
        targets = list(islice(target_lines, len(sources) or 1))
        if len(sources) != len(targets):
            # the longer file is read to its end, to be counted
            counts = (
                count + len(sources) + sum(1 for _ in source_lines),
                count + len(targets) + sum(1 for _ in target_lines),
            )
            raise DataError(
                f"{source} has {_lines(counts[0])}, {target} has {_lines(counts[1])}; "
                "expected as many, line n of one being the translation of line n of the other"
            )
        if not sources:
            break
        yield Block(sources, targets, source, target, count + 1)
        count += len(sources)
    if count == 0:
        raise DataError(f"{source} and {target} are empty; expected one sentence per line")


def _take(lines: Iterator[_Line]) -> list[_Line]:
    """The next `BLOCK` lines, or fewer where they are long."""
    taken: list[_Line] = []
    size = 0
    while len(taken) < BLOCK and size < BLOCK_BYTES:
        some = list(islice(lines, min(500, BLOCK - len(taken))))
        if not some:
            break
        taken += some
        size += sum(map(len, some)) if isinstance(some[0], bytes) else sum(len(s) for s, _ in some)
    return taken


def _lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count} lines"
