"""Text that a model is to translate into training text: monolingual files, or parallel sources."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from nmt.data.text.contamination import HeldOutText
from nmt.data.text.lines import (
    check_name,
    check_no_pipe,
    decode_line,
    open_bytes,
    raw_lines,
    read_lines,
)
from nmt.data.text.parallel_text import ParallelText
from nmt.data.text.rules import is_undecoded
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
        """Yield the lines, and count those that are left out as held out."""
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
        """Return path and SHA-256 of each file, in order; reads each of them once.

        Raises:
            DataError: a file or its name is not UTF-8, it is a pipe or cannot be read, or all
                lines of all files are blank.
        """
        for path in self.paths:
            check_name(path)  # `PairFolder` writes it beside each pair
            check_no_pipe(path)
        facts, has_text = [], False
        for path in self.paths:
            digest = hashlib.sha256()
            for number, line in enumerate(raw_lines(path), start=1):
                digest.update(line)
                has_text |= bool(decode_line(line, path, number).strip())
            facts.append({"file": str(path), "sha256": digest.hexdigest()})
        if not has_text:
            names = ", ".join(map(str, self.paths))
            raise DataError(f"{names}: no text; expected one sentence a line")
        return facts


@dataclass(frozen=True)
class SourceLines:
    """The sources of parallel texts, each with its target as the reference, in order."""

    texts: Sequence[ParallelText]
    leave_out_invalid: bool = False
    """whether pairs that are not UTF-8 are left out; else they are an error"""

    def __iter__(self) -> Iterator[MonolingualLine]:
        """Yield the sources that are not blank, with the numbers of their text and line.

        Raises:
            DataError: a line is not UTF-8, and `leave_out_invalid` is false.
        """
        errors = "surrogateescape" if self.leave_out_invalid else "strict"
        for number, text in enumerate(self.texts):
            for block in text.blocks():
                for line, pair in zip(block.numbers, block.pairs(errors), strict=True):
                    if pair.source.strip() and not is_undecoded(pair):
                        yield MonolingualLine(pair.source, number, line, pair.target)

    def facts(self) -> list[dict[str, Any]]:
        """Return path and SHA-256 of each source file, in order; reads them twice.

        Once all pairs are decoded, and once the files are hashed.

        Raises:
            DataError: the text cannot be read or is not UTF-8, or no pair is left to translate.
        """
        if not sum(1 for _ in self):
            names = ", ".join(path for text in self.texts for path in text.files.paths)
            raise DataError(f"{names}: no source to translate; expected one sentence a line")
        return _facts([Path(text.files.paths[0]) for text in self.texts])


def _facts(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """Return path and SHA-256 of each file."""
    facts = []
    for path in paths:
        digest = hashlib.sha256()
        with open_bytes(path) as file:
            while block := file.read(1 << 20):  # 1 MiB
                digest.update(block)
        facts.append({"file": str(path), "sha256": digest.hexdigest()})
    return facts
