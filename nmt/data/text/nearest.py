"""Finds the nearest of many sentences for each of many others: for the preparation of text."""

from collections.abc import Sequence

import numpy as np

from nmt.data.text.similarity import signatures, similarities

Neighbour = tuple[int, float]
"""the index of a sentence, and its score, from 0 to 1"""


class NearestPairs:
    """Sentences among which those that are most similar to others are found.

    Similarity is that of `nmt.data.text.similarity`.
    """

    def __init__(self, sources: Sequence[str]) -> None:
        self._signatures = signatures(sources)

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
            minimum: The lowest score.
            own: The index of the sentence that each text is itself, which is left out.
            skip_equal: Whether sentences that equal a text but for numbers are left out as well.
        """
        found = []
        for number, text in enumerate(signatures(texts)):
            scores = similarities(text, self._signatures, minimum)
            if own is not None:
                scores[own[number]] = 0
            if skip_equal:
                scores[scores == 1] = 0
            best = np.argsort(-scores, kind="stable")[:count]
            wanted = [(int(i), float(scores[i])) for i in best if scores[i] >= max(minimum, 1e-9)]
            found.append(wanted)
        return found
