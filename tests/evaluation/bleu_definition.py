"""BLEU of Papineni et al., 2002, equation by equation."""

import math
from collections import Counter

ORDERS = (1, 2, 3, 4)


def bleu_by_definition(hypotheses: list[str], references: list[str]) -> float:
    """Geometric mean of clipped n-gram precisions times the brevity penalty, on given tokens."""
    sides = [[line.split() for line in lines] for lines in (hypotheses, references)]
    log_precisions = 0.0
    for n in ORDERS:
        matched = total = 0
        for pair in zip(*sides, strict=True):
            ngrams = [Counter(zip(*(words[k:] for k in range(n)), strict=False)) for words in pair]
            matched += (ngrams[0] & ngrams[1]).total()
            total += ngrams[0].total()
        if not matched:
            return 0.0
        log_precisions += math.log(matched / total)
    lengths = [sum(map(len, side)) for side in sides]
    brevity = min(1.0, math.exp(1 - lengths[1] / lengths[0]))
    return 100 * brevity * math.exp(log_precisions / len(ORDERS))
