"""How often words occur in the training text of a run."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from nmt.config import DataConfig
from nmt.data.corpora.registry import is_at_hand, resolve
from nmt.data.text.parallel_text import ParallelText
from nmt.errors import NmtError
from nmt.evaluation.breakdown import count_words
from nmt.evaluation.metrics import bleu_tokenizer

MOST_PAIRS = 1_000_000
"""number of pairs at the start of the text that are counted"""


@dataclass(frozen=True)
class TrainingWords:
    """The words of the target side of the training text, or of its first pairs."""

    counts: Counter[str]
    pairs: int

    def __str__(self) -> str:
        if self.pairs < MOST_PAIRS:
            return "the training text"
        return f"the first {self.pairs:,} training pairs"


def training_words(
    config: DataConfig, log: Callable[[str], None] = lambda message: None
) -> TrainingWords:
    """Count the words of the target side of the training text.

    A known corpus is downloaded if it is not here, with messages to `log`.

    Raises:
        NmtError: The text cannot be read.
    """
    read = 0

    def targets() -> Iterator[str]:
        nonlocal read
        for text in resolve(config, log).train:
            for block in ParallelText(text, config.languages).blocks():
                for pair in block.pairs("replace"):
                    read += 1
                    yield pair.target

    tokenize = bleu_tokenizer(config.target_language, config.tokenized)
    counts = count_words(islice(targets(), MOST_PAIRS), tokenize)
    return TrainingWords(counts, read)


def local_training_words(config: DataConfig) -> TrainingWords | None:
    """Count the words of the training text, or return None if it is not here or not readable."""
    try:
        return training_words(config) if is_at_hand(config) else None
    except NmtError:
        return None
