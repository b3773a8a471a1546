"""The public names: each is there, is documented, and stands on the page; no other is."""

import re
from pathlib import Path

import pytest

import nmt

PAGE = (Path(nmt.__file__).parent / "README.md").read_text("utf-8").partition("## From Python")[2]
NAMED = re.findall(r"`(\w+)`", "".join(re.findall(r"(?m)^\| (`.*?) \|", PAGE)))


def test_the_page_has_the_public_names_and_no_other() -> None:
    grouped = {"transformer_base", "transformer_big"}  # stand beside `Transformer`
    parts = {"Batch", "Config", "LoadedModel", "Prepared", "Translator", "Callbacks"}
    assert {*NAMED, *grouped, *parts} == set(nmt.__all__)
    assert all(f"`{name}`" in PAGE for name in grouped | parts)


@pytest.mark.parametrize("name", nmt.__all__)
def test_a_public_name_is_imported_and_says_what_it_is(name: str) -> None:
    assert getattr(nmt, name).__doc__


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'nmt' has no attribute 'laod'"):
        _ = nmt.laod


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"model.d_modell": 8}, "setting model.d_modell: .*d_model"),
        ({"training.max_steps": "many"}, "setting training.max_steps: "),
    ],
)
def test_a_setting_of_a_recipe_is_checked(settings: dict[str, object], problem: str) -> None:
    with pytest.raises(nmt.NmtError, match=problem):
        nmt.read_config("demo.yaml", settings)


def test_settings_replace_those_of_a_recipe() -> None:
    settings = {"model.dropout": 0.25, "training.early_stopping": None, "tokenizer.kind": "char"}
    config = nmt.read_config("demo.yaml", settings)
    assert config.model.dropout == 0.25
    assert (config.training.early_stopping, config.tokenizer.kind) == (None, "char")
