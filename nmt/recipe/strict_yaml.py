"""Reads and writes YAML strictly, without the surprises of YAML 1.1.

YAML 1.1 reads `1e-4` as a word, `no` as false, `010` as eight, and keeps the last of two equal
keys. Here `1e-4` is a number and `no` is a word, and an ambiguous value is an error with its line.
"""

import re
from collections.abc import Hashable
from typing import Any

import yaml

from nmt.errors import ConfigError


class _StrictLoader(yaml.SafeLoader):
    """Reads YAML 1.2 scalars; aliases, tags and duplicate keys are errors."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Return the next node of the text; an alias or a tag is an error."""
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        is_alias = isinstance(event, yaml.AliasEvent)
        if is_alias or getattr(event, "tag", None):
            problem = f"{'aliases' if is_alias else 'tags'} are not allowed"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Return the dict of a mapping; its keys are strings, each of them once."""
        seen: set[str] = set()
        for key, _ in node.value:
            problem = "" if isinstance(key, yaml.ScalarNode) else "a key must be a word"
            if not problem and key.value in seen:
                problem = f"duplicate key '{key.value}'"
            if problem:
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
            key.tag = "tag:yaml.org,2002:str"  # a key such as 1 or true is a word
            seen.add(key.value)
        return super().construct_mapping(node, deep)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Return the value of a node; a value that Python cannot hold is an error with its line."""
        try:
            if isinstance(node, yaml.ScalarNode):
                node.value.encode()  # fails for half of a surrogate pair
            return super().construct_object(node, deep)
        except ValueError as error:
            raise yaml.MarkedYAMLError(
                problem=f"{_UNREADABLE}: {error}", problem_mark=node.start_mark
            ) from error


_UNREADABLE = "a value cannot be read"
_WHOLE = r"(0|[1-9](_?[0-9])*)"  # 0, 12, 25_000, but not 010
_FLOAT = rf"[-+]?({_WHOLE}?\.[0-9]+|{_WHOLE}\.?)([eE][-+]?[0-9]+)?"
_StrictLoader.yaml_implicit_resolvers = {}  # without those of YAML 1.1; ours follow below


class _CarefulDumper(yaml.SafeDumper):
    """Quotes every string that this reader or a YAML 1.1 reader would read as something else."""


for _tag, _pattern, _first in (  # tag, pattern of the whole scalar, its possible first characters
    ("bool", r"true|false", "tf"),
    ("int", rf"[-+]?{_WHOLE}", "-+0123456789"),
    ("float", _FLOAT, "-+.0123456789"),
    ("null", r"null|~|", ["n", "~", ""]),
):
    for _class in (_StrictLoader, _CarefulDumper):
        _class.add_implicit_resolver(
            f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), list(_first)
        )


def _lines_of_keys(
    node: yaml.Node | None, path: tuple[str, ...] = ()
) -> dict[tuple[str, ...], int]:
    """Return {key path: line} of a document, lines from 1; the keys of list items are 0, 1, …."""
    lines: dict[tuple[str, ...], int] = {}
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            lines[(*path, key.value)] = key.start_mark.line + 1
            lines |= _lines_of_keys(value, (*path, key.value))
    if isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(node.value):
            lines[(*path, str(number))] = item.start_mark.line + 1
            lines |= _lines_of_keys(item, (*path, str(number)))
    return lines


def parse(text: str, where: str) -> tuple[Any, dict[tuple[str, ...], int]]:
    """Parse a document into plain values, and return them with {key path: line}, lines from 1.

    An empty document is {}. `where`, such as a file name, begins the error message.

    Raises:
        ConfigError: not valid YAML, or an ambiguous value; the message has the line.
    """
    loader = None
    try:
        loader = _StrictLoader(text)
        node = loader.get_single_node()
        value = loader.construct_document(node) if node is not None else {}
        return value, _lines_of_keys(node)
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError) as error:
        line = loader.line + 1 if loader else 1  # where the loader stopped
        # for a ValueError or OverflowError, as of an escape that stands for no character; the
        # other errors replace this problem, and those of the library know their line, too
        problem = f"{_UNREADABLE}: {error}"
        if isinstance(error, yaml.reader.ReaderError):
            line = text.count("\n", 0, error.position) + 1
            problem = f"unacceptable character #x{error.character:04x}"
        elif isinstance(error, yaml.MarkedYAMLError):
            line = error.problem_mark.line + 1 if error.problem_mark else line
            problem = str(error.problem)
            if "escape" in problem:  # a path of Windows, most likely
                problem += (
                    "; in double quotes a backslash begins an escape: write the text in single "
                    "quotes"
                )
        elif isinstance(error, RecursionError):
            problem = "nested too deeply for a configuration"
        raise ConfigError(f"{where}:{line}: not valid YAML here: {problem}") from error


def dump(value: Any) -> str:
    """Return a plain value as YAML text; `parse` and other YAML readers read the same value."""
    return yaml.dump(value, Dumper=_CarefulDumper, sort_keys=False, allow_unicode=True)
