"""How good the model is on sentences it never learns from: loss, and BLEU or chrF."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.batch import Batch, collate
from nmt.data.tokens.batches import micro_batches
from nmt.data.tokens.token_store import TokenStore
from nmt.evaluation.metrics import METRIC_NAMES, bleu, bleu_tokenizer, chrf
from nmt.run_directory import LoadedModel
from nmt.training.examples import EXAMPLES, ExampleTranslation
from nmt.training.objective import Objective
from nmt.translation.translator import Translator

BATCH_TOKENS = 4096


@dataclass(frozen=True)
class Validation:
    """The result of one validation."""

    loss: float
    """cross-entropy without smoothing, nats per target token"""
    quality: dict[str, float]
    """what the translations score, by metric; empty where nothing was translated"""
    translations: list[str]

    @property
    def score(self) -> float:
        """The figure by which models are chosen, higher is better: quality, or else minus loss."""
        return next(iter(self.quality.values()), -self.loss)

    def figures(self) -> dict[str, float]:
        """What is written down of it."""
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
        """Loss over the set, and what its translations score by the recipe's metric."""
        model, config = self.run.model, self.run.config
        model.eval()
        loss = self._loss()
        translations: list[str] = []
        quality: dict[str, float] = {}
        metric = config.training.validation_metric
        if metric != "loss" and math.isfinite(loss):
            settings = config.decoding.model_copy(update={"beam_size": beam_size})
            translator = Translator(self.run, settings, self.precision)
            translations = [t.text for t in translator.translate(p.source for p in self.pairs)]
            references = [pair.target for pair in self.pairs]
            if metric == "chrf":
                score = chrf(translations, references, confidence=False)
            else:
                tokenize = bleu_tokenizer(config.data.target_language, config.data.tokenized)
                score = bleu(translations, references, tokenize, confidence=False)
            quality[metric] = score.value
        model.train()
        return Validation(loss, quality, translations)

    def examples(self, result: Validation) -> list[ExampleTranslation]:
        """The first sentences as they were translated, to be kept beside the metrics."""
        found = zip(self.pairs[:EXAMPLES], result.translations[:EXAMPLES], strict=False)
        return [
            ExampleTranslation(pair.source, pair.target, translation) for pair, translation in found
        ]

    @torch.inference_mode()
    def _loss(self) -> float:
        device = next(self.run.model.parameters()).device
        objective = Objective(self.run.model, 0.0, self.precision)
        total, tokens = 0.0, 0
        for batch in self.batches:
            total += objective(batch.to(device)).cross_entropy.item()
            tokens += batch.tokens
        return total / tokens
