"""An ensemble: several models predict each token together (Sutskever et al., 2014)."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn

from nmt.errors import ConfigError
from nmt.inference.prepare import restrict_vocabulary
from nmt.model.attention import AttentionRecord
from nmt.model.cache import DecoderCache
from nmt.model.transformer import Transformer
from nmt.run.model import LoadedModel, load_model


def log_mean_probability(logits: Sequence[Tensor]) -> Tensor:
    """Average the models' probabilities: logits (..., V) of each -> log of the mean, in float32."""
    total = logits[0].float().log_softmax(-1)
    for of_model in logits[1:]:  # logaddexp adds probabilities that are given as logarithms
        total = torch.logaddexp(total, of_model.float().log_softmax(-1))
    return total - math.log(len(logits))


class EnsembleCache:
    """The decoder caches of all models, used like a single `DecoderCache`."""

    def __init__(self, caches: list[DecoderCache]) -> None:
        self.caches = caches

    def continue_hypotheses(self, parents: Tensor) -> None:
        """Let hypothesis i of sentence n continue its hypothesis parents[n, i], in all caches."""
        for cache in self.caches:
            cache.continue_hypotheses(parents)

    def keep_sentences(self, sentences: Tensor) -> None:
        """Keep only the sentences at these indices (N',), in all caches."""
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
        """Source ids (B, S), target ids with BOS (B, T) -> log P of each next token (B, T, V)."""
        return log_mean_probability([model(source, target_input) for model in members(self)])

    def encode(self, source: Tensor) -> list[Tensor]:
        """Source ids (B, S) -> the encoder's output (B, S, D) of each model."""
        return [model.encode(source) for model in members(self)]

    def start(self, memory: list[Tensor], source: Tensor) -> EnsembleCache:
        """Return empty caches; `memory` is the result of `encode` for the source ids (B, S)."""
        pairs = zip(members(self), memory, strict=True)
        return EnsembleCache([model.start(output, source) for model, output in pairs])

    def step(
        self, latest: Tensor, cache: EnsembleCache, attention: AttentionRecord | None = None
    ) -> Tensor:
        """Latest ids (N, k) of k hypotheses per sentence -> log P of their next tokens (N, k, V).

        Extends `cache`. `attention` collects the weights of the first model's layers, then of the
        second's, and so on.
        """
        pairs = zip(members(self), cache.caches, strict=True)
        return log_mean_probability([model.step(latest, own, attention) for model, own in pairs])


def members(model: nn.Module) -> list[Transformer]:
    """Return the models of an ensemble; for any other model, a list with only that model."""
    models = list(model.models) if isinstance(model, Ensemble) else [model]
    return cast(list[Transformer], models)


def restrict_models(model: Transformer, ids: Tensor) -> Transformer:
    """Return a copy of a model, or of an ensemble, with only the target vocabulary `ids` (V')."""
    entries = ids.to(next(model.parameters()).device)
    copies = [restrict_vocabulary(member, entries) for member in members(model)]
    return cast(Transformer, Ensemble(copies)) if isinstance(model, Ensemble) else copies[0]


def load_ensemble(
    paths: Sequence[str | Path],
    device: torch.device,
    checkpoint: str = "best",
    adapter: str | Path | None = None,
) -> LoadedModel:
    """Load runs or checkpoints as one model: an `Ensemble`, or if there is one path, its model.

    `checkpoint` names the weights in a run directory: best, last, step-N and so on. The result has
    the configuration, tokenizer and path of the first model. `adapter` is for a single path, see
    `load_model`.

    Raises:
        CheckpointError: not a run directory, or the weights are missing or damaged.
        ConfigError: there is no path, the vocabularies differ, or an adapter is given for several.
    """
    if not paths:
        raise ConfigError("no model is named; give at least one run directory or checkpoint")
    if adapter is not None and len(paths) > 1:
        raise ConfigError(
            f"{adapter}: an adapter belongs to one model, got {len(paths)}; the run of an adapter "
            "may be one of the models of an ensemble"
        )
    loaded_models = [load_model(path, device, checkpoint, adapter) for path in paths]
    first, *others = loaded_models
    if not others:
        return first
    for other in others:
        _check_same_vocabulary(first, other)
    ensemble = Ensemble([loaded.model for loaded in loaded_models]).eval()
    # An Ensemble is not a Transformer, but has the methods that searching and scoring use.
    return replace(first, weights=cast(Transformer, ensemble))


def _check_same_vocabulary(first: LoadedModel, other: LoadedModel) -> None:
    """Raise a ConfigError unless all ids have the same spelling; the files may differ."""
    for side in ("source", "target"):
        one, two = (getattr(loaded.tokenizer, side).pieces for loaded in (first, other))
        if one == two:
            continue
        pairs = enumerate(zip(one, two, strict=False))  # to the end of the shorter one
        differing = (f"entry {i}: '{a}' and '{b}'" for i, (a, b) in pairs if a != b)
        difference = next(differing, f"{len(one)} and {len(two)} entries")
        raise ConfigError(
            f"{first.path} and {other.path} differ in their {side} vocabulary ({difference}); the "
            "models of an ensemble need the same one: leave one out, or train it again with the "
            "other's tokenizer as tokenizer.model"
        )
