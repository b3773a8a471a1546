"""Pairs joined with those before them in their document: the context of a sentence.

Tiedemann and Scherrer, 2017 (Neural Machine Translation with Extended Context), put the sentences
before a sentence into its source, behind a separator, and their translations into its target. The
separator is a symbol of the vocabulary that no text is encoded to. So a user's text cannot hold it.
"""

import hashlib
from collections import deque
from collections.abc import Sequence

from nmt.data.text.cleaning import TrainingText
from nmt.data.text.parallel_text import Block
from nmt.data.tokens.token_store import Indices, Sentences
from nmt.data.tokens.tokenizer import SubwordModel, Tokenizer
from nmt.data.tokens.vocabulary import symbol_id
from nmt.recipe.config import ContextConfig

CONTEXT = "<context>"
"""the separator: it stands behind each sentence of the context"""


def separators_of(tokenizer: Tokenizer) -> list[int]:
    """Return the ids of the separator in source and target; empty if a vocabulary lacks it."""
    ids = [symbol_id(side, CONTEXT) for side in (tokenizer.source, tokenizer.target)]
    return [i for i in ids if i is not None] if None not in ids else []


def joined(context: Sequence[Sequence[int]], separator: int) -> list[int]:
    """Return the ids of the sentences of a context, each without EOS, before a separator."""
    return [token for sentence in context for token in (*sentence, separator)]


def without_context(ids: Sequence[int], separator: int) -> list[int]:
    """Return what stands behind the last separator: the ids of the sentence itself."""
    ids = list(ids)
    return ids[len(ids) - ids[::-1].index(separator) :] if separator in ids else ids


def plain_ids(model: SubwordModel, ids: Sequence[int]) -> list[int]:
    """Return the ids of a sentence as a context has them: without EOS and without tags."""
    tags = model.tags.values()
    return [token for token in ids[:-1] if token not in tags]


class ContextWindow:
    """The latest pairs of a document, of which the next one gets as many as fit.

    A sentence is given as its ids, with EOS. Its context is the longest run of pairs before it, at
    most `ContextConfig.sentences`, with which no side has more than `max_length` tokens.
    """

    def __init__(self, config: ContextConfig, tokenizer: Tokenizer, max_length: int) -> None:
        self._tokenizer, self._max_length = tokenizer, max_length
        self._has_targets = config.sides == "source+target"
        self._latest: deque[tuple[list[int], list[int]]] = deque(maxlen=config.sentences)

    def clear(self) -> None:
        """Begin another document."""
        self._latest.clear()

    def add(self, source: Sequence[int], target: Sequence[int] = ()) -> None:
        """Add the next sentence of the document; `target` is empty if it is not known."""
        sides = self._tokenizer.source, self._tokenizer.target
        first, second = (plain_ids(*each) for each in zip(sides, (source, target), strict=True))
        self._latest.append((first, second))

    def context(
        self, source: Sequence[int], target: Sequence[int] = ()
    ) -> tuple[list[list[int]], list[list[int]]]:
        """Return the sentences before a pair, oldest first: of its source, and of its target.

        Those of the target are empty if targets are not joined, or not known.
        """
        sources, targets = list[list[int]](), list[list[int]]()
        lengths = [len(source) - 1, len(target) - 1]
        for before in reversed(self._latest):
            lengths[0] += len(before[0]) + 1  # with the separator
            lengths[1] += (len(before[1]) + 1) if self._has_targets else 0
            if max(lengths) > self._max_length:
                break
            sources.insert(0, before[0])
            targets.insert(0, before[1])
        return sources, targets if self._has_targets else []


class ContextJoiner:
    """Joins the pairs of a text, whose blocks come in order, with those before them."""

    def __init__(self, text: TrainingText, tokenizer: Tokenizer) -> None:
        assert text.context
        self._share = text.context.share
        self._window = ContextWindow(text.context, tokenizer, text.cleaning.max_length)
        self._separators = separators_of(tokenizer)
        self._last = 0  # the number of the last pair

    def join(
        self, block: Block, indices: Indices, sides: tuple[Sentences, Sentences]
    ) -> tuple[Sentences, Sentences]:
        """Return the ids of source and target of the kept pairs of a block, some with a context.

        `indices` are those of the kept pairs in the block, and `sides` are their ids. A pair is
        drawn by its number. A document ends where the numbers are not consecutive, because a pair
        was left out or is blank, and where the block has a break.
        """
        sources, targets = list[list[int]](), list[list[int]]()
        for row, index in enumerate(indices.tolist()):
            number = block.numbers[index]
            if number != self._last + 1 or index in block.breaks:
                self._window.clear()
            self._last = number
            pair = [side.sentence(row).tolist() for side in sides]
            contexts = self._window.context(*pair) if self._is_drawn(number) else ([], [])
            parts = zip(contexts, self._separators, pair, strict=True)
            source, target = ([*joined(before, mark), *ids] for before, mark, ids in parts)
            sources.append(source)
            targets.append(target)
            self._window.add(*pair)
        if len(block) in block.breaks:  # after its last pair
            self._last = -1
        return Sentences.of(sources), Sentences.of(targets)

    def _is_drawn(self, number: int) -> bool:
        digest = hashlib.blake2b(f"context {number}".encode(), digest_size=8).digest()
        return int.from_bytes(digest) / 2**64 < self._share
