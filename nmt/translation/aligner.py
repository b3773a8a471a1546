"""Alignments and token scores of translations, from the attention of a decoder layer."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from nmt.data.tokens.batch import Batch, collate
from nmt.data.tokens.token_store import TokenStore
from nmt.data.tokens.tokenizer import EOS
from nmt.device import autocast
from nmt.model.transformer import Transformer
from nmt.search.ensemble import log_mean_probability
from nmt.search.searcher import Searcher
from nmt.search.source_attention import most_attended, teacher_forced_attention
from nmt.search.windows import batches
from nmt.translation.line import EncodedLine, Translation
from nmt.translation.scoring import target_log_probabilities
from nmt.translation.word_alignment import Alignment, align_words

# Attention grows with the square of the length: longer sentences count as more tokens.
EVEN_LENGTH = 64


@dataclass(frozen=True)
class AttendedTargets:
    """What the model says about a batch of targets."""

    log_probabilities: Tensor
    """(B, T) log P of each target token"""
    places: Tensor
    """(B, T - 1) the source position that each target token but the last attends to most"""


@torch.inference_mode()
def attend(model: Transformer, batch: Batch) -> AttendedTargets:
    """Feed the targets to a model in eval mode, in one pass, and read scores and attention."""
    logits, weights = teacher_forced_attention(model, batch)
    joint = log_mean_probability(logits) if len(logits) > 1 else logits[0]
    mean = weights[:, :-1]  # (B, T - 1, S)
    return AttendedTargets(
        target_log_probabilities(joint, batch.target_output, model.padding),
        most_attended(mean, batch.source, model.padding),
    )


@dataclass(frozen=True)
class AlignmentStage:
    """Adds to translations which of their words belong to which words of the source."""

    searcher: Searcher

    def enter(self, lines: list[EncodedLine]) -> list[EncodedLine]:
        """Return the lines unchanged."""
        return lines

    def leave(
        self, lines: Sequence[EncodedLine], found: list[list[Translation]]
    ) -> list[list[Translation]]:
        """Align all translations; the alignment of a copied line is empty."""
        aligned = [[replace(t, alignment=Alignment()) for t in own] for own in found]
        places = [(i, k) for i, line in enumerate(lines) if line.ids for k in range(len(found[i]))]
        sources = [lines[i].ids for i, _ in places]
        targets = [[*aligned[i][k].tokens, EOS] for i, k in places]
        rows = self._attend_all(sources, targets)
        for (i, k), attended, scores in zip(places, *rows, strict=True):
            alignment = self._alignment(lines[i], aligned[i][k], attended, scores)
            aligned[i][k] = replace(aligned[i][k], alignment=alignment)
        return aligned

    def _attend_all(
        self, sources: Sequence[list[int]], targets: Sequence[list[int]]
    ) -> tuple[list[list[int]], list[list[float]]]:
        """For each pair the source position that each token attends to, and its log P."""
        if not sources:
            return [], []
        places: list[list[int]] = [[] for _ in sources]
        scores: list[list[float]] = [[] for _ in sources]
        store = TokenStore.of(sources, targets)
        longest = np.maximum(store.source.lengths, store.target.lengths).tolist()
        counted = [max(n, n * n // EVEN_LENGTH) for n in longest]
        searcher = self.searcher
        for batch in batches(range(len(sources)), counted, searcher.settings.batch_tokens):
            pairs = collate(store, np.array(batch)).to(searcher.device)
            with autocast(searcher.device, searcher.precision):
                found = attend(searcher.run.model, pairs)
            rows = (found.places.tolist(), found.log_probabilities.tolist())
            for i, attended, log_probabilities in zip(batch, *rows, strict=True):
                places[i] = attended[: len(targets[i]) - 1]
                scores[i] = log_probabilities[: len(targets[i])]
        return places, scores

    def _alignment(
        self,
        line: EncodedLine,
        translation: Translation,
        attended: Sequence[int],
        scores: Sequence[float],
    ) -> Alignment:
        tokenizer = self.searcher.run.tokenizer
        tokens = translation.tokens
        read = tokenizer.source.split(line.line.text)[: len(line.ids) - 1]
        words = align_words(read, tokenizer.target.spell(tokens), attended)
        predicted = list(tokens) if translation.is_truncated else [*tokens, EOS]
        pieces = tuple(tokenizer.target.pieces_of(predicted))
        return Alignment(words, pieces, tuple(scores[: len(pieces)]))
