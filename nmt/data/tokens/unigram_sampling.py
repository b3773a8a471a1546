"""Segmentations of a unigram model, drawn by their probability (Kudo, 2018).

A unigram model gives a segmentation x the probability P(x), the product of those of its pieces. It
is drawn with a probability proportional to P(x)^alpha, by forward filtering and backward sampling:

    forward: w(j), the sum of P(x)^alpha over all segmentations x of the first j characters, is the
        sum over all pieces from i to j of w(i) P(piece)^alpha;
    backward: from the end j of a word, draw the piece from i to j with the probability
        w(i) P(piece)^alpha / w(j), and go on from i.

Other than in SentencePiece, no character becomes unknown that was not.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from nmt.data.tokens.hashed_random import Floats, Hashes, draw_uniform
from nmt.data.tokens.integer_table import IntegerTable
from nmt.data.tokens.symbols import Array, Spelled, SymbolTable

_NORMAL = 1  # type of a piece in sentencepiece_model.proto
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Lattice:
    """All M pieces that the words of texts may be made of, one entry for each place in a word."""

    firsts: Array
    """(M,): the first symbol of each piece, counted over all texts"""
    lasts: Array
    """(M,): its last symbol"""
    ids: Array
    """(M,): its id"""


class UnigramSampling:
    """Draws segmentations for one unigram model."""

    def __init__(self, proto: Any) -> None:
        """Take a parsed SentencePiece model, whose `model_type` is unigram."""
        self.table = table = SymbolTable(proto, {_NORMAL})
        is_text = np.zeros(len(proto.pieces), bool)
        is_text[list(table.ids.values())] = True
        scores = np.array([piece.score for piece in proto.pieces])
        # a piece of another type, such as a symbol, has one segmentation, whatever its score
        self._log_probabilities: Floats = np.where(is_text, scores, 0.0)
        nodes: dict[tuple[int, int], int] = {}
        piece_of_node = [-1]  # node 0 is the root
        for i, row in enumerate(table.rows):
            node = 0
            for symbol in row:
                node = nodes.setdefault((node, symbol), len(piece_of_node))
                if node == len(piece_of_node):
                    piece_of_node.append(-1)
            piece_of_node[node] = i
        edges = [node * table.size + symbol for node, symbol in nodes]
        self._edges = IntegerTable(np.array(edges, np.int64), np.array([*nodes.values()], np.int64))
        """the trie of all pieces: node and symbol as one number, and the node that they lead to"""
        self._piece_of_node: Array = np.array(piece_of_node, np.int64)

    def __call__(self, texts: Spelled, alpha: float) -> Array:
        """Return (N,) the id of the piece that begins at each symbol; -1 where none begins."""
        lattice = self._build_lattice(texts)
        begins_word = np.diff(texts.words, prepend=-1) > 0
        weights = alpha * self._log_probabilities[lattice.ids]
        chosen = _draw_forward(lattice, weights, texts.keys, begins_word)
        result = np.full(len(texts.symbols), -1, np.int64)
        lasts = np.flatnonzero(np.append(begins_word[1:], True))  # of all words
        while len(lasts):
            pieces = chosen[lasts]
            firsts = lattice.firsts[pieces]
            result[firsts] = lattice.ids[pieces]
            lasts = firsts[~begins_word[firsts]] - 1
        return result

    def _build_lattice(self, texts: Spelled) -> Lattice:
        """Find all pieces in all words, walking down the trie from each symbol at the same time."""
        symbols, words = texts.symbols, texts.words
        firsts = lasts = np.arange(len(symbols))
        nodes = np.zeros(len(symbols), np.int64)
        found: list[tuple[Array, Array, Array]] = []
        while len(firsts):
            nodes = self._edges[nodes * self.table.size + symbols[lasts]]
            exists = np.flatnonzero(nodes >= 0)
            firsts, lasts, nodes = firsts[exists], lasts[exists], nodes[exists]
            ids = self._piece_of_node[nodes]
            is_piece = np.flatnonzero(ids >= 0)
            found.append((firsts[is_piece], lasts[is_piece], ids[is_piece]))
            following = np.minimum(lasts + 1, len(symbols) - 1)
            goes_on = np.flatnonzero((following > lasts) & (words[following] == words[firsts]))
            firsts, lasts, nodes = firsts[goes_on], following[goes_on], nodes[goes_on]
        return Lattice(*map(np.concatenate, zip(*found, strict=True)))


def _draw_forward(lattice: Lattice, weights: Floats, keys: Hashes, begins_word: Bools) -> Array:
    """Return (N,) the number of the piece that is drawn among those that end with each symbol.

    `weights` are logarithms of what each piece multiplies the probability by. Each piece has one of
    all the segmentations up to its end; the highest after noise of the Gumbel distribution is drawn
    with its own probability.
    """
    lengths = lattice.lasts - lattice.firsts + 1
    with np.errstate(divide="ignore"):
        noise = -np.log(-np.log(draw_uniform(keys[lattice.lasts], lengths)))
    symbols = np.arange(len(keys))
    places = symbols - np.maximum.accumulate(np.where(begins_word, symbols, 0))  # in the words
    order = np.lexsort((lattice.lasts, places[lattice.lasts]))
    ends = np.cumsum(np.bincount(places[lattice.lasts]))  # of the pieces up to each place
    begins_word = np.append(begins_word, True)
    totals = np.where(begins_word, 0.0, -np.inf)  # log w(i) before each symbol i
    chosen = np.full(len(keys), -1, np.int64)
    for start, end in pairwise([0, *ends.tolist()]):
        pieces = order[start:end]  # the totals before them are known by now
        pieces = pieces[totals[lattice.firsts[pieces]] > -np.inf]
        if not len(pieces):
            continue
        paths = totals[lattice.firsts[pieces]] + weights[pieces]
        lasts = lattice.lasts[pieces]
        groups = np.flatnonzero(np.diff(lasts, prepend=-1))  # of pieces that end together
        sizes = np.diff(groups, append=len(lasts))
        highest = np.maximum.reduceat(paths, groups)
        sums = np.add.reduceat(np.exp(paths - np.repeat(highest, sizes)), groups)
        after = lasts[groups] + 1
        totals[after] = np.where(begins_word[after], 0.0, highest + np.log(sums))
        noisy = paths + noise[pieces]
        is_drawn = noisy == np.repeat(np.maximum.reduceat(noisy, groups), sizes)
        chosen[lasts[is_drawn]] = pieces[is_drawn]
    return chosen
