"""A recipe that begins with a model takes from it what it does not say itself."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml

from nmt.data.tokens.tokenizer import Tokenizer
from nmt.errors import ConfigError
from nmt.exchange.imported import read_provenance
from nmt.recipe.config import Config
from nmt.recipe.config_file import load_config, parse_config
from nmt.search.shortlist import Shortlist
from nmt.training.inheritance import inherit
from nmt.training.train import train
from tests.training.runs import Recipe, Trained, quiet

OWN = ["model.dropout=0.25"]


def short(recipe: Recipe, parent: Path, steps: int = 1) -> Config:
    """Return the recipe of a parent without its model and its tokenizer."""
    config = recipe(f"training.max_steps={steps}", f"training.initialize_from={parent}")
    values = config.model_dump(exclude={"model", "tokenizer", "decoding"})
    return parse_config(yaml.safe_dump(values))


def test_what_the_recipe_gives_is_its_own_and_the_rest_is_the_parents(
    recipe: Recipe, trained: Trained
) -> None:
    parent = trained()
    config = short(recipe, parent.path)
    config = parse_config(yaml.safe_dump(config.model_dump(exclude_unset=True)), settings=OWN)
    found, theirs = inherit(config), load_config(str(parent.config))
    assert found.model == theirs.model.model_copy(update={"dropout": 0.25})
    assert found.decoding == theirs.decoding


def test_a_run_keeps_tokenizer_and_shortlist_and_resumes_without_its_parent(
    recipe: Recipe, trained: Trained, tmp_path: Path
) -> None:
    parent = shutil.copytree(trained().path, tmp_path / "parent")
    old = Tokenizer.load(parent / "tokenizer")
    candidates, always = np.zeros((old.source.size, 1), np.int64), np.arange(4)
    Shortlist(candidates, always, old.target.size, old.shared).save(parent / "shortlist.npz", old)
    run = train(short(recipe, parent), tmp_path / "run", quiet)
    shutil.rmtree(parent)
    train(short(recipe, parent, 2), run.path, quiet)
    assert not Tokenizer.load(run.tokenizer).differs_from(old)
    assert run.checkpoint(2).is_dir()
    assert Shortlist.load(run.shortlist, old).always.tolist() == [0, 1, 2, 3]


def test_a_run_with_a_vocabulary_of_its_own_keeps_the_origin_of_its_weights(
    recipe: Recipe, trained: Trained, tmp_path: Path
) -> None:
    parent = shutil.copytree(trained().path, tmp_path / "parent")
    record = {"source": "a/b", "format": "huggingface", "license": "cc-by-4.0"}
    (parent / "imported").mkdir()
    (parent / "imported" / "provenance.json").write_text(json.dumps(record))
    (parent / "shortlist.npz").write_bytes(b"of the other vocabulary")
    config = recipe("training.max_steps=1", f"training.initialize_from={parent}")
    assert "tokenizer" in config.model_fields_set
    run = train(config, tmp_path / "run", quiet)
    assert not run.shortlist.exists()
    assert read_provenance(run) == record


def test_a_parent_without_a_tokenizer_is_an_error(
    recipe: Recipe, trained: Trained, tmp_path: Path
) -> None:
    parent = shutil.copytree(trained().path, tmp_path / "parent")
    shutil.rmtree(parent / "tokenizer")
    with pytest.raises(ConfigError, match="has no tokenizer; restore its folder tokenizer/"):
        inherit(short(recipe, parent))
