"""A stream of lines in windows, a window in batches of similar length.

Windows bound the memory, whatever the length of the stream; lines of similar length beside each
other leave little to be computed on padding.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TypeVar

from nmt.data.tokens.tokenizer import EOS

WINDOW_LINES = 2000
WINDOW_CHARACTERS = 1 << 20
# a short sentence fills decoder rows and logits all the same, so it counts as one of this length
SHORTEST_COUNTED = 16
Item = TypeVar("Item")


def windows(
    lines: Iterable[Item], count: int, characters: Callable[[Item], int]
) -> Iterator[list[Item]]:
    """Groups of `count` lines, or fewer where they are long: memory stays bounded."""
    window: list[Item] = []
    size = 0
    for line in lines:
        window.append(line)
        size += characters(line)
        if len(window) >= count or size >= WINDOW_CHARACTERS:
            yield window
            window, size = [], 0
    if window:
        yield window


def batches(
    indices: Sequence[int], lengths: Sequence[int], batch_tokens: int
) -> Iterator[list[int]]:
    """Cut the indices, longest line first, so that rows x longest <= batch_tokens.

    A line that is longer alone stands alone. There are as few batches as that allows, or one more
    where two workers could not share them evenly, and they are as even as so few can be: workers
    end at about the same time.
    """
    order = sorted(indices, key=lambda i: lengths[i], reverse=True)
    longest_first = [max(lengths[i], SHORTEST_COUNTED) for i in order]
    fewest = len(_ends(longest_first, batch_tokens))
    if fewest > 1:
        fewest += fewest % 2
    even = bisect_left(
        range(batch_tokens), True, key=lambda tokens: len(_ends(longest_first, tokens)) <= fewest
    )
    for start, end in pairwise([0, *_ends(longest_first, even)]):
        yield order[start:end]


def _ends(longest_first: Sequence[int], batch_tokens: int) -> list[int]:
    """Where each batch ends if all but the last are full."""
    ends: list[int] = []
    end = 0
    while end < len(longest_first):
        end = min(end + max(1, batch_tokens // longest_first[end]), len(longest_first))
        ends.append(end)
    return ends


def worded(texts: Sequence[str], rows: Sequence[list[int]]) -> list[int]:
    """Which texts have something to translate, by their rows of ids.

    Some characters leave no token, so a text that is not blank may still be EOS alone.
    """
    return [i for i, text in enumerate(texts) if text.strip() and len(rows[i]) > 1]


def cut(rows: Sequence[list[int]], limit: int, tell: Callable[[int, int], None]) -> list[list[int]]:
    """Rows of ids, those over `limit` cut and ended by EOS; `tell` hears their place and length."""
    kept = []
    for i, row in enumerate(rows):
        if len(row) > limit:
            tell(i, len(row))
            row = [*row[: limit - 1], EOS]
        kept.append(row)
    return kept
