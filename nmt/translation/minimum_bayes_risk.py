"""Minimum Bayes risk decoding: the candidate that agrees best with all the others.

The most probable translation is often unlike all the others. Kumar and Byrne, 2004, choose the one
of highest expected utility instead, and estimate the expectation by the mean over a list of
candidates. Eikema and Aziz, 2020, draw the candidates at random from the model.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from nmt.errors import ConfigError
from nmt.translation.line import EncodedLine, Translation

Utilities = Callable[[Sequence[str]], Sequence[Sequence[float]]]
"""takes texts; returns in row i and column j how good text i is if text j is right"""


def most_useful(candidates: Sequence[Translation], utilities: Utilities) -> list[Translation]:
    """Sort the distinct texts among the candidates by utility, the highest first.

    The utility is the mean against all other candidates, where a text counts as often as it was
    found. Of equal ones the one with the higher score comes first. A single one has utility 0.
    """
    if len(candidates) == 1:
        return [replace(candidates[0], utility=0.0)]
    found: dict[str, Translation] = {}
    for candidate in sorted(candidates, key=lambda candidate: -candidate.score):
        found.setdefault(candidate.text, candidate)
    counts = Counter(candidate.text for candidate in candidates)
    weighed = []
    for i, row in enumerate(utilities(list(found))):
        others = [counts[text] - (i == j) for j, text in enumerate(found)]
        total = math.fsum(value * count for value, count in zip(row, others, strict=True))
        weighed.append(total / (len(candidates) - 1))
    rated = [
        replace(translation, utility=utility)
        for translation, utility in zip(found.values(), weighed, strict=True)
    ]
    return sorted(
        rated, key=lambda translation: (-(translation.utility or 0.0), -translation.score)
    )


def choose_most_useful(
    lines: Sequence[EncodedLine],
    found: list[list[Translation]],
    utilities: Utilities,
    n_best: int,
) -> list[list[Translation]]:
    """Keep up to `n_best` distinct texts of each line, the most useful first.

    With C candidates a line costs up to C^2 utilities.
    """
    return [most_useful(own, utilities)[:n_best] for own in found]


def check_candidates(candidates: int, n_best: int) -> None:
    """Raise a ConfigError if there is nothing to compare, or too little to keep."""
    if candidates < 2:
        raise ConfigError(
            "--mbr chooses among several candidates, and there is 1; raise --beam-size, "
            "or use --sample"
        )
    if n_best > candidates:
        raise ConfigError(
            f"{n_best} translations of each line were asked for, of {candidates} "
            "candidates; raise --candidates, or lower --n-best"
        )
