"""What fits of another model is taken, by name, shape and spelling; what does not is named."""

from pathlib import Path

import pytest
import torch

from nmt.checkpoint import load_weights
from nmt.config import Config
from nmt.data.tokens.tokenizer import Tokenizer
from nmt.errors import CheckpointError, ConfigError
from nmt.run_directory import RunDirectory, checkpoint_folder
from nmt.training.train import train
from tests.training.runs import Recipe, quiet

BEGIN = "training.initialize_from={}"


@pytest.fixture(scope="module")
def kept() -> list[RunDirectory]:
    return []


@pytest.fixture
def first(
    recipe: Recipe, kept: list[RunDirectory], tmp_path_factory: pytest.TempPathFactory
) -> RunDirectory:
    if not kept:
        kept.append(train(recipe(), tmp_path_factory.mktemp("first") / "run", quiet))
    return kept[0]


def begun(config: Config, path: Path) -> tuple[RunDirectory, list[str]]:
    """A run whose one step changes nothing worth mentioning, and what it says."""
    log: list[str] = []
    return train(config, path, log.append), log


def tiny_step(*settings: str) -> list[str]:
    rate = ["training.peak_learning_rate=1e-12", "training.warmup_steps=1"]
    return ["training.max_steps=1", *rate, *settings]


def test_the_same_recipe_begins_with_all_of_the_best_weights(
    recipe: Recipe, first: RunDirectory, tmp_path: Path
) -> None:
    settings = tiny_step(BEGIN.format(first.path))
    run, log = begun(recipe(*settings), tmp_path / "run")
    found = load_weights(run.checkpoint(1))
    expected = load_weights(checkpoint_folder(first, "best"))
    for name, weight in expected.items():
        torch.testing.assert_close(found[name], weight, rtol=0, atol=1e-6)
    assert any(line.startswith(f"initialised {len(expected)} of {len(expected)}") for line in log)
    assert not any("new, or new in part" in line for line in log)


def test_rows_of_another_vocabulary_are_taken_by_spelling(
    recipe: Recipe, first: RunDirectory, tmp_path: Path
) -> None:
    settings = tiny_step(BEGIN.format(first.path), "tokenizer.vocabulary_size=44")
    run, log = begun(recipe(*settings), tmp_path / "run")
    old, new = (Tokenizer.load(r.tokenizer).target.pieces for r in (first, run))
    there = load_weights(checkpoint_folder(first, "best"))["target_embedding.weight"]
    here = load_weights(run.checkpoint(1))["target_embedding.weight"]
    both = set(old) & set(new)
    assert 20 < len(both) < 48
    for piece in both:
        torch.testing.assert_close(
            here[new.index(piece)], there[old.index(piece)], atol=1e-6, rtol=0
        )


def test_what_does_not_fit_is_named(recipe: Recipe, first: RunDirectory, tmp_path: Path) -> None:
    other = ["model.d_ff=20", "model.encoder_layers=2", "model.embeddings=target"]
    config = recipe(*tiny_step(BEGIN.format(first.path), *other))
    _, log = begun(config, tmp_path / "run")
    (new,) = (line for line in log if "new, or new in part" in line)
    assert "source_embedding.weight (not there)" in new
    assert "encoder.layers.0.feed_forward.inner.weight ((24, 16) there, (20, 16) here)" in new
    config = recipe(*tiny_step(BEGIN.format(first.checkpoint(12)), "model.norm=pre"))
    _, log = begun(config, tmp_path / "other")
    assert any("encoder.norm.weight (not there)" in line for line in log)


def test_nothing_that_fits_is_an_error(recipe: Recipe, first: RunDirectory, tmp_path: Path) -> None:
    config = recipe(BEGIN.format(first.path), "model.d_model=8", "model.d_ff=9")
    with pytest.raises(ConfigError, match="none of its weights fits this model .*use its"):
        train(config, tmp_path / "run", quiet)


def test_a_model_that_is_not_there_is_told_before_anything_is_made(
    recipe: Recipe, tmp_path: Path
) -> None:
    with pytest.raises(CheckpointError, match="nowhere: not a run directory: no such directory"):
        train(recipe(BEGIN.format("nowhere")), tmp_path / "run", quiet)
    assert not (tmp_path / "run").exists()


def test_a_resumed_run_keeps_its_own_weights(
    recipe: Recipe, first: RunDirectory, tmp_path: Path
) -> None:
    settings = [BEGIN.format(first.path)]
    whole = train(recipe(*settings), tmp_path / "whole", quiet)
    train(recipe(*settings, "training.max_steps=8"), tmp_path / "run", quiet)
    run = train(recipe(*settings), tmp_path / "run", quiet)
    one, other = (load_weights(r.checkpoint(12)) for r in (run, whole))
    assert all(torch.equal(one[name], other[name]) for name in other)
