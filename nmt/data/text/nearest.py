"""Finds the nearest of many sentences for each of many others: for the preparation of text."""

from collections.abc import Iterator, Sequence

import numpy as np

from nmt.data.text.bigram_index import (
    MOST_SENTENCES,
    BigramIndex,
    Numbers,
    bigrams_of,
    likely_sentences,
)
from nmt.data.text.similarity import equality_key, signature, similarities

Neighbour = tuple[int, float]
"""the index of a sentence, and its score, from 0 to 1"""

_MOST_ENTRIES = 20_000
"""of the index, read for one sentence"""
_MOST_COMPARED = 64
"""sentences of an index that are compared word by word with one sentence"""
_MOST_ALIKE = 100
"""sentences tried of those that are the same but for numbers"""


class NearestPairs:
    """Sentences among which those that are most similar to others are found.

    The score is that of `nmt.data.text.similarity`, for which all numbers are equal. For a sentence
    of 29 words it takes about 400 bytes, and twice that while the index is built. All of it is in
    arrays, which a process that is forked shares: strings would be copied as soon as it uses them.
    """

    def __init__(self, sources: Sequence[str]) -> None:
        groups: dict[str, int] = {}  # sentences that are the same but for numbers are compared once
        group_of = np.empty(len(sources), np.uint32)
        self._keys = np.empty(len(sources), np.int64)
        for number, source in enumerate(sources):
            group_of[number] = groups.setdefault(signature(source), len(groups))
            self._keys[number] = equality_key(source)
        signatures = list(groups)
        self._signatures = "".join(signatures).encode("utf-32-le")
        self._bounds = np.append(0, np.cumsum([4 * len(each) for each in signatures]))  # in bytes
        self._members = np.argsort(group_of, kind="stable").astype(np.uint32)
        self._ends = np.append(0, np.cumsum(np.bincount(group_of, minlength=len(groups))))
        self._indices = [
            (start, BigramIndex.of(signatures[start : start + MOST_SENTENCES]))
            for start in range(0, len(groups), MOST_SENTENCES)
        ]

    def find(
        self,
        texts: Sequence[str],
        count: int = 1,
        minimum: float = 0.5,
        own: Sequence[int] | None = None,
        skip_equal: bool = False,
    ) -> list[list[Neighbour]]:
        """Return for each text up to `count` sentences of at least the score `minimum`, best first.

        Args:
            texts: The sentences to look for.
            count: The most results for each.
            minimum: The lowest score, above 0.
            own: The index of the sentence that each text is itself, which is left out.
            skip_equal: Whether sentences that equal a text, but for spaces, are left out as well.
        """
        found = []
        for number, text in enumerate(texts):
            left_out = None if own is None else own[number]
            key = equality_key(text) if skip_equal else None
            neighbours: list[Neighbour] = []
            for group, score in self._groups(signature(text), minimum):
                for member in self._members_of(group, left_out, key):
                    neighbours.append((member, score))
                    if len(neighbours) == count:
                        break
                if len(neighbours) == count:
                    break
            found.append(neighbours)
        return found

    def _groups(self, text: str, minimum: float) -> Iterator[Neighbour]:
        """Yield groups of sentences that are the same but for numbers, most similar first."""
        bigrams = np.unique(bigrams_of([text]))
        groups: list[int] = []
        for start, index in self._indices:
            likely, _ = likely_sentences(
                index.lists(bigrams), len(text), minimum, _MOST_ENTRIES, _MOST_COMPARED
            )
            groups += (likely.astype(np.int64) + start).tolist()
        if not text or not groups:
            return
        scores = similarities(text, self._signatures_of(groups), minimum)
        for place in np.argsort(-scores, kind="stable"):
            if scores[place] <= 0:
                return
            yield groups[place], float(scores[place])

    def _signatures_of(self, groups: Sequence[int]) -> list[str]:
        """Return the signature that the sentences of each group have in common."""
        places = np.array(groups)
        bounds = zip(self._bounds[places].tolist(), self._bounds[places + 1].tolist(), strict=True)
        return [self._signatures[start:end].decode("utf-32-le") for start, end in bounds]

    def _members_of(self, group: int, left_out: int | None, key: int | None) -> Iterator[int]:
        """Yield sentences of a group but one, and but those with the hash `key`."""
        start = self._ends[group]
        members: Numbers = self._members[start : min(self._ends[group + 1], start + _MOST_ALIKE)]
        for member in members.tolist():
            if member != left_out and (key is None or self._keys[member] != key):
                yield member
