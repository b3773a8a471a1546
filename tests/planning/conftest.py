"""A small corpus with its recipe, and a machine that never runs out of memory or disk."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from nmt.planning import plan, recipe_checks
from nmt.recipe.config import Config
from nmt.recipe.config_file import parse_config
from tests.training.runs import Recipe

RECIPE = """
data:
  train: {source: train.en, target: train.de}
  validation: {source: validation.en, target: validation.de}
  test: {source: test.en, target: test.de}
tokenizer: {vocabulary_size: 60}
model: {d_model: 16, heads: 2, d_ff: 24, encoder_layers: 1, decoder_layers: 1, dropout: 0.1}
training:
  batch_tokens: 200
  max_steps: 40
  warmup_steps: 10
  validate_every: 10
  checkpoint_every: 10
  device: cpu
  precision: fp32
  threads: 1
"""


@pytest.fixture(autouse=True)
def ample_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Free memory and disk do not depend on other processes."""
    for module in (plan, recipe_checks):
        monkeypatch.setattr(module, "free_memory", lambda device: 10**13)
    monkeypatch.setattr(recipe_checks, "free_space", lambda folder: 10**13)


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The current folder, which is still empty at the end of the test."""
    monkeypatch.chdir(tmp_path)
    yield
    assert not list(tmp_path.iterdir())


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recipe:
    """A function from overriding settings to the recipe; its paths are relative to tmp_path."""
    monkeypatch.chdir(tmp_path)
    for name, count in (("train", 60), ("validation", 8), ("test", 5)):
        lines = [f"{'the small dog ' * (n % 3)}number {n} ." for n in range(count)]
        for language in ("en", "de"):
            (tmp_path / f"{name}.{language}").write_text("".join(f"{line}\n" for line in lines))

    def build(*settings: str) -> Config:
        return parse_config(RECIPE, "recipe", settings)

    return build
