"""Sentence pairs from line-aligned files, or from one file of records, in blocks of lines."""

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
"""The most pairs in a block: bounds the memory, whatever the size of the corpus."""
BLOCK_BYTES = 1 << 24
"""A block ends earlier where its source sides come to more bytes than this."""

_Line = TypeVar("_Line", bytes, tuple[bytes, bytes])


class SentencePair(NamedTuple):
    """A sentence and its translation."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive pairs as undecoded lines, which are cheap to send to another process."""

    sources: list[bytes]
    targets: list[bytes]
    source_file: Path
    target_file: Path
    first_line: int
    """the number of the first pair's line in both files, from 1"""
    stride: int = 1
    """the step from one pair's line number to the next one's"""

    def __len__(self) -> int:
        return len(self.sources)

    def every(self, stride: int, skip: int) -> "Block":
        """Return every `stride`-th pair after the first `skip`."""
        return replace(
            self,
            sources=self.sources[skip::stride],
            targets=self.targets[skip::stride],
            first_line=self.first_line + skip,
            stride=stride,
        )

    def pair(self, place: int) -> SentencePair:
        """Return the pair at `place`, from 0; bytes that are not UTF-8 become lone surrogates."""
        return self.every(len(self), place).pairs("surrogateescape")[0]

    def pairs(self, errors: str = "strict") -> list[SentencePair]:
        """Decode the lines; line ends and a byte order mark of the file are dropped.

        `errors` is that of `bytes.decode`: what to do where the bytes are not UTF-8.

        Raises:
            DataError: naming file and line: a line is not UTF-8 and `errors` is "strict".
        """
        numbers = range(self.first_line, self.first_line + len(self) * self.stride, self.stride)
        sources = decode_lines(self.sources, self.source_file, numbers, errors)
        targets = decode_lines(self.targets, self.target_file, numbers, errors)
        return list(map(SentencePair, sources, targets))


@dataclass(frozen=True, slots=True)
class ParallelText:
    """The pairs of one text; each iteration reads its files again."""

    text: TextPair
    languages: tuple[str, str] = ("source", "target")
    """the keys of a record's two sides, unless the text names others"""

    def __iter__(self) -> Iterator[SentencePair]:
        for block in self.blocks():
            yield from block.pairs()

    def blocks(self) -> Iterator[Block]:
        """Yield the pairs in order, in blocks of at most `BLOCK` pairs.

        Raises:
            DataError: the text has no pair, its files differ in length (the message gives both
                line counts), or a file cannot be read.
        """
        if self.text.file is None:
            yield from _aligned_blocks(*map(Path, self.text.paths))
            return
        path = Path(self.text.file)
        fields = self.text.source_field, self.text.target_field
        records = read_records(path, fields, self.languages)
        first = 1
        while taken := _take_block(records):
            yield Block([r[0] for r in taken], [r[1] for r in taken], path, path, first)
            first += len(taken)
        if first == 1:
            raise DataError(f"{path} is empty; expected one sentence pair a record")


def read_pairs(source: Path, target: Path) -> Iterator[SentencePair]:
    """Yield the pairs of two line-aligned files in order.

    Raises:
        DataError: what `ParallelText.blocks` and `Block.pairs` raise. A difference in length is
            found at the end of the shorter file.
    """
    return iter(ParallelText(TextPair(source=str(source), target=str(target))))


def _aligned_blocks(source: Path, target: Path) -> Iterator[Block]:
    """Yield blocks of two files that are read side by side."""
    source_lines, target_lines = raw_lines(source), raw_lines(target)
    count = 0
    while True:
        sources = _take_block(source_lines)
        # at the end of the source, ask for one more line: the target may be longer
        targets = list(islice(target_lines, len(sources) or 1))
        if len(sources) != len(targets):
            # read the longer file to its end, to count its lines
            source_count = count + len(sources) + sum(1 for _ in source_lines)
            target_count = count + len(targets) + sum(1 for _ in target_lines)
            raise DataError(
                f"{source} has {_plural(source_count)}, {target} has {_plural(target_count)}; "
                "expected as many, line n of one being the translation of line n of the other"
            )
        if not sources:
            break
        yield Block(sources, targets, source, target, count + 1)
        count += len(sources)
    if count == 0:
        raise DataError(f"{source} and {target} are empty; expected one sentence per line")


def _take_block(lines: Iterator[_Line]) -> list[_Line]:
    """Take the next `BLOCK` lines or pairs of lines, or fewer where they are long."""
    taken: list[_Line] = []
    size = 0
    while len(taken) < BLOCK and size < BLOCK_BYTES:
        some = list(islice(lines, min(500, BLOCK - len(taken))))
        if not some:
            break
        taken += some
        size += sum(map(len, some)) if isinstance(some[0], bytes) else sum(len(s) for s, _ in some)
    return taken


def _plural(count: int) -> str:
    return "1 line" if count == 1 else f"{count} lines"
