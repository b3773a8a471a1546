"""Text that a model is to translate into training text: monolingual files, or parallel sources."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from nmt.data.text.contamination import HeldOutText
from nmt.data.text.lines import open_bytes, read_lines
from nmt.data.text.parallel_text import ParallelText
from nmt.errors import DataError


class MonolingualLine(NamedTuple):
    """A line to translate, and where it stands."""

    text: str
    file: int
    """the number of its file, from 0"""
    line: int
    """the number of the line in the file, from 1"""
    reference: str = ""
    """the translation that parallel text has for it; empty: none"""


@dataclass
class MonolingualText:
    """The lines of several files, in order, without blank ones; each iteration reads the files."""

    paths: Sequence[Path]
    held_out: HeldOutText | None = None
    """sentences that are left out: those of validation and test sets"""
    left_out: int = field(default=0, init=False)
    """how many lines of the last iteration were held out"""

    def __iter__(self) -> Iterator[MonolingualLine]:
        self.left_out = 0
        for file, path in enumerate(self.paths):
            for number, text in enumerate(read_lines(path), start=1):
                if not text.strip():
                    continue
                if self.held_out and self.held_out.occurs_in(text):
                    self.left_out += 1
                    continue
                yield MonolingualLine(text, file, number)

    def facts(self) -> list[dict[str, Any]]:
        """Return path and SHA-256 of each file, in order; reads all of them.

        Raises:
            DataError: a file cannot be read, or all of them are empty.
        """
        facts, size = _facts_and_size(self.paths)
        if not size:
            names = ", ".join(map(str, self.paths))
            raise DataError(f"{names}: no text; expected one sentence a line")
        return facts


@dataclass(frozen=True)
class SourceLines:
    """The sources of parallel texts, each with its target as the reference, in order."""

    texts: Sequence[ParallelText]

    def __iter__(self) -> Iterator[MonolingualLine]:
        for number, text in enumerate(self.texts):
            for line, pair in enumerate(text, start=1):
                if pair.source.strip():
                    yield MonolingualLine(pair.source, number, line, pair.target)

    def facts(self) -> list[dict[str, Any]]:
        """Return path and SHA-256 of each source file, in order; reads all of them."""
        sources = [Path(text.files.paths[0]) for text in self.texts]
        facts, _size = _facts_and_size(sources)
        return facts


def _facts_and_size(paths: Sequence[Path]) -> tuple[list[dict[str, Any]], int]:
    """Return path and SHA-256 of each file, and the bytes of all files together."""
    facts, size = [], 0
    for path in paths:
        digest = hashlib.sha256()
        with open_bytes(path) as file:
            while block := file.read(1 << 20):  # 1 MiB
                digest.update(block)
                size += len(block)
        facts.append({"file": str(path), "sha256": digest.hexdigest()})
    return facts, size
