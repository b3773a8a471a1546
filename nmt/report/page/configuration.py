"""The chapter on the configuration: the whole recipe, and the machine and versions of the run."""

from collections.abc import Iterator, Mapping
from typing import Any


def configuration_chapter(
    config: Mapping[str, Any], environment: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the values of configuration.html: all settings of the recipe, environment.json."""
    sections = {name: values for name, values in config.items() if isinstance(values, Mapping)}
    resumed = environment.get("resumed")
    sessions = resumed if isinstance(resumed, list) else None
    return {
        "sections": sections,
        "other": {name: value for name, value in config.items() if name not in sections},
        "environment": {name: environment[name] for name in environment if name != "resumed"},
        "resumed": sessions and [part for part in sessions if isinstance(part, Mapping)],
    }


def flatten_settings(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield each setting as its dotted name and its value as text."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from flatten_settings(value, f"{prefix}{name}.")
        else:
            yield prefix + name, _value_text(value)


def _value_text(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return " ".join(map(_value_text, value)) or "–"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {one}" for key, one in value.items() if one is not None)
    return f"{value:,}" if isinstance(value, int) and abs(value) >= 10_000 else str(value)
