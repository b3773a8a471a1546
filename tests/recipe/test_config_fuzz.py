"""A mutated configuration is read as it stands, or refused with its file, line and key."""

import random
import re
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from pydantic import BaseModel

from nmt.errors import ConfigError
from nmt.recipe.config import Config, TextPair
from nmt.recipe.config_file import dump_config, load_config

CONFIGS = sorted((Path(__file__).resolve().parents[2] / "configs").glob("*.yaml"))
TEXTS = [*(path.read_text("utf-8") for path in CONFIGS), dump_config(Config())]
Node = Any
WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}
WHOLE = re.compile(r"[-+]?(0|[1-9](_?\d)*)", re.ASCII)
FLOAT = re.compile(r"[-+]?(?=\.?\d)(0|[1-9](_?\d)*)?(\.\d*)?([eE][-+]?\d+)?", re.ASCII)

SCALARS = [
    *("3", "-1", "3.5", "1e-4", "1E+2", ".5", "5.", "0.0", "64", "1_000", "1__0", "1_", "0x10"),
    *("0o7", "010", "true", "false", "True", "no", "yes", "on", "Off", "y", "null", "~", "", "#"),
    *(".nan", "-.inf", ".INF", "1e999", "-1e-999", "nan", "9" * 25, "9" * 400, "9" * 5000, "auto"),
    *("2024-01-01", "12:30", "'5'", '"0.5"', "'no'", '"\\x41"', '"\\ud800"', '"\\U00110000"'),
    *("&a 5", "*a", "&a", "!!int 3", "! 3", "!!python/name:os.system", "<<", "=", "@x", "`x", "%"),
    *("ß", "e\u0301", "\u202e", "\u2028", "\x85", "\U0001f600", "\ud800", "\x00", "\x1b[1m", "\t"),
    *("[]", "[1, 2]", "{}", "{a: 1}", "{5: 6}", "[[{}]]", "? x", "- 1", "|\n  x", ">-", "# x"),
    *("post", "loss", "shared", "bpe", "[", "}", "'", '"', "a: b", "a:", ",", "---", "...", "a b"),
    *("{file: a.tsv}", "[{source: a, target: b}, {file: c, weight: 2}]", "{source: a}"),
]


def spelt_otherwise(value: str, draw: random.Random) -> str:
    """The same value in another notation, a value near it, or nothing."""
    spellings = [f"'{value}'", f'"{value}"', f"{value}  # no", ""]
    if value.isdigit() and len(value) < 20:
        spellings += [f"+{value}", f"{int(value) * 2}", f"{int(value):_}", f"{value}.0"]
    elif FLOAT.fullmatch(value):
        spellings += [f"+{value}", f"{float(value):.2e}", f"{float(value):f}", f"{value}E-0"]
    return draw.choice(spellings)


def mutated(draw: random.Random) -> bytes:
    """A recipe in which a few lines are changed, doubled, or moved to another section."""
    lines = draw.choice(TEXTS).splitlines()
    for _ in range(draw.choice([1, 1, 2])):
        place = draw.choice([n for n, line in enumerate(lines) if re.match(r" *\w+:", line)])
        indent, key, value = re.findall(r"^( *)(\w+): *(.*?)(?: +#.*)?$", lines[place])[0]
        changes = [*["spell"] * 12, "value", "value", "key", "key", "twice", "move", "nest"]
        match draw.choice(changes):
            case "spell":
                value = spelt_otherwise(value, draw)
            case "value":
                value = draw.choice(SCALARS)
            case "key":
                key = draw.choice([key[1:], f"{key}s", *SCALARS])
            case "twice":
                lines.insert(place, lines[place])
            case "move":
                lines.insert(draw.randrange(len(lines)), lines[place])
            case "nest":
                (start, end), depth = draw.choice(["[]", ("{a: ", "}")]), draw.choice([1, 50, 2000])
                value = f"{start * depth}{value}{end * depth}"
        lines[place : place + 1] = f"{indent}{key}: {value}".split("\n")
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def kinds(annotation: Any) -> set[type]:
    """The types that a field may hold."""
    if isinstance(annotation, str):
        return {str}
    found = [kinds(argument) for argument in get_args(annotation)]
    return set().union(*found) or ({annotation} if isinstance(annotation, type) else set())


