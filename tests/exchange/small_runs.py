"""Small runs, trained for a second on the texts so that their translations differ and end."""

from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.batch import collate_source
from nmt.data.tokens.tokenizer import BOS, PAD
from nmt.data.tokens.vocabulary import learn_vocabulary
from nmt.exchange.engine import EngineTranslation
from nmt.recipe.config import Config, DecodingConfig, ModelConfig, TokenizerConfig
from nmt.run.model import LoadedModel, build_model
from nmt.search.sampling import greedy_search

LETTERS = "abcdefgh"
WORDS = [LETTERS[i : i + n] + LETTERS[n : i + n][::-1] for i in range(6) for n in range(1, 8)]
TEXTS = [*WORDS, "a 世 b", "</s> a", "ab <unk>"]
STEPS = 60


def small_run(**settings: Any) -> LoadedModel:
    """Return a run with the settings of its model that has begun to spell words backwards."""
    loaded = untrained_run(**settings)
    _train(loaded)
    return loaded


def untrained_run(**settings: Any) -> LoadedModel:
    """Return a run with random weights.

    Source and target have vocabularies of different sizes unless the embeddings are shared.
    """
    sizes = {"d_model": 16, "heads": 2, "d_ff": 24, "encoder_layers": 2, "decoder_layers": 3}
    model_config = ModelConfig(**sizes | settings)
    shared = model_config.embeddings == "shared"
    config = Config(
        model=model_config,
        tokenizer=TokenizerConfig(kind="char", vocabulary_size=40, shared=shared),
    )
    tokenizer = learn_vocabulary(
        [SentencePair(LETTERS + LETTERS.upper(), LETTERS)], config.tokenizer
    )
    torch.manual_seed(3)
    loaded = LoadedModel(config, tokenizer, build_model(config, tokenizer).eval(), Path("run"))
    for name, parameter in loaded.model.named_parameters():
        if parameter.dim() == 1:  # neutral biases and gains would hide mistakes
            nn.init.normal_(parameter, mean=float(name.endswith("norm.weight")), std=0.3)
    return loaded


def _train(loaded: LoadedModel) -> None:
    source = collate_source(loaded.tokenizer.source.encode(WORDS))
    target = collate_source(loaded.tokenizer.target.encode([word[::-1] for word in WORDS]))
    start = torch.full((len(WORDS), 1), BOS)
    target_input = torch.cat([start, target[:, :-1]], dim=1)
    optimizer = torch.optim.Adam(loaded.model.parameters(), lr=5e-3, fused=True)
    for _ in range(STEPS):
        logits = loaded.model(source, target_input)
        loss = F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def greedy_translations(loaded: LoadedModel, texts: list[str]) -> list[EngineTranslation]:
    """Return our own greedy translations, which may have 300 tokens and more."""
    source = collate_source(loaded.tokenizer.source.encode(texts))
    settings = DecodingConfig(max_length_offset=300, length_normalization="none")
    pieces = loaded.tokenizer.target.pieces
    return [
        EngineTranslation([pieces[i] for i in found.tokens], found.score)
        for found in greedy_search(loaded.model, source, settings)
    ]
