"""Minimum Bayes risk decoding: the candidate that agrees best with all the others.

The most probable translation is often unlike all the others. Kumar and Byrne, 2004, choose the one
of highest expected utility instead, and estimate the expectation by the mean over a list of
candidates. Eikema and Aziz, 2020, draw the candidates at random from the model.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from nmt.translation.line import EncodedLine, Translation

Utilities = Callable[[Sequence[str]], Sequence[Sequence[float]]]
"""takes texts; returns in row i and column j how good text i is if text j is the reference"""


def choose_by_risk(
    _lines: Sequence[EncodedLine],
    candidates: Sequence[Sequence[Translation]],
    utilities: Utilities,
    n_best: int,
) -> list[list[Translation]]:
    """Return the `n_best` candidates of highest utility of each line; a finishing transform."""
    return [most_useful(row, utilities, n_best) for row in candidates]


def most_useful(
    candidates: Sequence[Translation], utilities: Utilities, n_best: int
) -> list[Translation]:
    """Return the `n_best` candidates of highest utility, best first, each text once.

    The utility of a text is the mean of `utilities` with each other candidate as the reference; a
    text that m candidates share counts m times. C candidates cost up to C^2 comparisons. Between
    equal utilities the higher score comes first. The utility of a single candidate is 0.
    """
    if len(candidates) == 1:
        return [replace(candidates[0], utility=0.0)]
    distinct: dict[str, Translation] = {}  # {text: its candidate with the highest score}
    for candidate in sorted(candidates, key=lambda candidate: -candidate.score):
        distinct.setdefault(candidate.text, candidate)
    counts = Counter(candidate.text for candidate in candidates)
    rated: list[tuple[float, Translation]] = []  # utility and candidate
    for translation, row in zip(distinct.values(), utilities(list(distinct)), strict=True):
        others = counts - Counter([translation.text])  # without the candidate itself
        # each value of `row` is the utility if this text is the reference
        total = math.fsum(value * others[text] for text, value in zip(distinct, row, strict=True))
        utility = total / (len(candidates) - 1)
        rated.append((utility, replace(translation, utility=utility)))
    rated.sort(key=lambda entry: (-entry[0], -entry[1].score))  # by utility, then by score
    return [translation for _, translation in rated[:n_best]]
