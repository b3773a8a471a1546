"""A statistical aligner: which token of the source and of the target translate each other.

IBM Model 2 in the parametrisation of fast_align (Dyer et al., 2013, A Simple, Fast, and Effective
Reparameterization of IBM Model 2): target token j of n comes from no source token with probability
p0, or else from source token i of m with a probability in proportion to

    exp(-lambda |i / m - j / n|) p(t_j | s_i)

lambda, p(t | s) and, of no source token, p(t) are estimated by expectation maximisation. Both
directions are learnt, and their links are made symmetric (`symmetrize`). EOS has no links.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Self
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from nmt.data.tokens.token_store import Indices, Sentences, TokenStore
from nmt.errors import DataError

FILE = "aligner.npz"
"""the name of a saved model; it is beside the vocabularies whose ids it knows"""
ITERATIONS = 5
MAX_COOCCURRENCES = 32_000_000
"""The most co-occurrences that are learnt from: pairs of a source and a target token of one
sentence pair. Of a larger corpus only every n-th sentence pair is used."""
_AT_ONCE = 1_000_000  # co-occurrences in memory, beside four bytes for each that is learnt from
_NO_SOURCE = 0.08  # p0
_TENSION = 4.0  # lambda at the start
_TENSIONS = (0.1, 20.0)  # limits of lambda
_UNSEEN = 1e-9  # p(t | s) of a pair that was not learnt from
_LOWEST = 0.01  # p(t | s) and p(s | t) of a pair that stays in a file
_ALPHA = 0.01  # of the Dirichlet prior of p(t | s), which keeps rare tokens from many links

Numbers = npt.NDArray[np.integer]
"""ids, indices or positions"""
Probabilities = npt.NDArray[np.float64]
Point = tuple[int, int]
"""a link: position of a source token and of a target token, from 0"""
_NEIGHBOURS = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]


@dataclass(frozen=True)
class _Group:
    """Sentence pairs of one length: the ids of B sources of S tokens and targets of T, no EOS."""

    rows: Numbers
    """index of each pair among those that are grouped (B,)"""
    source: Numbers
    """(B, S)"""
    target: Numbers
    """(B, T)"""


class AlignmentModel:
    """The model in both directions, learnt from the sentence pairs of a token store."""

    def __init__(self, store: TokenStore, sizes: tuple[int, int]) -> None:
        """Find the pairs of tokens (s, t) in `store`; `sizes` are those of the vocabularies."""
        self._target_size = sizes[1]
        cooccurrences = store.source.lengths.astype(np.int64) * store.target.lengths
        stride = max(1, -(-int(cooccurrences.sum()) // MAX_COOCCURRENCES))  # rounded up
        self._batches = list(_batches(store, np.arange(0, len(store), stride)))
        self._pairs = np.empty(0, np.int64)
        """s * sizes[1] + t of each pair of tokens (s, t), ascending (P,)"""
        for groups in self._batches:
            keys = np.concatenate([self._keys(group).ravel() for group in groups])
            self._pairs = np.union1d(self._pairs, keys)
        sources, targets = np.divmod(self._pairs, self._target_size)
        self.forward = AlignmentDirection(sources, sizes[0], sizes[1])
        """p(t | s)"""
        self.backward = AlignmentDirection(targets, sizes[1], sizes[0])
        """p(s | t)"""

    def learn(self, report: Callable[[int], object] = lambda iteration: None) -> None:
        """Estimate the probabilities; `report` receives each finished iteration, from 1."""
        cells = [[self._cells(group) for group in groups] for groups in self._batches]
        # both directions see the same cells, the second one with its axes exchanged
        forward = [
            [(each, group.target) for each, group in zip(of_batch, groups, strict=True)]
            for of_batch, groups in zip(cells, self._batches, strict=True)
        ]
        backward = [
            [(each.transpose(0, 2, 1), group.source) for each, group in zip(*both, strict=True)]
            for both in zip(cells, self._batches, strict=True)
        ]
        for iteration in range(1, ITERATIONS + 1):
            self.forward.improve(forward)
            self.backward.improve(backward)
            report(iteration)

    def without_improbable(self) -> Self:
        """Return the model without the many pairs of tokens that are improbable both ways.

        Its probabilities are those that a file keeps, so it aligns as what `load` returns.
        """
        sides = self.forward, self.backward
        kept = np.any([side.probabilities[:-1] >= _LOWEST for side in sides], axis=0)
        smaller = type(self)(
            TokenStore.of([], []), (len(self.backward.without_given), self._target_size)
        )
        smaller._pairs = self._pairs[kept]
        for side, new in zip(sides, (smaller.forward, smaller.backward), strict=True):
            probabilities = np.append(side.probabilities[:-1][kept], _UNSEEN)
            new.probabilities = probabilities.astype(np.float32).astype(np.float64)
            new.without_given = side.without_given.astype(np.float32).astype(np.float64)
            new.tension = side.tension
        return smaller

    def save(self, path: Path) -> None:
        """Write what `without_improbable` returns into a file, compressed."""
        arrays: dict[str, Any] = {"pairs": self._pairs}
        for name, side in (("forward", self.forward), ("backward", self.backward)):
            arrays[name] = side.probabilities.astype(np.float32)
            arrays[f"{name}_null"] = side.without_given.astype(np.float32)
            arrays[f"{name}_tension"] = np.array(side.tension)
        np.savez_compressed(path, **arrays)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read the file that `save` has written.

        Raises:
            DataError: it is missing or damaged.
        """
        try:
            with path.open("rb") as file, np.load(file) as stored:
                nulls = stored["backward_null"], stored["forward_null"]
                model = cls(TokenStore.of([], []), (len(nulls[0]), len(nulls[1])))
                model._pairs = stored["pairs"]
                for name, side in (("forward", model.forward), ("backward", model.backward)):
                    side.probabilities = stored[name].astype(np.float64)
                    side.without_given = stored[f"{name}_null"].astype(np.float64)
                    side.tension = float(stored[f"{name}_tension"])
        except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
            reason = getattr(error, "strerror", None) or error
            raise DataError(
                f"{path}: the aligner for data.memory.marks cannot be read ({reason}); "
                "copy the run again with all of its files"
            ) from error
        return model

    def align(self, store: TokenStore, rows: Indices) -> list[list[Point]]:
        """Return the links of each of the pairs at `rows` of a store, ascending."""
        links: list[list[Point]] = [[] for _ in rows]
        for group in chain.from_iterable(_batches(store, rows)):
            cells = self._cells(group)
            forward = self.forward.best(cells, group.target).tolist()  # (B, T), -1: none
            backward = self.backward.best(cells.transpose(0, 2, 1), group.source).tolist()
            for row, sources, targets in zip(group.rows, forward, backward, strict=True):
                links[row] = symmetrize(
                    {(i, j) for j, i in enumerate(sources) if i >= 0},
                    {(i, j) for i, j in enumerate(targets) if j >= 0},
                )
        return links

    def _keys(self, group: _Group) -> Numbers:
        """Return the pair of each target and source token of a group, as in `_pairs`: (B, T, S)."""
        return group.source[:, None, :] * self._target_size + group.target[:, :, None]

    def _cells(self, group: _Group) -> Numbers:
        """Return the index of each of the `_keys` in `_pairs`, or P: (B, T, S) int32."""
        keys = self._keys(group)
        cells = np.searchsorted(self._pairs, keys)
        found = np.zeros(keys.shape, bool)
        if len(self._pairs):
            found = self._pairs.take(cells, mode="clip") == keys
        return np.where(found, cells, len(self._pairs)).astype(np.int32)


