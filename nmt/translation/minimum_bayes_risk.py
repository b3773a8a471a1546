"""Minimum Bayes risk decoding: the candidate that agrees best with all the others.

The most probable translation is often an odd one out. Kumar and Byrne, 2004, choose the one of
highest expected utility instead, and take for the expectation the mean over a list of candidates;
Eikema and Aziz, 2020, draw the candidates at random, each as often as the model holds it probable.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from nmt.errors import ConfigError
from nmt.search.windows import WINDOW_LINES
from nmt.translation.line import Line
from nmt.translation.translator import Translation, Translator, print_warning

Utilities = Callable[[Sequence[str]], Sequence[Sequence[float]]]
"""of texts: how good text i would be if text j were right, in row i and column j"""


def most_useful(candidates: Sequence[Translation], utilities: Utilities) -> list[Translation]:
    """The distinct texts among the candidates with their utility, the highest first.

    It is the mean against all other candidates, a text counting as often as it was found; of equals
    the one with the higher score comes first. A candidate alone has the utility 0.
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


class BayesRiskTranslator:
    """A translator whose candidates are compared with each other.

    With C candidates a sentence costs the search or the draws for them and up to C^2 utilities.
    """

    def __init__(self, translator: Translator, utilities: Utilities, candidates: int) -> None:
        """`candidates` are looked at for each text.

        Raises:
            ConfigError: fewer than two, which cannot be compared.
        """
        if candidates < 2:
            raise ConfigError(
                "--mbr chooses among several candidates, and there is 1; raise --beam-size, "
                "or use --sample"
            )
        self.translator = translator
        self.utilities = utilities
        self.candidates = candidates

    def alternatives(
        self,
        lines: Iterable[Line],
        n_best: int,
        window_lines: int = WINDOW_LINES,
        warn: Callable[[str], None] = print_warning,
        progress: Callable[[int], object] = lambda lines: None,
    ) -> Iterator[list[Translation]]:
        """As `Translator.alternatives`: up to `n_best` distinct texts, the most useful first.

        Raises:
            ConfigError: fewer candidates than `n_best`, or a beam that is smaller than they.
        """
        if n_best > self.candidates:
            raise ConfigError(
                f"{n_best} translations of each line were asked for, of {self.candidates} "
                "candidates; raise --candidates, or lower --n-best"
            )
        found = self.translator.alternatives(lines, self.candidates, window_lines, warn, progress)
        for candidates in found:
            yield most_useful(candidates, self.utilities)[:n_best]
