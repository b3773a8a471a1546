"""Pairs joined with those before them in their document: the context of a sentence.

Tiedemann and Scherrer, 2017 (Neural Machine Translation with Extended Context), put the sentences
before a sentence into its source, behind a separator, and their translations into its target. The
separator is a symbol of the vocabulary that no text is encoded to. So a user's text cannot hold it.
"""

import hashlib
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple, Self

from nmt.data.text.cleaning import TrainingText
from nmt.data.text.parallel_text import Block
from nmt.data.tokens.token_store import Indices, Sentences
from nmt.data.tokens.tokenizer import Tokenizer
from nmt.data.tokens.vocabulary import symbol_id
from nmt.recipe.config import Config, ContextConfig

CONTEXT = "<context>"
"""the separator: it stands behind each sentence of the context"""


def separators_of(tokenizer: Tokenizer) -> list[int]:
    """Return the ids of the separator in source and target; empty if a vocabulary lacks it."""
    ids = [symbol_id(side, CONTEXT) for side in (tokenizer.source, tokenizer.target)]
    return [i for i in ids if i is not None] if None not in ids else []


def without_context(ids: Sequence[int], separator: int) -> list[int]:
    """Return what stands behind the last separator: the ids of the sentence itself."""
    ids = list(ids)
    return ids[len(ids) - ids[::-1].index(separator) :] if separator in ids else ids


class SentenceContext(NamedTuple):
    """What stands before the ids of a sentence: the sentences before it, each with a separator."""

    source: list[int]
    target: list[int]
    """the ids of their translations; empty if they are not joined, or not known"""
    sentences: int
    """how many translations a target begins with; 0 if they are not joined"""


class ContextWindow:
    """The latest sentences of a document, of which the next one gets as many as fit.

    A sentence is given as its ids, with EOS. Its context is the longest run of sentences before it,
    at most `ContextConfig.sentences`, with which no side has more than `max_length` tokens.
    """

    def __init__(self, config: ContextConfig, tokenizer: Tokenizer, max_length: int) -> None:
        self._sides, self._max_length = (tokenizer.source, tokenizer.target), max_length
        self.separators = separators_of(tokenizer)
        """of source and target"""
        self._has_targets = config.sides == "source+target"
        self._latest: deque[list[list[int]]] = deque(maxlen=config.sentences)

    @classmethod
    def of_model(cls, config: Config, tokenizer: Tokenizer) -> Self | None:
        """Return an empty window for a trained model; None: it has learnt no context."""
        if not config.data.context or not separators_of(tokenizer):
            return None
        return cls(config.data.context, tokenizer, config.data.cleaning.max_length)

    def clear(self) -> None:
        """Begin another document."""
        self._latest.clear()

    def add(self, source: Sequence[int], target: Sequence[int] = ()) -> None:
        """Add the next sentence of the document; `target` is empty if it is not known."""
        pair = zip(self._sides, (source, target), strict=True)
        # without EOS and tags
        self._latest.append([[i for i in ids[:-1] if i not in s.tags.values()] for s, ids in pair])

    def context(self, source: Sequence[int], target: Sequence[int] = ()) -> SentenceContext:
        """Return the context of the sentence that comes next; `target` is empty if not known."""
        before, lengths = list[list[list[int]]](), [len(source), len(target)]
        for pair in reversed(self._latest):
            lengths = [n + len(ids) + 1 for n, ids in zip(lengths, pair, strict=True)]
            if lengths[0] > self._max_length + 1:  # EOS does not count
                break
            if self._has_targets and lengths[1] > self._max_length + 1:
                break
            before.insert(0, pair)
        first, second = self.separators
        known = self._has_targets and all(target for _, target in before)
        return SentenceContext(
            [token for ids, _ in before for token in (*ids, first)],
            [token for _, ids in before for token in (*ids, second)] if known else [],
            len(before) if self._has_targets else 0,
        )

    def join(
        self, source: list[int], target: list[int], with_context: bool = True
    ) -> tuple[list[int], list[int]]:
        """Return a pair behind its context, or alone, and add it to the document."""
        before = self.context(source, target) if with_context else SentenceContext([], [], 0)
        self.add(source, target)
        return before.source + source, before.target + target


class ContextJoiner:
    """Joins the pairs of a text, whose blocks come in order, with those before them."""

    def __init__(self, text: TrainingText, tokenizer: Tokenizer) -> None:
        assert text.context
        self._share = text.context.share
        self._window = ContextWindow(text.context, tokenizer, text.cleaning.max_length)
        self._last = 0  # the number of the last pair

    def join(
        self, block: Block, indices: Indices, sides: tuple[Sentences, Sentences]
    ) -> tuple[Sentences, Sentences]:
        """Return the ids of source and target of the kept pairs of a block, some with a context.

        `indices` are those of the kept pairs in the block, and `sides` are their ids. A pair is
        drawn by its number. A document ends where the numbers are not consecutive, because a pair
        was left out or is blank, and where the block has a break.
        """
        pairs = []
        for row, index in enumerate(indices.tolist()):
            number = block.numbers[index]
            if number != self._last + 1 or index in block.breaks:
                self._window.clear()
            self._last = number
            source, target = (side.sentence(row).tolist() for side in sides)
            pairs.append(self._window.join(source, target, self._is_drawn(number)))
        if len(block) in block.breaks:  # after its last pair
            self._last = -1
        return Sentences.of([pair[0] for pair in pairs]), Sentences.of([pair[1] for pair in pairs])

    def _is_drawn(self, number: int) -> bool:
        digest = hashlib.blake2b(f"context {number}".encode(), digest_size=8).digest()
        return int.from_bytes(digest) / 2**64 < self._share
