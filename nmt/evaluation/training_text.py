"""How often words occur in what a run has learnt from."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice

from nmt.config import DataConfig
from nmt.data.corpora import is_at_hand, resolve
from nmt.data.parallel_text import ParallelText
from nmt.errors import NmtError
from nmt.evaluation.breakdown import count_words

MOST_PAIRS = 1_000_000
"""so many, from the start of the text, tell the rare words from the frequent ones"""


def training_frequencies(config: DataConfig) -> Counter[str] | None:
    """The words of the target side; None where the text is not at hand.

    Nothing is downloaded for it.
    """
    try:
        if not is_at_hand(config):
            return None
        return count_words(islice(_targets(config), MOST_PAIRS), config.tokenized)
    except NmtError:
        return None


def _targets(config: DataConfig) -> Iterator[str]:
    for text in resolve(config).train:
        for block in ParallelText(text, config.languages).blocks():
            for pair in block.pairs(errors="replace"):
                yield pair.target
