"""A small corpus of one's own and a recipe for it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.config import Config
from nmt.config_file import parse_config

Recipe = Callable[..., Config]


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recipe:
    """A function of settings that override the recipe; its paths are relative, as users' are."""
    monkeypatch.chdir(tmp_path)
    for name, count in (("train", 60), ("validation", 8), ("test", 5)):
        lines = [f"{'the small dog ' * (n % 3)}number {n} ." for n in range(count)]
        for language in ("en", "de"):
            (tmp_path / f"{name}.{language}").write_text("".join(f"{line}\n" for line in lines))
    text = """
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

    def made(*settings: str) -> Config:
        return parse_config(text, "recipe", settings)

    return made
