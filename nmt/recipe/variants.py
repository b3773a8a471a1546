"""The points of a sweep: each combination of values, of named variants and of seeds, with a name.

`model.norm=pre,post` gives two values. What stands between commas is YAML, so a list keeps its
commas inside brackets, and a text inside quotes.
"""

import hashlib
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt.errors import ConfigError
from nmt.recipe import strict_yaml
from nmt.recipe.config_file import read_yaml_file

Settings = dict[str, Any]
"""values by section.key"""
_LONGEST_NAME = 100
_SEED = "seed"


@dataclass(frozen=True)
class Point:
    """One run of a sweep: the name of its folder, and what it changes in the recipe."""

    name: str
    settings: tuple[str, ...]
    """section.key=value, with each value in JSON, which is also YAML"""


def read_values(assignment: str) -> tuple[str, list[Any]]:
    """Return the key and the values of `section.key=a,b,c`.

    Raises:
        ConfigError: It is no assignment, no YAML, or has no value or one twice.
    """
    key, separator, text = assignment.partition("=")
    if not separator or not key:
        raise ConfigError(f"{assignment}: write it as section.key=value,value")
    values, _lines = strict_yaml.parse(f"[{text}]", f"values of {key}")
    written = [json.dumps(value) for value in values]
    if not written or len(set(written)) < len(written):
        problem = "a value is there twice" if written else "no value"
        raise ConfigError(f"{assignment}: {problem}; give different values, with commas between")
    return key, values


def read_variants(path: Path) -> dict[str, Settings]:
    """Return the settings of each variant in a YAML file, by its name.

    A variant is a mapping of settings (`model.norm: pre`), or of sections with their keys; an empty
    one is the recipe as it is.

    Raises:
        ConfigError: The file cannot be read, or a variant or its name is not of this form.
    """
    variants, _lines = strict_yaml.parse(read_yaml_file(path), str(path))
    if not isinstance(variants, dict) or not variants:
        raise ConfigError(f"{path}: expected variants such as 'pre-norm: {{model.norm: pre}}'")
    for name, settings in variants.items():
        if not re.fullmatch(r"\w[\w.=+-]*", name):
            raise ConfigError(
                f"{path}: variant '{name}': its name becomes that of folders; use letters, digits "
                "and . = + - _"
            )
        if not isinstance(settings, dict | None):
            raise ConfigError(f"{path}: variant '{name}': expected settings, got {settings!r}")
    return {name: _by_full_key(settings or {}) for name, settings in variants.items()}


def _by_full_key(settings: Mapping[str, Any]) -> Settings:
    """Return settings in which `model: {norm: pre}` is written `model.norm: pre`."""
    flat: Settings = {}
    for key, value in settings.items():
        inside = value if isinstance(value, dict) and "." not in key else None
        flat |= {key: value} if inside is None else {f"{key}.{k}": v for k, v in inside.items()}
    return flat


def sweep_points(
    grid: Mapping[str, Sequence[Any]], variants: Mapping[str, Settings], seeds: Sequence[Any]
) -> list[Point]:
    """Return all combinations: each variant, with each value of each key, with each seed.

    A name has the variant, the keys that have several values, and the seed: `pre-d_ff=512-seed1`.
    Without any of these it is "run".

    Raises:
        ConfigError: A key is both in the grid and in a variant, or is a seed besides `seeds`.
    """
    for name, settings in [*variants.items(), ("seeds", dict.fromkeys([_SEED] * bool(seeds)))]:
        if twice := grid.keys() & settings.keys():
            raise ConfigError(f"{min(twice)} is set by {name} too; give it once")
    varied = [key for key, values in grid.items() if len(values) > 1]
    rows: list[tuple[list[str], Settings]] = []
    for name, settings in (variants or {"": {}}).items():
        for values in itertools.product(*grid.values()):
            chosen = dict(zip(grid, values, strict=True))
            parts = [*([name] if name else []), *name_parts({key: chosen[key] for key in varied})]
            rows += [
                ([*parts, f"seed{seed}"], {**settings, **chosen, _SEED: seed}) for seed in seeds
            ] or [(parts, {**settings, **chosen})]
    names = Counter(_folder_name(parts) for parts, _settings in rows)
    return [
        Point(_folder_name(parts, written if names[_folder_name(parts)] > 1 else ()), written)
        for parts, settings in rows
        for written in [write_settings(settings)]
    ]


def write_settings(settings: Settings) -> tuple[str, ...]:
    """Return each setting as section.key=value, the value in JSON."""
    return tuple(
        f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in settings.items()
    )


def name_parts(settings: Settings) -> list[str]:
    """Return key=value of each setting, by the last part of its key if that is the only such."""
    last_parts = Counter(key.rpartition(".")[2] for key in settings)
    return [
        f"{key if last_parts[short] > 1 else short}={value if isinstance(value, str) else text}"
        for key, value in settings.items()
        for short, text in [(key.rpartition(".")[2], json.dumps(value, separators=(",", ":")))]
    ]


def _folder_name(parts: Iterable[str], settings: Sequence[str] = ()) -> str:
    """Return a name without other signs than . = + - and _; a digest of `settings` ends it.

    The digest also ends a name that is cut because it is too long.
    """
    name = re.sub(r"[^\w.=+-]+", "_", "-".join(parts)) or "run"
    if settings or len(name) > _LONGEST_NAME:
        digest = hashlib.sha256("\n".join(settings or parts).encode()).hexdigest()[:6]
        return f"{name[:_LONGEST_NAME]}-{digest}"
    return name
