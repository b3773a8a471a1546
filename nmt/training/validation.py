"""Validation: the loss on sentences that the model never learns from, and BLEU or chrF."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.batch import Batch, collate
from nmt.data.tokens.batches import micro_batches
from nmt.data.tokens.token_store import TokenStore
from nmt.evaluation.metrics import METRIC_NAMES, bleu, bleu_tokenizer, chrf_metric
from nmt.run_directory import LoadedModel
from nmt.training.examples import EXAMPLES, ExampleTranslation
from nmt.training.loss import Objective
from nmt.translation.translator import Translator

BATCH_TOKENS = 4096


@dataclass(frozen=True)
class Validation:
    """The result of one validation."""

    loss: float
    """cross-entropy without smoothing, nats per target token"""
    quality: dict[str, float]
    """score of the translations by the name of the metric; empty if nothing was translated"""
    translations: list[str]

    @property
    def score(self) -> float:
        """The figure by which models are chosen, higher is better: quality, or else minus loss."""
        return next(iter(self.quality.values()), -self.loss)

    def figures(self) -> dict[str, float]:
        """Return the figures that are recorded."""
        return {"loss": self.loss, **self.quality}

    def __str__(self) -> str:
        scores = (f", {METRIC_NAMES[name]} {score:.2f}" for name, score in self.quality.items())
        return f"validation loss {self.loss:.3f} nats/token" + "".join(scores)


class Validator:
    """A validation set, encoded once, in batches of similar length."""

    def __init__(self, pairs: Sequence[SentencePair], run: LoadedModel, precision: str) -> None:
        self.pairs = pairs
        self.run = run
        self.precision = precision
        encoded = TokenStore.of(
            run.tokenizer.encode_source([pair.source for pair in pairs]),
            run.tokenizer.encode_target([pair.target for pair in pairs]),
        )
        lengths = encoded.source.lengths, encoded.target.lengths
        parts = micro_batches(np.arange(len(pairs)), *lengths, BATCH_TOKENS)
        self.batches: list[Batch] = [collate(encoded, part) for part in parts]

    def validate(self, beam_size: int = 1) -> Validation:
        """Compute the loss, and score the translations unless the recipe's metric is the loss."""
        model, metric = self.run.model, self.run.config.training.validation_metric
        model.eval()
        loss = self._loss()
        translations: list[str] = []
        quality: dict[str, float] = {}
        if metric != "loss" and math.isfinite(loss):
            translations = self._translate(beam_size)
            quality[metric] = self._score(metric, translations)
        model.train()
        return Validation(loss, quality, translations)

    def examples(self, result: Validation) -> list[ExampleTranslation]:
        """Return the first sentences with their translations, to be kept beside the metrics."""
        examples = zip(self.pairs[:EXAMPLES], result.translations[:EXAMPLES], strict=False)
        return [ExampleTranslation(pair.source, pair.target, text) for pair, text in examples]

    @torch.inference_mode()
    def _loss(self) -> float:
        device = next(self.run.model.parameters()).device
        objective = Objective(self.run.model, 0.0, self.precision)
        total, tokens = 0.0, 0
        for batch in self.batches:
            total += objective(batch.to(device)).cross_entropy.item()
            tokens += batch.tokens
        return total / tokens

    def _translate(self, beam_size: int) -> list[str]:
        settings = self.run.config.decoding.model_copy(update={"beam_size": beam_size})
        translator = Translator(self.run, settings, self.precision)
        return [t.text for t in translator.translate(pair.source for pair in self.pairs)]

    def _score(self, metric: str, translations: list[str]) -> float:
        """Return what the translations score by a metric of `METRIC_NAMES`."""
        references = [pair.target for pair in self.pairs]
        if metric == "chrf":
            return chrf_metric().score(translations, references, confidence=False).value
        data = self.run.config.data
        tokenize = bleu_tokenizer(data.target_language, data.tokenized)
        return bleu(translations, references, tokenize, confidence=False).value