class AlignmentDirection:
    """The model in one direction: each emitted token comes from one of the given tokens, or none.

    It computes groups of sentence pairs: `cells` (B, E, G) are the indices of the pairs of E
    emitted and G given tokens, `emitted` (B, E) are the ids of the emitted ones.
    """

    def __init__(self, given: Numbers, given_size: int, emitted_size: int) -> None:
        """Take the given token of each pair (P,), and the sizes of the two vocabularies."""
        self._given, self._given_size, self._emitted_size = given, given_size, emitted_size
        self.tension = _TENSION
        """lambda"""
        # all equal: the first expectation knows the positions alone
        self.probabilities: Probabilities = np.full(len(given) + 1, 1 / emitted_size)
        """p(emitted | given) of each pair, and last that of all other pairs: (P + 1,)"""
        self.without_given: Probabilities = np.full(emitted_size, 1 / emitted_size)
        """p(emitted) of a token that comes from no given one: (emitted_size,)"""

    def improve(self, batches: Iterable[Iterable[tuple[Numbers, Numbers]]]) -> None:
        """Make an iteration of expectation maximisation over batches of (`cells`, `emitted`)."""
        counts = np.zeros(len(self.probabilities))
        without_given = np.zeros(self._emitted_size)
        slope = curvature = 0.0  # of the expected log-likelihood, as a function of lambda
        for batch in batches:
            all_cells, all_shares = [], []
            for cells, emitted in batch:
                distances, prior = self._prior(*cells.shape[1:])
                shares = self.probabilities[cells] * prior  # of each given token
                shares /= (shares.sum(2) + self._null(emitted))[:, :, None]
                given = shares.sum(2)  # the share that has a given token: (B, E)
                np.add.at(without_given, emitted, 1 - given)
                weights, each = given.sum(0), prior / prior.sum(1, keepdims=True)
                expected = (each * distances).sum(1)
                slope += weights @ expected - (shares.sum(0) * distances).sum()
                curvature += weights @ ((each * distances**2).sum(1) - expected**2)
                all_cells.append(cells.ravel())
                all_shares.append(shares.ravel())
            both = np.concatenate(all_cells), np.concatenate(all_shares)
            counts += np.bincount(*both, minlength=len(counts))
        # a step of Newton's method
        self.tension = float(np.clip(self.tension + slope / max(curvature, 1e-9), *_TENSIONS))
        self._maximize(counts[:-1], without_given)

    def _maximize(self, counts: Probabilities, without_given: Probabilities) -> None:
        """Set the probabilities from expected counts, by variational Bayes as in the paper."""
        counts = counts + _ALPHA
        totals: Probabilities = np.bincount(self._given, counts, self._given_size).astype(
            np.float64
        )
        estimates = _exp_digamma(counts) / _exp_digamma(totals[self._given])
        self.probabilities = np.append(estimates, _UNSEEN)
        without_given = without_given + _ALPHA
        self.without_given = without_given / without_given.sum()

    def best(self, cells: Numbers, emitted: Numbers) -> Numbers:
        """Return the position of the likeliest given token of each emitted one (B, E); -1: none."""
        _, prior = self._prior(*cells.shape[1:])
        scores = self.probabilities[cells] * prior
        best = scores.argmax(2)
        score = np.take_along_axis(scores, best[:, :, None], 2)[:, :, 0]
        return np.where(score > self._null(emitted), best, -1)

    def _null(self, emitted: Numbers) -> Probabilities:
        """Return the probability that each emitted token comes from no given one: (B, E)."""
        weights: Probabilities = _NO_SOURCE * self.without_given[emitted]
        return weights

    def _prior(self, emitted: int, given: int) -> tuple[Probabilities, Probabilities]:
        """Return |i / m - j / n| for all positions j and i, and the prior of each i: (E, G)."""
        i, j = (np.arange(given) + 0.5) / given, (np.arange(emitted) + 0.5) / emitted
        distances = np.abs(i - j[:, None])
        weights = np.exp(-self.tension * distances)
        return distances, (1 - _NO_SOURCE) * weights / weights.sum(1, keepdims=True)


