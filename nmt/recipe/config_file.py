"""Reads a recipe from YAML, changes settings of it, exchanges its two sides, and writes it back.

`nmt train --config C` reads a file of five sections and a seed into one `Config`. A mistake is an
error with file, line and key.
"""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import NoneType
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from nmt.errors import ConfigError, NmtError
from nmt.files import explain_os_errors
from nmt.recipe import strict_yaml
from nmt.recipe.config import Config, Section, TermsConfig, TextPair

MAX_CONFIG_BYTES = 1 << 20  # 1 MiB
SomeSection = TypeVar("SomeSection", bound=BaseModel)
KeyPath = tuple[str, ...]
"""the keys that lead to a value, from the outermost; the items of a list count as 0, 1, …"""


def load_config(name: str, settings: Iterable[str] = ()) -> Config:
    """Read the file or bundled recipe `name`; `settings` (`section.key=value`) override it.

    Raises:
        ConfigError: the file cannot be read, or has mistakes; the message has line and key of each.
    """
    path = find_config(name)
    return parse_config(read_yaml_file(path), str(path), settings)


def find_config(name: str) -> Path:
    """Return the path of the file `name`; without such a file, of the bundled recipe `name`.

    The name of a bundled recipe may have the ending .yaml, but no folder.

    Raises:
        ConfigError: neither exists; the message lists the bundled recipes.
    """
    path = Path(name)
    if path.is_file():
        return path
    bundled = Path(__file__).parent.parent / "configs"  # in an installed package
    folder = bundled if bundled.is_dir() else bundled.parent.parent / "configs"  # source tree
    stem = name.removesuffix(".yaml")
    if (folder / f"{stem}.yaml").is_file() and "/" not in stem:
        return folder / f"{stem}.yaml"
    recipes = ", ".join(sorted(file.stem for file in folder.glob("*.yaml")))
    got = name or "an empty name"
    raise ConfigError(f"{got}: no such file and no bundled recipe of that name ({recipes})")


