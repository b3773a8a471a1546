"""BPE-dropout (Provilkov et al., 2020): segmentations that byte-pair encoding finds by chance.

Byte-pair encoding begins with the characters of a word and merges two neighbours at a time, always
those that make the piece of the highest priority, until no two make a piece. Algorithm 1 of the
paper draws in each step which merges it leaves out:

    repeat: of all merges that are possible now, leave out each one with probability p;
            make the one of the highest priority among the others;
    until there are no others.

With p = 0 this is byte-pair encoding. SentencePiece, which cannot be seeded, has something else: it
looks at each possible merge once, so a merge that is left out once is left out for ever.
"""

from typing import Any

import numpy as np

from nmt.data.tokens.hashed_random import Hashes, draw_uniform
from nmt.data.tokens.integer_table import IntegerTable
from nmt.data.tokens.symbols import Array, Spelled, SymbolTable

_NORMAL, _UNUSED = 1, 5  # types of pieces in sentencepiece_model.proto
_HALF = 32  # bits: a priority is compared by its upper half, its lower half says where it is


class BpeDropout:
    """Draws segmentations for one BPE model."""

    def __init__(self, proto: Any) -> None:
        """Take a parsed SentencePiece model, whose `model_type` is BPE."""
        # Pieces that are unused in texts are steps on the way to longer ones.
        self.table = table = SymbolTable(proto, {_NORMAL, _UNUSED})
        scores = np.array([piece.score for piece in proto.pieces])
        _, ranks = np.unique(-scores, return_inverse=True)  # the highest score has rank 0
        symbol_of = {**table.of_character, **table.ids}
        made: dict[int, int] = {}  # the piece that two symbols make, both as one number
        for piece, i in table.ids.items():
            for cut in range(1, len(piece)):
                left, right = symbol_of.get(piece[:cut]), symbol_of.get(piece[cut:])
                if left is not None and right is not None:
                    made[left * table.size + right] = i
        self._made = IntegerTable(*(np.array([*each], np.int64) for each in (made, made.values())))
        self._ranks = ranks.astype(np.int64)
        """the priority of each piece; 0 is the highest"""
        self._has_id = np.zeros(table.size, bool)
        self._has_id[: len(proto.pieces)] = [piece.type != _UNUSED for piece in proto.pieces]

    def __call__(self, texts: Spelled, dropout: float) -> Array:
        """Return (N,) the id of the piece that begins at each symbol; -1 where none begins.

        `dropout` is p. A word whose segmentation would have a symbol without an id keeps the one
        that it has.
        """
        drawn = self._merge(texts, dropout)
        lacks = np.zeros(int(texts.words.max(initial=0)) + 1, bool)
        lacks[texts.words[(drawn >= 0) & ~self._has_id[drawn]]] = True
        return np.where(lacks[texts.words], texts.pieces, drawn)

    def _merge(self, texts: Spelled, dropout: float) -> Array:
        """Return (N,) the symbols that merging ends with, each where it begins; -1 elsewhere.

        All words are merged at the same time, a merge of each in a step.
        """
        result = np.full(len(texts.symbols), -1, np.int64)
        places = np.arange(len(result))
        symbols, words, keys = texts.symbols.copy(), texts.words, texts.keys
        made = self._make(symbols, words, places)
        goes_on = np.zeros(int(words.max(initial=0)) + 1, bool)
        step = 0
        while len(symbols):
            chosen = self._choose(made, words, keys, step, dropout)
            symbols[chosen] = made[chosen]
            goes_on[:] = False
            goes_on[words[chosen]] = True
            stays = goes_on[words]
            ended = np.flatnonzero(~stays)
            result[places[ended]] = symbols[ended]
            stays[chosen + 1] = False  # they are part of their left neighbours now
            changed = np.cumsum(stays)[chosen] - 1
            left = np.flatnonzero(stays)
            places, symbols, words = places[left], symbols[left], words[left]
            keys, made = keys[left], made[left]
            changed = np.concatenate((changed, changed[changed > 0] - 1))
            made[changed] = self._make(symbols, words, changed)
            step += 1
        return result

    def _make(self, symbols: Array, words: Array, lefts: Array) -> Array:
        """Return the piece that each symbol at `lefts` makes with the next one of its word, or -1.

        `symbols` and `words` are of all that is left.
        """
        rights = np.minimum(lefts + 1, len(symbols) - 1)
        made = self._made[symbols[lefts] * self.table.size + symbols[rights]]
        made[(words[lefts] != words[rights]) | (lefts == rights)] = -1
        return made

    def _choose(self, made: Array, words: Array, keys: Hashes, step: int, dropout: float) -> Array:
        """Return the left symbol of the merge that each word makes; none if all are left out."""
        possible = np.flatnonzero(made >= 0)
        kept = possible[draw_uniform(keys[possible], step) >= dropout]
        if not len(kept):
            return kept
        firsts = np.flatnonzero(np.diff(words[kept], prepend=-1))  # of each word
        priorities = self._ranks[made[kept]] << _HALF | kept  # of equal ones the left one
        return np.minimum.reduceat(priorities, firsts) & (1 << _HALF) - 1
