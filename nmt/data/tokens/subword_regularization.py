"""Segmentations of the training text that are drawn at random, other ones in each step.

A model that has seen several segmentations of a word translates rare words and misspelt ones better
(Kudo, 2018; Provilkov et al., 2020). What is drawn is a function of (seed, step, pair) alone: it is
the same in any process, on any number of processes, and after a run was resumed.
"""

import numpy as np

from nmt.data.tokens.bpe_dropout import BpeDropout
from nmt.data.tokens.hashed_random import hash_integers
from nmt.data.tokens.token_store import Indices, Sentences, TokenStore
from nmt.data.tokens.tokenizer import SubwordModel, Tokenizer
from nmt.data.tokens.unigram_sampling import UnigramSampling
from nmt.data.tokens.vocabulary import KINDS, parse_model


class SubwordRegularization:
    """Draws segmentations of the pairs of a token store."""

    def __init__(self, tokenizer: Tokenizer, alpha: float, seed: int) -> None:
        """Take `tokenizer.sampling` as `alpha`, and the seed of the run.

        For a BPE model alpha is the probability that a merge is left out (`BpeDropout`), for a
        unigram model the exponent of a segmentation's probability (`UnigramSampling`).
        """
        self._alpha, self._seed = alpha, seed
        self._source = _segmenter(tokenizer.source)
        self._target = self._source if tokenizer.shared else _segmenter(tokenizer.target)

    def draw(self, store: TokenStore, indices: Indices, step: int) -> TokenStore:
        """Return a store of the pairs at `indices`, in this order, each segmented at random.

        Unknown symbols, bytes, tags and other symbols that are no text stay as they are.
        """
        sides = []
        for number, (segmenter, side) in enumerate(
            ((self._source, store.source), (self._target, store.target))
        ):
            keys = hash_integers(self._seed, step, number, indices)
            texts = segmenter.table.spell(side.gather(indices), keys)
            ids = segmenter(texts, self._alpha)
            begins = ids >= 0  # a piece
            lengths = np.bincount(texts.texts[begins], minlength=len(indices))
            offsets = np.concatenate(([0], np.cumsum(lengths)))
            sides.append(Sentences(ids[begins].astype(np.uint32), offsets))
        return TokenStore(*sides)


def _segmenter(model: SubwordModel) -> BpeDropout | UnigramSampling:
    """Return what draws segmentations for a model, whose kind `TokenizerConfig` has checked."""
    proto = parse_model(model.model, "tokenizer")
    kind = KINDS[proto.trainer_spec.model_type]
    assert kind in ("bpe", "unigram"), kind
    return BpeDropout(proto) if kind == "bpe" else UnigramSampling(proto)