def read_yaml_file(path: Path) -> str:
    """Return the text of a configuration file.

    Raises:
        ConfigError: the file cannot be read, is larger than 1 MiB, or is not UTF-8.
    """
    with explain_os_errors(path, "read", ConfigError):
        data = path.read_bytes()
    if len(data) > MAX_CONFIG_BYTES:
        raise ConfigError(f"{path}: {len(data):,} bytes, expected a YAML file of at most 1 MiB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ConfigError(f"{path}:{line}: not valid UTF-8; save the file as UTF-8") from error


def parse_config(text: str, where: str = "configuration", settings: Iterable[str] = ()) -> Config:
    """Build a `Config` from YAML text and overriding `section.key=value` settings.

    Raises:
        ConfigError: there are mistakes; the message has `where`, line and key of each.
    """
    values, locations = _parse_keys(text, where, "sections such as 'model:'")
    for assignment in settings:
        key, *inner_keys = _apply_setting(values, assignment)
        # the keys of the file inside of the old value are gone
        locations = {path: line for path, line in locations.items() if path[: len(key)] != key}
        locations |= dict.fromkeys([key, *inner_keys], f"setting {'.'.join(key)}")
    return _validate(Config, values, where, locations)


def _parse_keys(text: str, where: str, expected: str) -> tuple[dict[str, Any], dict[KeyPath, str]]:
    """Return the values of a YAML mapping, and {key path: file:line}.

    Raises:
        ConfigError: The text is not YAML or no mapping; `expected` says what should be there.
    """
    values, lines = strict_yaml.parse(text, where)
    if not isinstance(values, dict):
        got = {str: "text", list: "a list", NoneType: "nothing"}.get(type(values), repr(values))
        raise ConfigError(f"{where}: expected {expected}, got {got}")
    return values, {path: f"{where}:{line}" for path, line in lines.items()}


def _apply_setting(values: dict[str, Any], assignment: str) -> list[KeyPath]:
    """Change `values`, the nested keys of a recipe, by one setting `section.key=value`.

    Returns the path of the key, then those of the sections around it that the recipe did not have,
    and of the keys inside of the new value.
    """
    name, separator, text = assignment.partition("=")
    if not separator or not name:
        raise ConfigError(f"setting {assignment}: write it as section.key=value")
    path = tuple(name.split("."))
    *parents, key = path
    added: list[KeyPath] = []
    for depth, parent in enumerate(parents, 1):
        if not isinstance(values.get(parent), dict):  # absent, or such as null in the file
            values[parent] = {}
            added.append(path[:depth])
        values = values[parent]
    values[key], lines = strict_yaml.parse(text, f"setting {name}")
    if values[key] == {} and not text.strip():
        values[key] = None  # an empty value is null
    return [path, *added, *((*path, *inner) for inner in lines)]


def _validate(
    section: type[SomeSection],
    values: Mapping[str, object],
    where: str,
    locations: Mapping[KeyPath, str],
) -> SomeSection:
    """Return the section with these values.

    Raises:
        ConfigError: There are mistakes; the message has a line for each, with its location.
    """
    try:
        return section.model_validate(values)
    except ValidationError as error:
        sentences = _explain_mistakes(error, where, locations, section)
        raise ConfigError("\n".join(sentences)) from error


def parse_section(
    section: type[SomeSection], text: str, where: str, replaced: Mapping[str, object]
) -> SomeSection:
    """Build a section from YAML text, in which arguments replace keys: `replaced` is {key: value}.

    Raises:
        ConfigError: there are mistakes; the message has `where`, line and key of each.
    """
    values, locations = _parse_keys(text, where, "keys and values")
    replaced_locations = {(key,): f"`{key}`" for key in replaced}
    return _validate(section, {**values, **replaced}, where, locations | replaced_locations)


def replace_settings(
    section: SomeSection,
    changes: Mapping[str, object],
    where: str,
    error_class: type[NmtError] = ConfigError,
) -> SomeSection:
    """Return a copy of `section` in which `changes`, {key: value}, replace the old values.

    Raises:
        NmtError: a value is not allowed; the message has `where` and the key. Its class is
            `error_class`.
    """
    try:
        return type(section).model_validate({**section.model_dump(), **changes})
    except ValidationError as error:
        no_locations: dict[KeyPath, str] = {}  # the changes come from no file
        first_sentence, *_ = _explain_mistakes(error, where, no_locations, type(section))
        raise error_class(first_sentence) from error


def exchange_sides(config: Config) -> Config:
    """Return the recipe of the opposite direction: source and target of its texts change places.

    The entries of data.synthetic stay as they are: each is a folder of one direction.

    Raises:
        ConfigError: a training text has tags, which would name the wrong language afterwards, or
            data.terms names a glossary, which has one direction.
    """
    data, tokenizer, cleaning = config.data, config.tokenizer, config.data.cleaning
    if any(text.tags for text in data.train):
        raise ConfigError(
            "source and target cannot change places, because data.train has tags, which may name "
            "the language of the target; write a recipe of its own for the opposite direction"
        )
    if data.terms and data.terms.source != TermsConfig().source:
        raise ConfigError(
            "source and target cannot change places, because data.terms.source is a glossary "
            f"({data.terms.source}) of one direction; write a recipe of its own for the opposite"
        )
    scripts = {"source_script": cleaning.target_script, "target_script": cleaning.source_script}
    exchanged = {
        "train": [_exchange_text(text) for text in data.train],
        "validation": [_exchange_text(text) for text in data.validation],
        "test": [_exchange_text(text) for text in data.test],
        "cleaning": cleaning.model_copy(update=scripts),
    }
    # a key that the recipe leaves out stays so, to be taken from a parent or teacher
    given = {name: value for name, value in exchanged.items() if name in data.model_fields_set}
    languages = {
        "source_language": data.target_language,
        "target_language": data.source_language,
    }
    changes: dict[str, Section] = {"data": data.model_copy(update=languages | given)}
    if tokenizer.target_model:
        models = {"model": tokenizer.target_model, "target_model": tokenizer.model}
        changes["tokenizer"] = tokenizer.model_copy(update=models)
    return config.model_copy(update=changes)


def _exchange_text(text: TextPair) -> TextPair:
    """Return the text with its target as source and its source as target."""
    source_field, target_field = text.source_field, text.target_field
    if text.has_columns:  # its default ones, 1 and 2, must be named to change places
        source_field, target_field = source_field or 1, target_field or 2
    sides = {"source": text.target, "target": text.source}
    fields = {"source_field": target_field, "target_field": source_field}
    languages = {"languages": text.languages[::-1]} if text.languages else {}
    return text.model_copy(update=sides | fields | languages)


def dump_config(config: Config) -> str:
    """Return a configuration as YAML text with all keys; `parse_config` reads it back."""
    return strict_yaml.dump(config.model_dump())


def flatten_settings(section: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the values of nested sections by their full names, such as `model.norm`."""
    flat: dict[str, Any] = {}
    for key, value in section.items():
        if isinstance(value, dict):
            flat |= flatten_settings(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def _explain_mistakes(
    error: ValidationError, where: str, locations: Mapping[KeyPath, str], section: type[BaseModel]
) -> list[str]:
    """Return a sentence for each mistake that pydantic found in the keys of `section`, each once.

    A sentence says all that a value may be, such as a number or auto. `locations` maps key paths to
    file:line; `where` stands in for a path without a location.
    """
    expected: dict[tuple[str, str], list[str]] = {}  # {(start, got): what the value may be}
    for found in error.errors():  # pydantic has one for each type that the value may have
        around, choice = _explain(found, where, locations, section)
        expected.setdefault(around, []).insert(0, choice)
    sentences = []
    for (start, got), choices in expected.items():
        first, *others = dict.fromkeys(choices)  # each once
        others = [choice.removeprefix("input should be ") for choice in others]
        sentences.append(start + " or ".join([first, *others]) + got)
    return sentences


def _explain(
    error: Any, where: str, locations: Mapping[KeyPath, str], section: type[BaseModel]
) -> tuple[tuple[str, str], str]:
    """Return an error that pydantic found in the keys of `section` as a sentence with its place.

    The sentence is in parts: ((its start, what was got), what is expected, which stands between
    them); the last two may be empty. `locations` maps key paths to file:line; `where` stands in for
    a path without a location.
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
        return (f"{location}: unknown key '{'.'.join(path)}'; {hint}", ""), ""
    message = error["msg"].removeprefix("Value error, ").partition(" or instance of ")[0]
    message = message[:1].lower() + message[1:]
    if not path or error["type"] == "value_error":
        return (f"{location}: {message}", ""), ""
    if error["type"] == "missing":
        return (f"{location}: '{'.'.join(path)}' is missing", ""), ""
    return (f"{location}: '{'.'.join(key_path)}': ", f", got {error['input']!r}"), message


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
