"""A lexicon: the probable translations of each source token, learnt from sentence pairs.

IBM Model 1 (Brown et al., 1993, The Mathematics of Statistical Machine Translation): each target
token comes from one token of the source, and p(t | s) is estimated by expectation maximisation.
EOS, the last token of every source, has the role of the empty word in that paper.
"""

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from nmt.data.tokens.token_store import TokenStore

ITERATIONS = 5
MAX_COOCCURRENCES = 64_000_000
"""The most co-occurrences that are counted: pairs of a source and a target token of one sentence
pair. Of a larger corpus only every n-th sentence pair is used."""
_AT_ONCE = 4_000_000  # co-occurrences or tokens in memory

Numbers = npt.NDArray[np.int64]
"""ids, indices or counts"""
Probabilities = npt.NDArray[np.float64]


class Lexicon:
    """The probabilities p(t | s) of source and target tokens s and t that share a sentence pair."""

    def __init__(self, store: TokenStore, target_size: int) -> None:
        """Find the pairs (s, t) in `store`; `target_size` is the size of the target vocabulary."""
        self._store, self._target_size = store, target_size
        cooccurrences = store.source.lengths.astype(np.int64) * store.target.lengths
        step = -(-int(cooccurrences.sum()) // MAX_COOCCURRENCES)  # rounded up
        self._sentences = np.arange(0, len(store), max(1, step))
        """indices of the sentence pairs that are used"""
        self._cooccurrence_counts = cooccurrences[self._sentences]
        self.pairs = np.empty(0, np.int64)
        """s * target_size + t of each pair (s, t), ascending (P,)"""
        for pairs, _ in self._cooccurrences():  # in blocks that fit in memory
            self.pairs = np.union1d(self.pairs, pairs)
        self.probabilities: Probabilities = np.ones(len(self.pairs))
        """p(t | s) of each pair (P,); all 1 before `learn`"""

    def learn(self, report: Callable[[int], object] = lambda iteration: None) -> None:
        """Estimate the probabilities; `report` receives each finished iteration, from 1."""
        sources = self.pairs // self._target_size  # s of each pair (s, t), ascending
        first_of_source = np.flatnonzero(np.diff(sources, prepend=-1))  # where each s begins
        for iteration in range(1, ITERATIONS + 1):
            counts = np.zeros(len(self.pairs))  # expected number of times that s gives t
            for pairs, group_starts in self._cooccurrences():
                distinct, inverse = np.unique(pairs, return_inverse=True)
                indices = np.searchsorted(self.pairs, distinct)
                probabilities = self.probabilities[indices][inverse]  # of each co-occurrence
                # how probably each target token comes from each token of its source
                posteriors = _normalize_groups(probabilities, group_starts)
                counts[indices] += np.bincount(inverse, posteriors)
            self.probabilities = _normalize_groups(counts, first_of_source)
            report(iteration)

    def best(self, source_size: int, count: int, excluded: Numbers) -> Numbers:
        """Return the `count` likeliest targets of each source id, best first: (source_size, count).

        `source_size` is the size of the source vocabulary, whose ids are the rows. Target ids in
        `excluded` are left out. Rows with fewer ids are padded with 0 (PAD).
        """
        sources, targets = np.divmod(self.pairs, self._target_size)  # s and t of each pair
        chosen = np.flatnonzero(~np.isin(targets, excluded))
        sources, targets = sources[chosen], targets[chosen]
        # by source id, and for each source the likeliest target first: the last key counts most
        order = np.lexsort((-self.probabilities[chosen], sources))
        sources, targets = sources[order], targets[order]
        # for each pair, the index of the first pair with the same source
        first_of_source = np.searchsorted(sources, sources)
        ranks = np.arange(len(sources)) - first_of_source  # 0: the likeliest target of its source
        table = np.zeros((source_size, count), np.int64)
        kept = ranks < count
        table[sources[kept], ranks[kept]] = targets[kept]
        return table

    def _cooccurrences(self) -> Iterator[tuple[Numbers, Numbers]]:
        """Yield blocks of co-occurrences (s, t), spelled as in `pairs`, and the starts of groups.

        A group has the co-occurrences of one target token, with each source token of its pair.
        """
        blocks = np.cumsum(self._cooccurrence_counts) // _AT_ONCE
        first_of_block = np.flatnonzero(np.diff(blocks)) + 1
        for sentences in np.split(self._sentences, first_of_block):
            sources = self._store.source.gather(sentences)
            targets = self._store.target.gather(sentences)
            sizes = np.repeat(sources.lengths, targets.lengths).astype(np.int64)  # of the groups
            group_starts = np.cumsum(sizes) - sizes
            sentence_starts = np.cumsum(sources.lengths) - sources.lengths  # in sources.ids
            first = np.repeat(np.repeat(sentence_starts, targets.lengths), sizes)
            within = np.arange(int(sizes.sum())) - np.repeat(group_starts, sizes)
            source_ids = sources.ids[first + within].astype(np.int64)
            yield source_ids * self._target_size + np.repeat(targets.ids, sizes), group_starts


def _normalize_groups(values: Probabilities, starts: Numbers) -> Probabilities:
    """Divide each value by the sum of its group; consecutive groups begin at `starts`."""
    sums = np.add.reduceat(values, starts)
    return values / np.repeat(sums, np.diff(starts, append=len(values)))


def most_frequent(store: TokenStore, count: int) -> Numbers:
    """Return the `count` most frequent target ids, most frequent first; fewer if fewer occur."""
    ids = store.target.ids
    occurrences = np.zeros(int(ids.max(initial=0)) + 1, np.int64)
    for first in range(0, len(ids), _AT_ONCE):
        occurrences += np.bincount(ids[first : first + _AT_ONCE], minlength=len(occurrences))
    ranked = np.argsort(-occurrences, kind="stable")[:count]
    return ranked[occurrences[ranked] > 0]
