"""Writes a text as a scalar of YAML, in the style that the scalar had if that can hold it."""

import io
import json
import re
import textwrap
from dataclasses import dataclass
from functools import partial

import yaml
from yaml.emitter import Emitter

TEXT_TAG = "tag:yaml.org,2002:str"
_OTHER_WORDS = re.compile(
    r"y|n|[-+]?\.?\d[\d_]*(?:\.\d*)?(?:e[-+]?\d+)?|0o[0-7]+|=|<<", re.IGNORECASE
)
"""what some readers of YAML, if not PyYAML, take for a number, a boolean or a command"""
_SHORT_ESCAPES = str.maketrans({"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\"})


def is_plain_text(text: str) -> bool:
    """Return whether a text without quotation marks is a string, and no number, date or such."""
    resolvers = yaml.SafeLoader.yaml_implicit_resolvers
    found = [*resolvers.get(text[:1], ()), *resolvers.get(None, ())]
    return not any(pattern.match(text) for _, pattern in found)


@dataclass(frozen=True)
class ScalarSource:
    """A scalar as a file has it."""

    source: str
    """its characters in the file, without an anchor or a tag before it"""
    text: str
    """what it stands for"""
    in_flow: bool
    """whether it is between brackets or braces"""

    def write(self, text: str, is_ascii: bool) -> str:
        """Return another text in the style of this scalar; in double quotes if that cannot be.

        `is_ascii` says that characters beyond ASCII are escapes, if the style has any.
        """
        quoted = partial(_double_quoted, text, is_ascii)
        mark = self.source[:1]
        if mark in ("|", ">"):
            return self._block(text) or quoted() + self._around_block()
        analysis = _analyse(text)
        if mark == "'" and analysis.allow_single_quoted and not analysis.multiline:
            return "'" + text.replace("'", "''") + "'"
        if mark in ("'", '"') or analysis.multiline:
            return quoted()
        is_plain = analysis.allow_flow_plain if self.in_flow else analysis.allow_block_plain
        if is_plain and is_plain_text(text) and not _OTHER_WORDS.fullmatch(text):
            return text
        if '"' in text and analysis.allow_single_quoted and not is_ascii:
            return "'" + text.replace("'", "''") + "'"
        return quoted()

    def _around_block(self) -> str:
        """Return the comment after the header of a block, and what follows its last line."""
        header = self.source.partition("\n")[0].rstrip()
        comment = re.search(r"\s#.*", header)
        return (comment[0] if comment else "") + self.source[len(self.source.rstrip()) :]

    def _block(self, text: str) -> str | None:
        """Return a text as a literal or folded block; None if its lines would be read otherwise."""
        header, _, body = self.source.partition("\n")
        end = "\r\n" if header.endswith("\r") else "\n"
        lines = body.split("\n")
        first = next((line for line in lines if line.strip()), "")
        value = next((line for line in self.text.split("\n") if line.strip()), "")
        indent = _spaces(first) - _spaces(value)
        inside = text.strip("\n")
        if _spaces(inside) != _spaces(self.text.strip("\n")):  # the first line sets the indent
            return None
        before, after = _blank_lines(lines), _blank_lines(lines[::-1])
        if header[:1] == ">":
            width = max(len(line.rstrip()) for line in lines) - indent
            rows = _folded(inside, max(width, 20))
            header = header if rows else "|" + header[1:]
        else:
            rows = []
        rows = rows or inside.split("\n")
        written = [" " * indent + row if row else "" for row in rows]
        tail = lines[len(lines) - after :] if after else []
        blank = [row.rstrip("\r") for row in lines[:before]]
        return (
            header.rstrip("\r")
            + end
            + end.join([*blank, *written])
            + (end + "\n".join(tail) if after else "")
        )


def _spaces(line: str) -> int:
    """Return how many spaces a line begins with."""
    return len(line) - len(line.lstrip(" "))


def _blank_lines(lines: list[str]) -> int:
    """Return how many lines at the beginning have nothing but white space."""
    return next((i for i, line in enumerate(lines) if line.strip()), len(lines))


def _folded(text: str, width: int) -> list[str]:
    """Return the lines of a folded block; none if the text has lines that cannot be folded.

    A line break is an empty line, and another line break is a space.
    """
    rows: list[str] = []
    for i, line in enumerate(text.split("\n")):
        if line != line.strip() or "\t" in line:
            return []
        rows += [""] if i and line else []
        if "  " in line:  # folding would lose a space
            rows.append(line)
        else:
            wrapped = textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False)
            rows += wrapped or [""]
    return rows


def _analyse(text: str) -> "yaml.emitter.ScalarAnalysis":
    """Return which styles can hold a text."""
    return Emitter(io.StringIO(), allow_unicode=True).analyze_scalar(text)


def _double_quoted(text: str, is_ascii: bool) -> str:
    """Return a text in double quotes."""
    written = text.translate(_SHORT_ESCAPES)
    if is_ascii:
        written = re.sub(r"[^\x00-\x7f]", _escaped, written)
    return f'"{written}"'


def _escaped(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1] if found[0] <= "\uffff" else f"\\U{ord(found[0]):08x}"