def symmetrize(forward: set[Point], backward: set[Point]) -> list[Point]:
    """Return the links of two directions by grow-diag-final-and (Koehn et al., 2005), ascending.

    These are the links of both, then those of one that are beside a link and whose source or target
    token has none yet, and at last those of one whose source and target token have none yet.
    """
    links = forward & backward
    union = forward | backward
    sources, targets = {i for i, _ in links}, {j for _, j in links}
    grows = len(links) < len(union)
    while grows:
        grows = False
        for i, j in sorted(links):
            for down, right in _NEIGHBOURS:
                point = i + down, j + right
                if point in union and not (point[0] in sources and point[1] in targets):
                    links.add(point)
                    sources.add(point[0])
                    targets.add(point[1])
                    grows = True
    for direction in (forward, backward):
        for i, j in sorted(direction - links):
            if i not in sources and j not in targets:
                links.add((i, j))
                sources.add(i)
                targets.add(j)
    return sorted(links)


def _batches(store: TokenStore, rows: Indices) -> Iterator[list[_Group]]:
    """Yield the pairs at `rows` of a store in groups, in lists of about `_AT_ONCE` co-occurrences.

    Pairs with a side without tokens are in no group.
    """
    batch, size = list[_Group](), 0
    for group in _groups(store, rows):
        batch.append(group)
        size += group.target.size * group.source.shape[1]
        if size >= _AT_ONCE:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _groups(store: TokenStore, rows: Indices) -> Iterator[_Group]:
    """Yield the pairs at `rows` of a store by their lengths, at most `_AT_ONCE` co-occurrences."""
    sides = store.source, store.target
    lengths = [side.lengths[rows] - 1 for side in sides]  # without EOS
    order = np.lexsort(lengths)
    source_lengths, target_lengths = (of_side[order] for of_side in lengths)
    changes = (np.diff(source_lengths) != 0) | (np.diff(target_lengths) != 0)
    for of_length in np.split(order, np.flatnonzero(changes) + 1):
        shape = [int(of_side[of_length[0]]) for of_side in lengths] if len(of_length) else [0]
        if 0 in shape:
            continue
        most = max(1, _AT_ONCE // (shape[0] * shape[1]))
        for first in range(0, len(of_length), most):
            part = of_length[first : first + most]
            source, target = map(_ids, sides, [rows[part]] * 2, shape)
            yield _Group(part, source, target)


def _ids(side: Sentences, rows: Indices, length: int) -> Numbers:
    """Return the first ids of sentences: (B, length)."""
    positions = side.offsets[rows][:, None] + np.arange(length)
    return side.ids[positions].astype(np.int64)


def _exp_digamma(x: Probabilities) -> Probabilities:
    """Return exp(digamma(x)) for positive numbers, with an error below 1e-6 of the result."""
    shift = np.zeros_like(x)
    for n in range(5):  # digamma(x) = digamma(x + 1) - 1 / x
        shift += 1 / (x + n)
    y = x + 5
    series = np.log(y) - 1 / (2 * y) - 1 / (12 * y**2) + 1 / (120 * y**4) - 1 / (252 * y**6)
    return np.exp(series - shift)
