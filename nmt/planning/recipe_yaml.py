"""A first recipe as YAML: every setting with the reason for it beside it."""

from collections.abc import Iterator
from itertools import chain

from nmt import strict_yaml
from nmt.config import DataConfig
from nmt.planning.first_recipe import Choice, FirstRecipe


def describe_recipe(recipe: FirstRecipe, command: str) -> str:
    """The recipe as YAML, each setting with its reason beside it; `command` trains it."""
    speed = recipe.speed
    lines = [
        f"# planned  {recipe.time.total / 60:.1f} min for {recipe.config.training.max_steps:,} "
        f"steps ({recipe.epochs:.1f} times through the text)",
        f"# machine  {speed.device}, {speed.threads} thread{'s'[: speed.threads > 1]}, "
        f"{speed.precision}, {speed.target_tokens:,.0f} target tokens a second",
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
    """Where the text is and how it is cleaned; other settings that have their default are left
    out."""
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
    """The lines of one setting inside its section, the first with the reason as its comment."""
    first, *rest = strict_yaml.dump({name: choice.value}).rstrip("\n").split("\n")
    yield f"  {first:<24} # {choice.reason}" if choice.reason else f"  {first}"
    yield from (f"  {line}" for line in rest)
