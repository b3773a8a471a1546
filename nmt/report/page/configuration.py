"""The chapter on the configuration: the whole recipe, and the machine and versions of the run."""

from collections.abc import Iterator, Mapping
from typing import Any

from nmt.report.page.html import Html, collapsible, element, placeholder, section, settings_table


def configuration_section(config: Mapping[str, Any], environment: Mapping[str, Any]) -> Html:
    """Return every setting of the recipe by section, then environment.json."""
    groups = [
        element("div", element("h3", name), settings_table(_flat(values)), class_="group")
        for name, values in config.items()
        if isinstance(values, Mapping)
    ]
    alone = {name: values for name, values in config.items() if not isinstance(values, Mapping)}
    if alone:
        groups.append(element("div", element("h3", "other"), settings_table(_flat(alone))))
    children = [element("div", *groups, class_="groups")]
    if environment:
        known = {name: value for name, value in environment.items() if name != "resumed"}
        children += [element("h3", "Made with"), settings_table(_flat(known))]
        resumed = environment.get("resumed")
        if isinstance(resumed, list):
            parts = [settings_table(_flat(part)) for part in resumed if isinstance(part, Mapping)]
            children.append(collapsible(f"Resumed {len(parts)} times", *parts))
    else:
        children.append(placeholder("There is no readable environment.json in the run."))
    return section("configuration", "Configuration", *children)


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield each setting as its dotted name and its value as text."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
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