def stands_for(scalar: yaml.ScalarNode) -> Any:
    """What YAML 1.2 means by it, with words in lower case only and decimal numbers only."""
    text = scalar.value
    if scalar.style is not None:
        return text
    if text in WORDS:
        return WORDS[text]
    if WHOLE.fullmatch(text):
        return int(text)
    return float(text) if FLOAT.fullmatch(text) else text


def held_as_written(node: Node, held: Any, annotation: Any = None) -> bool:
    """Whether each value of the text is in what was read of it, in the type of its field."""
    if isinstance(held, BaseModel):
        fields = type(held).model_fields
        return held.model_fields_set == {key.value for key, _ in node.value} and all(
            held_as_written(value, getattr(held, key.value), fields[key.value].annotation)
            for key, value in node.value
        )
    if isinstance(held, list):
        items = node.value if isinstance(node, yaml.SequenceNode) else [node]
        if items == [node] and isinstance(node, yaml.ScalarNode) and stands_for(node) is None:
            items = []  # null is no text
        return len(items) == len(held) and all(
            held_as_written(item, value, annotation)
            for item, value in zip(items, held, strict=True)
        )
    value = stands_for(node)
    if (type(value), type(held)) == (int, float):
        value = float(value)
    return value == held and type(value) is type(held) and type(held) in kinds(annotation)


def keys(node: Node, path: str = "") -> dict[str, int]:
    """The line of each key and of each item of a list."""
    found = {}
    if isinstance(node, yaml.MappingNode):
        pairs = [(key.value, key, value) for key, value in node.value]
    else:
        pairs = [(str(n), item, item) for n, item in enumerate(node.value)]
    for name, start, value in pairs:
        found[path + name] = start.start_mark.line + 1
        if not isinstance(value, yaml.ScalarNode):
            found |= keys(value, f"{path}{name}.")
    return found


NAMES = {path.split(".")[-1] for path in keys(yaml.compose(TEXTS[-1], yaml.BaseLoader))}
NAMES |= set(TextPair.model_fields)


def told(message: str, path: Path, data: bytes) -> bool:
    """Whether each sentence names the file, and the line or the key or both."""
    for sentence in message.removeprefix(f"{path}:").split(f"\n{path}:"):
        parts = re.fullmatch(r"(?:(\d+):)? (.*)", sentence, re.DOTALL)
        assert parts is not None, sentence
        line, problem = parts.groups()
        if re.match("not valid (YAML here|UTF-8)", problem):
            lines = data.decode(errors="replace").splitlines()
            known = line and 1 <= int(line) <= len(lines) + 1
        elif quoted := re.match(r"(unknown key )?'", problem):
            places = keys(yaml.compose(data.decode("utf-8-sig"), yaml.BaseLoader))
            found = [key for key in places if problem.startswith(f"{key}'", quoted.end())]
            known = any(str(places[key]) == line for key in found)
        else:
            known = "expected sections" in problem or NAMES & set(re.findall(r"\w+", problem))
        if not message.startswith(f"{path}:") or not known:
            return False
    return True


def refused(path: Path, data: bytes) -> bool:
    """Read the file, and look closely at what was read or said."""
    path.write_bytes(data)
    try:
        config = load_config(str(path))
    except ConfigError as error:
        assert told(str(error), path, data), str(error)
        return True
    node = yaml.compose(data.decode("utf-8-sig"), yaml.BaseLoader)
    assert held_as_written(node, config) if node else config == Config()
    return False


@pytest.mark.parametrize("cases", [150, pytest.param(10_000, marks=pytest.mark.slow)])
def test_a_mutated_file_is_read_as_written_or_refused(tmp_path: Path, cases: int) -> None:
    outcomes = []
    for seed in range(cases):
        try:
            outcomes.append(refused(tmp_path / "c.yaml", mutated(random.Random(seed))))
        except Exception as error:
            raise AssertionError(f"with seed {seed}: {error!r}") from error
    assert 0.1 < sum(outcomes) / cases < 0.9  # both happen
