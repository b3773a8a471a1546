"""Alignments and token scores of translations: what a decoder layer looked at for each token."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
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
from nmt.search.source_attention import forced_attention, most_attended
from nmt.search.windows import WINDOW_LINES, batches, cut, windows, worded
from nmt.translation.line import Line
from nmt.translation.minimum_bayes_risk import BayesRiskTranslator
from nmt.translation.scoring import target_log_probabilities
from nmt.translation.translator import MAX_SOURCE_TOKENS, Translation, Translator, print_warning
from nmt.translation.word_alignment import Alignment, align_words

# attention grows with the square of the length: longer sentences than this count for more tokens
EVEN_LENGTH = 64


@dataclass(frozen=True)
class Attended:
    """A batch of targets under the model."""

    log_probabilities: Tensor
    """(B, T) of each target token"""
    places: Tensor
    """(B, T - 1) the source position that each target token but the last goes with"""


@torch.inference_mode()
def attend(model: Transformer, batch: Batch) -> Attended:
    """Feed the targets to a model in eval mode, in one pass, and see where it looks.

    The heads of a layer are averaged, and so are the models of an ensemble.
    """
    logits, weights = forced_attention(model, batch)
    joint = log_mean_probability(logits) if len(logits) > 1 else logits[0]
    mean = weights[:, :-1]  # (B, T - 1, S)
    return Attended(
        target_log_probabilities(joint, batch.target_output, model.padding),
        most_attended(mean, batch.source, model.padding),
    )


class AligningTranslator:
    """A translator that also says which words of its translations go with which of their source."""

    def __init__(self, translator: Translator, chooser: BayesRiskTranslator | None = None) -> None:
        """`chooser` None: the translations are those of `translator` itself."""
        self.translator = translator
        self.chooser = chooser or translator

    def alternatives(
        self,
        lines: Iterable[Line],
        n_best: int,
        window_lines: int = WINDOW_LINES,
        warn: Callable[[str], None] = print_warning,
        progress: Callable[[int], object] = lambda lines: None,
    ) -> Iterator[list[Translation]]:
        """As `Translator.alternatives`, each translation with its alignment."""
        read: deque[str] = deque()

        def noted() -> Iterator[Line]:
            for line in lines:
                read.append(line.text)
                yield line

        found = self.chooser.alternatives(noted(), n_best, window_lines, warn, progress)
        pairs = ((read.popleft(), translations) for translations in found)
        for window in windows(pairs, window_lines, lambda pair: len(pair[0])):
            yield from self.align(window)

    def align(self, pairs: Sequence[tuple[str, list[Translation]]]) -> list[list[Translation]]:
        """The translations of each source text, with their alignments."""
        aligned = [[replace(t, alignment=Alignment()) for t in found] for _, found in pairs]
        tokenizer = self.translator.run.tokenizer
        texts = [text for text, _ in pairs]
        ids = cut(
            tokenizer.encode_source(texts),
            MAX_SOURCE_TOKENS,
            lambda place, length: None,  # it was said when the text was translated
        )
        places = [(i, k) for i in worded(texts, ids) for k in range(len(aligned[i]))]
        sources = [ids[i] for i, _ in places]
        targets = [[*aligned[i][k].tokens, EOS] for i, k in places]
        found = self._attend_all(sources, targets)
        for (i, k), source, attended, scores in zip(places, sources, *found, strict=True):
            alignment = self._alignment(texts[i], source, aligned[i][k], attended, scores)
            aligned[i][k] = replace(aligned[i][k], alignment=alignment)
        return aligned

    def _attend_all(
        self, sources: Sequence[list[int]], targets: Sequence[list[int]]
    ) -> tuple[list[list[int]], list[list[float]]]:
        """For each pair the source place of each token and its log-probability."""
        places: list[list[int]] = [[] for _ in sources]
        scores: list[list[float]] = [[] for _ in sources]
        store = TokenStore.of(sources, targets)
        longest = np.maximum(store.source.lengths, store.target.lengths).tolist()
        counted = [max(n, n * n // EVEN_LENGTH) for n in longest]
        run, settings = self.translator.run, self.translator.settings
        for batch in batches(range(len(sources)), counted, settings.batch_tokens):
            pairs = collate(store, np.array(batch)).to(self.translator.device)
            with autocast(self.translator.device, self.translator.precision):
                found = attend(run.model, pairs)
            rows = (found.places.tolist(), found.log_probabilities.tolist())
            for i, attended, log_probabilities in zip(batch, *rows, strict=True):
                places[i] = attended[: len(targets[i]) - 1]
                scores[i] = log_probabilities[: len(targets[i])]
        return places, scores

    def _alignment(
        self,
        text: str,
        source: Sequence[int],
        translation: Translation,
        attended: Sequence[int],
        scores: Sequence[float],
    ) -> Alignment:
        """Put together what is known of one translation of `text`, whose ids are `source`."""
        tokenizer = self.translator.run.tokenizer
        tokens = translation.tokens
        read = tokenizer.source_spellings(text)[: len(source) - 1]
        words = align_words(read, tokenizer.target_spellings(tokens), attended)
        predicted = list(tokens) if translation.is_cut else [*tokens, EOS]
        pieces = tuple(tokenizer.target_pieces(predicted))
        return Alignment(words, pieces, tuple(scores[: len(pieces)]))
