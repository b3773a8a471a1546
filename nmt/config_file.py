"""Reads a recipe from YAML, applies `--set`, exchanges its two sides, and writes it back.

`nmt train --config C` reads a file of five sections and a seed into one `Config`. A mistake is an
error with file, line and key; for an unknown key it also names the nearest known one.
"""

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from nmt import strict_yaml
from nmt.config import Config, TextPair
from nmt.errors import ConfigError

MAX_CONFIG_BYTES = 1 << 20  # 1 MiB
SomeSection = TypeVar("SomeSection", bound=BaseModel)


def _explain(
    error: Any,
    where: str,
    locations: dict[tuple[str, ...], str],
    section: type[BaseModel] = Config,
) -> str:
    """Return an error of pydantic as a sentence; `locations` maps key paths to file:line."""
    path = tuple(str(part) for part in error["loc"])
    if path not in locations and path[:-1] not in locations:
        # a single text may be written without a list; inside it is a list of one
        path = tuple(str(part) for part in error["loc"] if not isinstance(part, int))
    key_path = next((path[:n] for n in range(len(path), 0, -1) if path[:n] in locations), path)
    location = locations.get(key_path, where)
    if error["type"] == "extra_forbidden":
        for name in (name for name in path[:-1] if not name.isdigit()):  # digits: a list's item
            annotation = section.model_fields[name].annotation
            options = [annotation, *getattr(annotation, "__args__", ())]
            section = next(o for o in options if isinstance(o, type) and issubclass(o, BaseModel))
        known = list(section.model_fields)
        near = difflib.get_close_matches(path[-1], known, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"known keys: {', '.join(known)}"
        return f"{location}: unknown key '{'.'.join(path)}'; {hint}"
    message = error["msg"].removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    if not path or error["type"] == "value_error":
        return f"{location}: {message}"
    if error["type"] == "missing":
        return f"{location}: '{'.'.join(path)}' is missing"
    return f"{location}: '{'.'.join(key_path)}': {message}, got {error['input']!r}"


def _apply_setting(settings: dict[str, Any], assignment: str) -> None:
    """Set one `section.key=value` of the command line in `settings`, which is changed."""
    path, separator, value = assignment.partition("=")
    if not separator or not path:
        raise ConfigError(f"--set {assignment}: write it as section.key=value")
    *parents, key = path.split(".")
    for parent in parents:
        child = settings.setdefault(parent, {})
        if not isinstance(child, dict):
            child = settings[parent] = {}
        settings = child
    settings[key], _ = strict_yaml.parse(value, f"--set {path}")
    if settings[key] == {} and not value.strip():
        settings[key] = None  # an empty value is null


def parse_config(text: str, where: str = "configuration", settings: Iterable[str] = ()) -> Config:
    """Build a `Config` from YAML text and overriding `section.key=value` settings.

    Raises:
        ConfigError: there are mistakes; the message has `where`, line and key of each.
    """
    values, lines = strict_yaml.parse(text, where)
    if not isinstance(values, dict):
        raise ConfigError(
            f"{where}: expected sections such as 'model:', got {type(values).__name__}"
        )
    locations = {path: f"{where}:{line}" for path, line in lines.items()}
    for assignment in settings:
        _apply_setting(values, assignment)
        key = assignment.partition("=")[0]
        locations[tuple(key.split("."))] = f"--set {key}"
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        messages = [_explain(e, where, locations) for e in error.errors()]
        raise ConfigError("\n".join(dict.fromkeys(messages))) from error


def replace_settings(
    section: SomeSection, changes: Mapping[str, object], where: str
) -> SomeSection:
    """Return a copy of `section` in which `changes`, {key: value}, replace the old values.

    Raises:
        ConfigError: a value is not allowed; the message has `where` and the key.
    """
    try:
        return type(section).model_validate({**section.model_dump(), **changes})
    except ValidationError as error:
        message = _explain(error.errors()[0], where, {}, type(section))
        raise ConfigError(message) from error


def find_config(name: str) -> Path:
    """Return the path of the file `name`; without such a file, of the bundled recipe `name`.

    Raises:
        ConfigError: neither exists; the message lists the bundled recipes.
    """
    path = Path(name)
    if path.is_file():
        return path
    bundled = Path(__file__).parent / "configs"  # in an installed package
    folder = bundled if bundled.is_dir() else bundled.parent.parent / "configs"  # source tree
    stem = name.removesuffix(".yaml")
    if (folder / f"{stem}.yaml").is_file() and "/" not in stem:
        return folder / f"{stem}.yaml"
    recipes = ", ".join(sorted(p.stem for p in folder.glob("*.yaml")))
    raise ConfigError(f"{name}: no such file and no bundled recipe of that name ({recipes})")


def load_config(name: str, settings: Iterable[str] = ()) -> Config:
    """Read the file or bundled recipe `name`; `settings` (`section.key=value`) override it.

    Raises:
        ConfigError: the file cannot be read, or has mistakes; the message has line and key of each.
    """
    path = find_config(name)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    if len(data) > MAX_CONFIG_BYTES:
        raise ConfigError(f"{path}: {len(data)} bytes is no configuration; the limit is 1 MiB")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ConfigError(f"{path}:{line}: not valid UTF-8; save the file as UTF-8") from error
    return parse_config(text, str(path), settings)


def exchange_sides(config: Config) -> Config:
    """Return the recipe of the opposite direction: source and target of its texts change places.

    The entries of data.synthetic stay as they are: each is a folder of one direction.

    Raises:
        ConfigError: a training text has tags, which would name the wrong language afterwards.
    """
    data, tokenizer = config.data, config.tokenizer
    if any(text.tags for text in data.train):
        raise ConfigError(
            "--backward exchanges source and target, but data.train has tags, which may name the "
            "language of the target; write a recipe of its own for the opposite direction"
        )
    texts = {"train": data.train, "validation": data.validation, "test": data.test}
    changes = {
        "source_language": data.target_language,
        "target_language": data.source_language,
        **{name: list(map(_exchanged, each)) for name, each in texts.items()},
        "cleaning": data.cleaning.model_copy(
            update={
                "source_script": data.cleaning.target_script,
                "target_script": data.cleaning.source_script,
            }
        ),
    }
    if tokenizer.target_model:
        models = {"model": tokenizer.target_model, "target_model": tokenizer.model}
        tokenizer = tokenizer.model_copy(update=models)
    return config.model_copy(
        update={"data": data.model_copy(update=changes), "tokenizer": tokenizer}
    )


def _exchanged(text: TextPair) -> TextPair:
    """Return the text with its target as source.

    A field that is not given is column 1 or 2 of a table, or the key that names the language.
    """
    source_field, target_field = text.source_field, text.target_field
    if text.file is not None and {".tsv", ".tab", ".txt"} & set(Path(text.file).suffixes):
        source_field, target_field = source_field or 1, target_field or 2
    sides = {"source": text.target, "target": text.source}
    fields = {"source_field": target_field, "target_field": source_field}
    return text.model_copy(update=sides | fields)


def dump_config(config: Config) -> str:
    """Return a configuration as YAML text with all keys; `parse_config` reads it back."""
    return strict_yaml.dump(config.model_dump())
