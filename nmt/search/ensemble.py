"""An ensemble: several models predict each token together (Sutskever et al., 2014)."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn

from nmt.errors import ConfigError
from nmt.model.attention import AttentionRecord
from nmt.model.cache import DecoderCache
from nmt.model.transformer import Transformer
from nmt.run_directory import LoadedModel, load_run


def log_mean_probability(logits: Sequence[Tensor]) -> Tensor:
    """The log of the mean of softmax(x) over the models: each (..., V) -> (..., V) in float32."""
    total = logits[0].float().log_softmax(-1)
    for x in logits[1:]:
        total = torch.logaddexp(total, x.float().log_softmax(-1))
    return total - math.log(len(logits))


class EnsembleCache:
    """The decoder caches of all models."""

    def __init__(self, caches: list[DecoderCache]) -> None:
        self.caches = caches

    def continue_hypotheses(self, parents: Tensor) -> None:
        """Let hypothesis i of a sentence continue its former hypothesis parents[i]: (N, k)."""
        for cache in self.caches:
            cache.continue_hypotheses(parents)

    def keep_sentences(self, sentences: Tensor) -> None:
        """Keep only the sentences at these indices (N',)."""
        for cache in self.caches:
            cache.keep_sentences(sentences)


class Ensemble(nn.Module):
    """p(y_t | y_<t, x) is the mean of the probabilities that the models predict.

    It has the methods of a `Transformer`, so that searches and scoring treat it like one; its
    logits are log-probabilities.
    """

    def __init__(self, models: Sequence[Transformer]) -> None:
        super().__init__()
        self.models = nn.ModuleList(models)
        self.padding = models[0].padding

    def forward(self, source: Tensor, target_input: Tensor) -> Tensor:
        """Source (B, S) and shifted target (B, T) -> log-probabilities (B, T, V)."""
        return log_mean_probability([model(source, target_input) for model in members(self)])

    def encode(self, source: Tensor) -> list[Tensor]:
        """Source ids (B, S) -> the memory (B, S, D) of each model."""
        return [model.encode(source) for model in members(self)]

    def start(self, memory: list[Tensor], source: Tensor) -> EnsembleCache:
        """Begin to decode from the memories of the source ids (B, S)."""
        models = members(self)
        return EnsembleCache([m.start(x, source) for m, x in zip(models, memory, strict=True)])

    def step(
        self, latest: Tensor, cache: EnsembleCache, attention: AttentionRecord | None = None
    ) -> Tensor:
        """The latest token of k hypotheses a sentence (N, k) -> log-probabilities (N, k, V).

        `attention` collects the weights of all models, layer by layer, model after model.
        """
        steps = zip(members(self), cache.caches, strict=True)
        return log_mean_probability([model.step(latest, own, attention) for model, own in steps])


def members(model: nn.Module) -> list[Transformer]:
    """The models of an ensemble; any other model is its own only member."""
    models = list(model.models) if isinstance(model, Ensemble) else [model]
    return cast(list[Transformer], models)


def load_ensemble(
    paths: Sequence[str | Path], device: torch.device, checkpoint: str = "best"
) -> LoadedModel:
    """Load the weights of each path as `load_run` does; a single model is returned as it is.

    Configuration, tokenizer and path are those of the first one.

    Raises:
        CheckpointError: not a run directory, or the weights are missing or damaged.
        ConfigError: there is no path, or the vocabularies differ.
    """
    if not paths:
        raise ConfigError("no model is named; give at least one run directory or checkpoint")
    runs = [load_run(path, device, checkpoint) for path in paths]
    first, *others = runs
    if not others:
        return first
    for other in others:
        _check_same_vocabulary(first, other)
    ensemble = Ensemble([run.model for run in runs]).eval()
    # An Ensemble is not a Transformer, but has the methods that searching and scoring use.
    return replace(first, model=cast(Transformer, ensemble))


def _check_same_vocabulary(first: LoadedModel, other: LoadedModel) -> None:
    """Raise a ConfigError unless all ids have the same spelling; the files may differ."""
    one, two = first.tokenizer, other.tokenizer
    sides = {
        "source": (one.source.pieces, two.source.pieces),
        "target": (one.target.pieces, two.target.pieces),
    }
    for side, (mine, its) in sides.items():
        if mine == its:
            continue
        pairs = enumerate(zip(mine, its, strict=False))
        differing = (f"entry {i}: '{a}' and '{b}'" for i, (a, b) in pairs if a != b)
        difference = next(differing, f"{len(mine)} and {len(its)} entries")
        raise ConfigError(
            f"{first.path} and {other.path} differ in their {side} vocabulary ({difference}); the "
            "models of an ensemble need the same one: leave one out, or train it again with the "
            "other's tokenizer as tokenizer.model"
        )
