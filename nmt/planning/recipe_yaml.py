"""Writes a first recipe as YAML, with the reason for each setting beside it."""

from collections.abc import Iterator
from itertools import chain

from nmt import strict_yaml
from nmt.config import DataConfig
from nmt.planning.first_recipe import Choice, FirstRecipe


def describe_recipe(recipe: FirstRecipe, command: str) -> str:
    """Return the recipe as YAML with a reason beside each setting; `command` trains it."""
    speed = recipe.speed
    lines = [
        f"# planned  {recipe.time.total / 60:.1f} min for {recipe.config.training.max_steps:,} "
        f"steps ({recipe.epochs:.1f} times through the text)",
        f"# machine  {speed.device}, {speed.precision}, {speed.target_tokens:,.0f} target tokens a "
        f"second, measured in {speed.steps} steps with {speed.threads} "
        f"thread{'s'[: speed.threads > 1]}",
        *(f"# warning  {warning}" for warning in recipe.warnings),
        f"# run      {command}",
    ]
    sections: dict[str, list[str]] = {}
    for choice in (*_data_choices(recipe.config.data), *recipe.choices):
        section, _, name = choice.key.partition(".")
        if section not in sections:
            sections[section] = ["", f"{section}:"]
        sections[section] += _commented(name, choice)
    return "\n".join([*lines, *chain.from_iterable(sections.values())]) + "\n"


def _data_choices(data: DataConfig) -> Iterator[Choice]:
    """Yield the settings of text and cleaning; other settings with default values are omitted."""
    yield Choice("data.source_language", data.source_language)
    yield Choice("data.target_language", data.target_language)
    reasons = {
        "tokenized": "punctuation stands apart, so BLEU counts the tokens as they are",
        "cleaning": "`nmt data inspect` shows what each rule leaves out",
    }
    for name, value in data.model_dump(exclude_defaults=True).items():
        if not name.endswith("_language"):
            yield Choice(f"data.{name}", value, reasons.get(name, ""))


def _commented(name: str, choice: Choice) -> Iterator[str]:
    """Return the YAML lines of a setting; the first one has the reason as its comment."""
    first, *rest = strict_yaml.dump({name: choice.value}).rstrip("\n").split("\n")
    yield f"  {first:<24} # {choice.reason}" if choice.reason else f"  {first}"
    yield from (f"  {line}" for line in rest)
