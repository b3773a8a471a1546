"""What is wrong in a recipe: pydantic's errors as sentences with file, line and key."""

import difflib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError

KeyPath = tuple[str, ...]
"""the keys that lead to a value, from the outermost; the items of a list count as 0, 1, …"""


def explain_mistakes(
    error: ValidationError, where: str, locations: Mapping[KeyPath, str], section: type[BaseModel]
) -> list[str]:
    """Return a sentence for each mistake that pydantic found in the keys of `section`, each once.

    A sentence says all that a value may be, such as a number or auto. `locations` maps key paths to
    file:line; `where` stands in for a path without a location.
    """
    expected: dict[tuple[str, str], list[str]] = {}  # {(start, got): what the value may be}
    for found in error.errors():  # pydantic has one for each type that the value may have
        mistake = _explain(found, where, locations, section)
        expected.setdefault((mistake.start, mistake.got), []).insert(0, mistake.expected)
    sentences = []
    for (start, got), choices in expected.items():
        first, *others = dict.fromkeys(choices)  # each once
        others = [choice.removeprefix("input should be ") for choice in others]
        sentences.append(start + " or ".join([first, *others]) + got)
    return sentences


class _Mistake(NamedTuple):
    """A sentence about a value, in three parts; `expected` and `got` may be empty."""

    start: str
    expected: str
    got: str


def _explain(
    error: Any, where: str, locations: Mapping[KeyPath, str], section: type[BaseModel]
) -> _Mistake:
    """Return an error that pydantic found in the keys of `section` as a sentence with its place.

    `locations` maps key paths to file:line; `where` stands in for a path without a location.
    """
    path = tuple(str(part) for part in error["loc"])
    if path not in locations and path[:-1] not in locations:
        # a single text may be written without a list; inside it is a list of one
        path = tuple(str(part) for part in error["loc"] if not isinstance(part, int))
    # the key itself, or the innermost key around it that the file has
    beginnings = (path[:length] for length in range(len(path), 0, -1))
    key_path = next((beginning for beginning in beginnings if beginning in locations), path)
    location = locations.get(key_path, where)
    if error["type"] == "extra_forbidden":
        hint = _suggest_keys(path, section)
        return _Mistake(f"{location}: unknown key '{'.'.join(path)}'; {hint}", "", "")
    message = error["msg"].removeprefix("Value error, ").partition(" or instance of ")[0]
    message = message[:1].lower() + message[1:]
    if not path or error["type"] == "value_error":
        return _Mistake(f"{location}: {message}", "", "")
    if error["type"] == "missing":
        return _Mistake(f"{location}: '{'.'.join(path)}' is missing", "", "")
    return _Mistake(f"{location}: '{'.'.join(key_path)}': ", message, f", got {error['input']!r}")


def _suggest_keys(path: KeyPath, recipe: type[BaseModel]) -> str:
    """Return what to write instead of the unknown key at the end of `path`, a path in `recipe`.

    A similar key of the same section comes before an equal one of another section.
    """
    section = recipe
    for name in path[:-1]:  # to the section that should have the key
        if not name.isdigit():  # the number of a list's item
            section = _section_under(section, name) or section
    keys = list(section.model_fields)
    if nearest := difflib.get_close_matches(path[-1], keys, n=1):
        return f"did you mean '{nearest[0]}'?"
    for place in _key_paths(recipe):
        if place[-1] == path[-1]:
            level = "" if len(place) > 1 else ", at the top level"
            return f"did you mean '{'.'.join(place)}'{level}?"
    return f"known keys: {', '.join(keys)}"


def _key_paths(section: type[BaseModel], parents: KeyPath = ()) -> Iterator[KeyPath]:
    """Yield the paths of all keys in a section, in order; list items have no number in them."""
    for name in section.model_fields:
        yield (*parents, name)
        if inner := _section_under(section, name):
            yield from _key_paths(inner, (*parents, name))


def _section_under(section: type[BaseModel], name: str) -> type[BaseModel] | None:
    """Return the section that a key holds, alone or in a list; None if it holds none."""
    annotation = section.model_fields[name].annotation
    types = [annotation, *getattr(annotation, "__args__", ())]  # of a list, of a union
    sections = (t for t in types if isinstance(t, type) and issubclass(t, BaseModel))
    return next(sections, None)
