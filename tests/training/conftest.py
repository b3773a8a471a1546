"""A corpus, a recipe and a trainer small enough to train in a second."""

import functools
import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest
import torch

from nmt.data.tokens.token_store import TokenStore
from nmt.data.tokens.tokenizer import EOS
from nmt.model.transformer import Transformer
from nmt.recipe.config import Config, ModelConfig, TokenizerConfig, TrainingConfig
from nmt.recipe.config_file import parse_config
from nmt.run.directory import RunDirectory
from nmt.run.model import LoadedModel
from nmt.training.gradients import ComputedStep, GradientComputer
from nmt.training.train import train
from nmt.training.trainer import Trainer
from tests.training.runs import Diverge, MakeTrainer, Recipe, Trained, quiet

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


def write_corpus(folder: Path, training: int, validation: int) -> Path:
    """Write so many random pairs that are translated word by word; return the folder."""
    draw = random.Random(1)
    count = training + validation
    sentences = [draw.choices(list(WORDS), k=draw.randint(1, 6)) for _ in range(count)]
    for name, part in (("train", sentences[:training]), ("validation", sentences[training:])):
        english = "".join(" ".join(words) + "\n" for words in part)
        german = "".join(" ".join(WORDS[word] for word in words) + "\n" for words in part)
        (folder / f"{name}.en").write_text(english, "utf-8")
        (folder / f"{name}.de").write_text(german, "utf-8")
    return folder


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of 60 training and 8 validation pairs."""
    return write_corpus(tmp_path_factory.mktemp("corpus"), 60, 8)


@pytest.fixture(scope="session")
def recipe(corpus: Path) -> Recipe:
    """A function of `section.key=value` settings that override the tiny recipe."""
    sides = {
        name: f"{{source: {corpus}/{name}.en, target: {corpus}/{name}.de}}"
        for name in ("train", "validation")
    }
    text = f"""
data: {{directory: {corpus}/data, train: {sides["train"]}, validation: {sides["validation"]}}}
tokenizer: {{kind: bpe, vocabulary_size: 48}}
model: {{d_model: 64, heads: 4, d_ff: 64, encoder_layers: 1, decoder_layers: 1, dropout: 0.2}}
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
def trained(recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A function of settings that returns a finished run, which tests only read or copy."""

    @functools.cache
    def made(*settings: str) -> RunDirectory:
        return train(recipe(*settings), tmp_path_factory.mktemp("trained") / "run", quiet)

    return made


@pytest.fixture
def diverge(monkeypatch: pytest.MonkeyPatch) -> Diverge:
    """A function of the steps whose loss and gradients are to be NaN."""
    original = GradientComputer.compute

    def diverging(*steps: int) -> None:
        def compute(self: GradientComputer, step: int) -> ComputedStep:
            computed = original(self, step)
            if step in steps:
                computed.loss.mul_(math.nan)
                for parameter in self._loaded.model.parameters():
                    assert parameter.grad is not None
                    parameter.grad.mul_(math.nan)
            return computed

        monkeypatch.setattr(GradientComputer, "compute", compute)

    return diverging


class Spelling:
    """A tokenizer that spells ids as words."""

    def __init__(self) -> None:
        self.target = self

    def decode(self, rows: Sequence[Sequence[int]]) -> list[str]:
        return [" ".join(f"w{token}" for token in row) for row in rows]


@pytest.fixture
def small_trainer(tmp_path: Path) -> MakeTrainer:
    """A function of threads, rates of dropout and training settings that gives a new trainer."""
    draw, vocabulary = random.Random(1), 16
    rows = [[*draw.choices(range(4, vocabulary), k=draw.randint(1, 6)), EOS] for _ in range(300)]
    sizes = {"d_model": 16, "heads": 2, "d_ff": 32, "encoder_layers": 2, "decoder_layers": 2}

    def made(
        threads: int = 1, dropout: float = 0.0, attention_dropout: float = 0.0, **training: Any
    ) -> Trainer:
        torch.set_num_threads(threads)
        rates = {"dropout": dropout, "attention_dropout": attention_dropout}
        config = Config(
            tokenizer=TokenizerConfig(vocabulary_size=vocabulary),
            model=ModelConfig(**sizes, **rates),  # type: ignore[arg-type]
            training=TrainingConfig(**{"batch_tokens": 300, "device": "cpu", **training}),
        )
        torch.manual_seed(config.seed)
        model = Transformer(config.model, vocabulary, vocabulary).to(config.training.device)
        loaded = LoadedModel(config, cast(Any, Spelling()), model, tmp_path / "run")
        return Trainer(loaded, TokenStore.of(rows, rows), cast(Any, None), "fp32")

    return made
