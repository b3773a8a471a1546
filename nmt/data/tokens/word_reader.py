"""Reads the words of sentences that are given as ids."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from nmt.data.text.words import word_spans
from nmt.data.tokens.token_store import Ids
from nmt.data.tokens.tokenizer import UNK, SubwordModel

UNREADABLE = "\u200d"
"""stands for an id without text; it is a part of the word around it"""


class Word(NamedTuple):
    """A word or punctuation mark of a sentence that is given as ids."""

    text: str
    tokens: range
    """the indices of the ids that spell it"""


class WordReader:
    """Reads the words of sentences from their ids."""

    def __init__(self, vocabulary: SubwordModel) -> None:
        self._spelled = [spelled.decode("utf-8", "ignore") for spelled in vocabulary.piece_bytes()]
        for i, spelled in enumerate(self._spelled):
            if i == UNK or i in vocabulary.byte_ids:
                self._spelled[i] = UNREADABLE
            elif not spelled:  # a tag, a mark or another symbol
                self._spelled[i] = " "

    def words(self, ids: Ids | Sequence[int]) -> tuple[str, list[Word]]:
        """Return the text of the ids of a sentence, which end with EOS, and its words."""
        pieces = [self._spelled[i] for i in ids[:-1]]
        ends, text = list(accumulate(map(len, pieces))), "".join(pieces)
        return text, [
            Word(text[start:end], range(bisect_right(ends, start), bisect_left(ends, end) + 1))
            for start, end in word_spans(text)
        ]
