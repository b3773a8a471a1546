"""Sentence pairs from line-aligned files, or from one file of records, in blocks of lines."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path
from typing import NamedTuple

from nmt.config import TextPair
from nmt.data.text.compressed import raw_lines
from nmt.data.text.lines import decode_lines
from nmt.data.text.records import LinePair, read_records
from nmt.errors import DataError

BLOCK = 20_000
"""The most pairs in a block: bounds the memory, whatever the size of the corpus."""
BLOCK_BYTES = 1 << 24
"""A block ends earlier where its source sides come to more bytes than this."""


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
    numbers: range
    """the number of each pair's line in both files, from 1"""

    def __len__(self) -> int:
        return len(self.numbers)

    def every(self, stride: int, skip: int) -> "Block":
        """Return every `stride`-th pair after the first `skip`."""
        sources, targets = self.sources[skip::stride], self.targets[skip::stride]
        numbers = self.numbers[skip::stride]
        return Block(sources, targets, self.source_file, self.target_file, numbers)

    def pair(self, place: int) -> SentencePair:
        """Return the pair at `place`, from 0; bytes that are not UTF-8 become lone surrogates."""
        return self.every(len(self), place).pairs("surrogateescape")[0]

    def pairs(self, errors: str = "strict") -> list[SentencePair]:
        """Decode the lines; line ends and a byte order mark of the file are dropped.

        `errors` is that of `bytes.decode`: what to do where the bytes are not UTF-8.

        Raises:
            DataError: naming file and line: a line is not UTF-8 and `errors` is "strict".
        """
        sources = decode_lines(self.sources, self.source_file, self.numbers, errors)
        targets = decode_lines(self.targets, self.target_file, self.numbers, errors)
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
        source, target = Path(self.text.paths[0]), Path(self.text.paths[-1])
        one_file = self.text.file is not None
        if one_file:
            fields = self.text.source_field, self.text.target_field
            pairs = read_records(source, fields, self.languages)
        else:  # a line is never b"", which stands for a missing one
            pairs = zip_longest(raw_lines(source), raw_lines(target), fillvalue=b"")
        count = 0
        while taken := _take_block(pairs):
            sources, targets = [pair[0] for pair in taken], [pair[1] for pair in taken]
            if not one_file and not (all(sources) and all(targets)):
                rest = sum(1 for _ in pairs)  # lines that only the longer file has
                found = [count + sum(map(bool, s)) + rest * bool(s[-1]) for s in (sources, targets)]
                raise DataError(
                    f"{source} has {_plural(found[0])}, {target} has {_plural(found[1])}; "
                    "expected as many, line n of one being the translation of line n of the other"
                )
            numbers = range(count + 1, count + 1 + len(taken))
            yield Block(sources, targets, source, target, numbers)
            count += len(taken)
        if count == 0 and one_file:
            raise DataError(f"{source} is empty; expected one sentence pair a record")
        if count == 0:
            raise DataError(f"{source} and {target} are empty; expected one sentence per line")


def read_pairs(source: Path, target: Path) -> Iterator[SentencePair]:
    """Yield the pairs of two line-aligned files in order.

    Raises:
        DataError: what `ParallelText.blocks` and `Block.pairs` raise. A difference in length is
            found at the end of the shorter file.
    """
    return iter(ParallelText(TextPair(source=str(source), target=str(target))))


def _take_block(pairs: Iterator[LinePair]) -> list[LinePair]:
    """Take the next `BLOCK` pairs of lines, or fewer where they are long."""
    taken: list[LinePair] = []
    size = 0
    while len(taken) < BLOCK and size < BLOCK_BYTES:
        some = list(islice(pairs, min(500, BLOCK - len(taken))))
        if not some:
            break
        taken += some
        size += sum(len(source) for source, _ in some)
    return taken


def _plural(count: int) -> str:
    return "1 line" if count == 1 else f"{count} lines"
