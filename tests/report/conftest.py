"""A run with a model of a few weights and a tokenizer of letters, and records of metrics.jsonl."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from nmt.model.transformer import Transformer
from nmt.recipe.config import Config

LETTERS = "▁abcdefghijklmnopqrstuvwxyz"


class LetterVocabulary:
    """A letter a piece: as much of a vocabulary as the maps need."""

    def encode(self, texts: list[str]) -> list[list[int]]:
        return [[4 + LETTERS.index(c) for c in text.replace(" ", "▁")] + [3] for text in texts]

    pieces = ["<unk>"] * 4 + list(LETTERS)


@pytest.fixture(scope="session")
def loaded() -> Any:
    """A run with two encoder layers, three decoder layers and two heads."""
    torch.manual_seed(1)
    sizes = {"d_model": 8, "heads": 2, "d_ff": 8, "encoder_layers": 2, "decoder_layers": 3}
    decoding = {"beam_size": 1, "max_length_offset": 3}
    config = Config.model_validate({"model": sizes, "decoding": decoding})
    size = 4 + len(LETTERS)
    model = Transformer(config.model, size, size).eval()
    model.target_embedding.weight.data[3] = 0.0  # never the most probable: it does not stop
    letters = LetterVocabulary()
    return SimpleNamespace(
        config=config, tokenizer=SimpleNamespace(source=letters, target=letters), model=model
    )


def with_longer_translations(loaded: Any, extra: int) -> Any:
    """The run with translations of `extra` pieces more than the source with its </s>."""
    settings = loaded.config.decoding.model_copy(update={"max_length_offset": extra})
    config = loaded.config.model_copy(update={"decoding": settings})
    return SimpleNamespace(config=config, tokenizer=loaded.tokenizer, model=loaded.model)


def write_metrics(path: Path, *records: dict[str, Any], tail: str = "") -> Path:
    """Write one record per line, then `tail`."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records) + tail, "utf-8")
    return path


def training(step: int, loss: float, **figures: Any) -> dict[str, Any]:
    """A record of training."""
    return {"event": "train", "step": step, "loss": loss, **figures}


def validation(step: int, loss: float, bleu: float | None, **figures: Any) -> dict[str, Any]:
    """A record of a validation."""
    return {"event": "validation", "step": step, "loss": loss, "bleu": bleu, **figures}
