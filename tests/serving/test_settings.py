"""Settings of the server come from a file and from options, which win."""

import re
from pathlib import Path

import pytest

from nmt.errors import ConfigError
from nmt.serving.settings import ServerSettings, load_settings


def test_options_replace_the_keys_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "serve.yaml"
    path.write_text("models: [a, b]\nport: 80\npivot: true\n")
    settings = load_settings(path, {"port": 81, "host": None, "models": None})
    assert (settings.models, settings.port, settings.pivot) == (["a", "b"], 81, True)
    assert settings.host == "127.0.0.1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("models: [a]\nprot: 1", "serve.yaml:2: unknown key 'prot'; did you mean 'port'?"),
        ("models: [a]\nport: x", "serve.yaml:2: 'port': input should be a valid integer, got 'x'"),
        ("models: []", "serve.yaml:1: 'models': "),
        ("- a", "serve.yaml: expected keys and values, got a list"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "serve.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as error:
        load_settings(path, {})
    assert message in str(error.value)


def test_a_mistake_in_an_argument_names_the_argument(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="`workers`: 'workers': input should be greater than"):
        load_settings(None, {"models": ["a"], "workers": 0})


def test_the_readme_lists_every_key_with_its_default_and_meaning(project: Path) -> None:
    text = (project / "nmt/serving/README.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", text.split("## Settings")[1], re.MULTILINE))
    for name, field in ServerSettings.model_fields.items():
        words = {"None": "null", "True": "true", "False": "false"}
        default = "" if field.is_required() else str(field.default)
        default = words.get(default, default)
        meaning = " ".join((field.description or "").split())
        assert rows[name] == f"{default} | {meaning}"
