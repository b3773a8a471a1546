"""How good the model is on sentences it never learns from: loss, perplexity, BLEU."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from nmt.data.batch import Batch, collate
from nmt.data.batches import micro_batches
from nmt.data.parallel_text import SentencePair
from nmt.data.token_store import TokenStore
from nmt.data.tokenizer import PAD
from nmt.decoding.translator import Translator
from nmt.device import autocast
from nmt.evaluation.metrics import bleu
from nmt.run_directory import Run
from nmt.training.loss import label_smoothed_cross_entropy

BATCH_TOKENS = 4096


@dataclass(frozen=True)
class Validation:
    """The result of one validation."""

    loss: float
    """cross-entropy without smoothing, nats per target token"""
    bleu: float | None
    translations: list[str]

    @property
    def score(self) -> float:
        """The figure by which models are chosen, higher is better: BLEU, or else minus the loss."""
        return -self.loss if self.bleu is None else self.bleu

    def figures(self) -> dict[str, float | None]:
        """What is written down of it."""
        return {"loss": self.loss, "bleu": self.bleu}


class Validator:
    """A validation set, encoded once, in batches of similar length."""

    def __init__(self, pairs: Sequence[SentencePair], run: Run, precision: str) -> None:
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
        """Loss over the set, and BLEU of its translations unless the recipe leaves it out."""
        model, config = self.run.model, self.run.config
        model.eval()
        loss = self._loss()
        translations: list[str] = []
        score: float | None = None
        if config.training.validation_bleu:
            settings = config.decoding.model_copy(update={"beam_size": beam_size})
            translator = Translator(self.run, settings, self.precision)
            translations = [t.text for t in translator.translate(p.source for p in self.pairs)]
            references = [pair.target for pair in self.pairs]
            tokenized = config.data.tokenized
            score = bleu(translations, references, tokenized=tokenized, confidence=False).value
        model.train()
        return Validation(loss, score, translations)

    @torch.inference_mode()
    def _loss(self) -> float:
        device = next(self.run.model.parameters()).device
        total, tokens = 0.0, 0
        for batch in self.batches:
            batch = batch.to(device)
            with autocast(device, self.precision):
                logits = self.run.model(batch.source, batch.target_input)
            loss = label_smoothed_cross_entropy(logits, batch.target_output, PAD, 0.0)
            total += loss.cross_entropy.item()
            tokens += batch.tokens
        return total / tokens
