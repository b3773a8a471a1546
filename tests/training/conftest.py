"""A corpus, a recipe and a trainer small enough to train in a second."""

import functools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.config import Config
from nmt.config_file import parse_config
from nmt.model.transformer import Transformer
from nmt.run_directory import LoadedModel, RunDirectory
from nmt.training.train import train
from nmt.training.trainer import Trainer
from tests.training.runs import quiet

WORDS = {
    "the": "der",
    "dog": "Hund",
    "man": "Mann",
    "sees": "sieht",
    "old": "alte",
    "and": "und",
    "two": "zwei",
    "eats": "isst",
}


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of 60 training and 8 validation pairs that are translated word by word."""
    folder = tmp_path_factory.mktemp("corpus")
    draw = random.Random(1)
    sentences = [draw.choices(list(WORDS), k=draw.randint(1, 6)) for _ in range(68)]
    for name, part in (("train", sentences[:60]), ("validation", sentences[60:])):
        english = "".join(" ".join(words) + "\n" for words in part)
        german = "".join(" ".join(WORDS[word] for word in words) + "\n" for words in part)
        (folder / f"{name}.en").write_text(english, "utf-8")
        (folder / f"{name}.de").write_text(german, "utf-8")
    return folder


@pytest.fixture(scope="session")
def recipe(corpus: Path) -> Callable[..., Config]:
    """A function of `section.key=value` settings that override the tiny recipe."""
    sides = {
        name: f"{{source: {corpus}/{name}.en, target: {corpus}/{name}.de}}"
        for name in ("train", "validation")
    }
    text = f"""
data: {{directory: {corpus}/data, train: {sides["train"]}, validation: {sides["validation"]}}}
tokenizer: {{kind: bpe, vocabulary_size: 48}}
model: {{d_model: 16, heads: 2, d_ff: 24, encoder_layers: 1, decoder_layers: 1, dropout: 0.2}}
training:
  batch_tokens: 120
  max_steps: 12
  warmup_steps: 6
  peak_learning_rate: 0.01
  log_every: 2
  validate_every: 5
  checkpoint_every: 4
  average_checkpoints: 2
  device: cpu
  precision: fp32
  threads: 1
decoding: {{beam_size: 2, max_length_offset: 5}}
"""

    def made(*settings: str) -> Config:
        return parse_config(text, "recipe", settings)

    return made


@pytest.fixture(scope="session")
def trained(
    recipe: Callable[..., Config], tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., RunDirectory]:
    """A function of settings that returns a finished run, which tests only read or copy."""

    @functools.cache
    def made(*settings: str) -> RunDirectory:
        return train(recipe(*settings), tmp_path_factory.mktemp("trained") / "run", quiet)

    return made


@pytest.fixture
def make_trainer(tmp_path: Path) -> Callable[..., Trainer]:
    """A function of (config, store, vocabulary size) that gives a trainer with a new model."""

    def made(config: Config, store: Any, vocabulary_size: int, tokenizer: Any = None) -> Trainer:
        torch.manual_seed(config.seed)
        model = Transformer(config.model, vocabulary_size, vocabulary_size)
        if config.training.device == "cuda":
            model.to("cuda")
        directory = RunDirectory(tmp_path / "run")
        run = LoadedModel(config, tokenizer, model, directory.path)
        return Trainer(run, directory, store, None, "fp32")  # type: ignore[arg-type]

    return made
