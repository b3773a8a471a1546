"""Adaptation at once: a few updates on the pairs of a memory that are nearest to a segment.

Farajian, Turchi, Negri and Federico, "Multi-Domain Neural Machine Translation through Unsupervised
Adaptation" (WMT 2017). Before a segment is translated, a copy of the output projection takes steps
of gradient descent on its nearest pairs, with the loss of training. The more similar they are, the
more steps there are, and the larger they are. The weights of the model never change, so every
segment begins with them, and nothing has to be undone.

The decoder's output x (U, D) for the U tokens of the pairs does not depend on the projection E. So
it is computed once, and so is K = x x^T. After steps of the rate r with gradients G_i (U, V) of the
logits, E has become E - r C^T x, C being the sum of the G_i, and the logits have changed by -r K C.
Only C is kept until the last step.
"""

import copy
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import torch
from torch import Tensor, nn

from nmt.data.tokens.tokenizer import PAD
from nmt.errors import ConfigError
from nmt.inference.prepare import prepare_for_scoring
from nmt.memory.match import Match
from nmt.model.transformer import Transformer
from nmt.run.model import LoadedModel
from nmt.search.ensemble import Ensemble
from nmt.search.searcher import Searcher
from nmt.training.loss import loss_and_gradient
from nmt.translation.line import MAX_SOURCE_TOKENS
from nmt.translation.scoring import pair_batches

STEPS = 64
"""steps for pairs of the similarity 1"""
RATE = 4.0
"""learning rate for pairs of the similarity 1, over a bound of the largest eigenvalue of K; up to 4
the loss, which is convex in E, falls with each step, for every model"""


class Adaptation:
    """Lets a model learn from a few pairs, for one translation; several threads may use it."""

    def __init__(self, loaded: LoadedModel, steps: int = STEPS, rate: float = RATE) -> None:
        """Prepare for the model `loaded`.

        Raises:
            ConfigError: several models translate together.
        """
        if isinstance(loaded.model, Ensemble):
            raise ConfigError(
                "a single model can learn from a memory, and several translate together here; "
                "give one of them"
            )
        self._loaded, self._steps, self._rate = loaded, steps, rate

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle what it was made of."""
        return Adaptation, (self._loaded, self._steps, self._rate)

    def adapted(self, searcher: Searcher, matches: Sequence[Match]) -> Searcher:
        """Return a searcher like `searcher`, whose model has learnt from `matches`."""
        projection = self.learn(matches)
        model, loaded = self._loaded.model, self._loaded
        output = copy.copy(model.output_embedding)
        output._parameters = {**output._parameters, "weight": nn.Parameter(projection, False)}
        adapted = copy.copy(model)  # shares all modules but this one
        adapted._modules = {**model._modules, "output_embedding": output}
        return searcher.with_projection(replace(loaded, weights=adapted), projection.cpu().numpy())

    @torch.no_grad()
    def learn(self, matches: Sequence[Match]) -> Tensor:
        """Return the matrix of the output projection (V, D) after the steps for these matches."""
        x, target, similarity = self._decoder_output(matches)  # (U, D), (U), (U, 1)
        output, smoothing = (
            self._model.output_embedding,
            self._loaded.config.training.label_smoothing,
        )
        logits, kernel = output.logits(x), x @ x.t()  # (U, V), (U, U)
        rate = self._rate / kernel.abs().sum(1).max().item()
        coefficients, real = torch.zeros_like(logits), torch.ones_like(target, dtype=torch.bool)
        for _ in range(math.ceil(self._steps * similarity.max().item())):
            gradient = torch.addmm(logits, kernel, coefficients, alpha=-rate)
            loss_and_gradient(gradient, target, real, smoothing)  # overwrites the logits
            coefficients.addcmul_(gradient, similarity)
        return torch.addmm(output.weight, coefficients.t(), x, alpha=-rate)

    @cached_property
    def _model(self) -> Transformer:
        return prepare_for_scoring(self._loaded.model)

    def _decoder_output(self, matches: Sequence[Match]) -> tuple[Tensor, Tensor, Tensor]:
        """Return what belongs to each target token of the pairs.

        That is the decoder's output (U, D), the id (U), and the similarity of its pair (U, 1).
        """
        model, vocabularies = self._model, self._loaded.tokenizer
        sources = vocabularies.source.encode([match.source for match in matches])
        targets = vocabularies.target.encode([match.target for match in matches])
        short = [[ids[:MAX_SOURCE_TOKENS] for ids in side] for side in (sources, targets)]
        device, columns = next(model.parameters()).device, []
        for indices, batch in pair_batches(short[0], short[1], MAX_SOURCE_TOKENS):
            batch = batch.to(device)
            x = model.decoder_output(batch.source, batch.target_input)  # (B, T, D)
            scores = torch.tensor([matches[i].score for i in indices], device=device)
            real = batch.target_output != PAD
            similarity = scores[:, None].expand_as(real)[real]
            columns.append((x[real], batch.target_output[real], similarity[:, None]))
        x, ids, similarity = map(torch.cat, zip(*columns, strict=True))
        return x, ids, similarity
