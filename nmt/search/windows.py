"""Cut a stream of lines into windows, and a window into batches of similar length.

Windows bound the memory for a stream of any length. Batches of similar length need little padding.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TypeVar

from nmt.data.tokens.tokenizer import EOS

WINDOW_LINES = 2000
WINDOW_CHARACTERS = 1 << 20
# A shorter sentence counts as one of 16 tokens: it needs decoder rows and logits as well.
MIN_COUNTED_LENGTH = 16
Item = TypeVar("Item")


def cut_into_windows(
    lines: Iterable[Item],
    count: int,
    characters: Callable[[Item], int],
    most_characters: int | None = None,
) -> Iterator[list[Item]]:
    """Yield lists of `count` lines; a list ends earlier once it has `most_characters` characters.

    None stands for `WINDOW_CHARACTERS`.

    `characters` returns the number of characters of a line.
    """
    window: list[Item] = []
    size = 0
    for line in lines:
        window.append(line)
        size += characters(line)
        if len(window) >= count or size >= (most_characters or WINDOW_CHARACTERS):
            yield window
            window, size = [], 0
    if window:
        yield window


def cut_into_batches(
    indices: Sequence[int], lengths: Sequence[int], batch_tokens: int
) -> Iterator[list[int]]:
    """Cut `indices` of lines into batches of similar length, and yield those of long lines first.

    In a batch, number of lines x length of the longest is at most `batch_tokens`; a longer line is
    a batch of its own. There are as few batches as possible, but an even number if more than one,
    about equally full, so that two workers finish together. `lengths` has an entry for every line.
    """
    order = sorted(indices, key=lambda i: lengths[i], reverse=True)
    longest_first = [max(lengths[i], MIN_COUNTED_LENGTH) for i in order]
    count = len(_batch_ends(longest_first, batch_tokens))
    if count < 2:  # one batch, or none
        yield from [order] * count
        return
    count += count % 2  # an even number

    def suffices(tokens: int) -> bool:  # tokens per batch, for `count` batches
        return len(_batch_ends(longest_first, tokens)) <= count

    # the least number that suffices, by bisection: False < True
    least_tokens = bisect_left(range(batch_tokens), True, key=suffices)
    for start, end in pairwise([0, *_batch_ends(longest_first, least_tokens)]):
        yield order[start:end]


def _batch_ends(longest_first: Sequence[int], batch_tokens: int) -> list[int]:
    """Return the end index (exclusive) of each batch; all batches but the last one are full."""
    ends: list[int] = []
    end = 0
    while end < len(longest_first):
        end = min(end + max(1, batch_tokens // longest_first[end]), len(longest_first))
        ends.append(end)
    return ends


def truncate(
    rows: Sequence[list[int]], limit: int, report: Callable[[int, int], None]
) -> list[list[int]]:
    """Return the rows of ids; a longer one than `limit` is cut to `limit` ids, the last one EOS.

    Calls `report(index, length)` for each row that is cut, with its length before the cut.
    """
    for i, row in enumerate(rows):
        if len(row) > limit:
            report(i, len(row))
    return [[*row[: limit - 1], EOS] if len(row) > limit else row for row in rows]
