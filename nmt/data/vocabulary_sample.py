"""The training pairs from which the vocabulary is learnt."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nmt.data.text.cleaning import Cleaner, PairSettings, describe_dropped
from nmt.data.text.parallel_text import ParallelText, SentencePair
from nmt.errors import DataError


@dataclass(frozen=True)
class VocabularySample:
    """The pairs from which the vocabulary is learnt; each iteration reads the texts again.

    These are every `stride`-th pair of all texts, without those that the rules leave out, and
    augmented as they will be learnt.
    """

    texts: list[ParallelText]
    stride: int
    settings: list[PairSettings]

    def __iter__(self) -> Iterator[SentencePair]:
        """Yield the pairs.

        Raises:
            DataError: a text cannot be read, or the rules leave out all pairs.
        """
        first = 0  # the index, in the next block, of the first pair that belongs to the sample
        read, dropped = 0, Counter[str]()
        for text, settings in zip(self.texts, self.settings, strict=True):
            cleaner = Cleaner(settings)
            for block in text.blocks():
                sampled = block[first :: self.stride]
                # the stride goes on across the border between two blocks
                first = (first - len(block)) % self.stride
                read += len(sampled)
                pairs = sampled.pairs(cleaner.decoding_errors)
                for pair, line in zip(pairs, sampled.numbers, strict=True):
                    reason = cleaner.reason(pair)
                    if reason is None:
                        augmented, _ = settings.augmenter(pair, line)
                        yield augmented
                    else:
                        dropped[reason] += 1
        if dropped.total() == read:
            raise no_pair_left_error(self.texts, read, {"dropped": dropped})


def file_names_of(texts: Sequence[ParallelText]) -> str:
    """Return the paths of the files of texts, for a message."""
    return ", ".join(path for text in texts for path in text.files.paths)


def no_pair_left_error(
    texts: Sequence[ParallelText], read: int, counts: Mapping[str, Any]
) -> DataError:
    """Return the error that all pairs of `texts` are left out; it is not raised here.

    `read` is the number of pairs that were looked at, and `counts` has why they are left out, as
    `Prepared.counts`.
    """
    return DataError(
        f"{file_names_of(texts)}: all {read:,} training pairs are left out "
        f"({describe_dropped(counts)}); check the text and data.cleaning"
    )
