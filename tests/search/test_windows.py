"""Windows, batches of similar length, and rows that are too long."""

import pytest

from nmt.data.tokens.tokenizer import EOS
from nmt.search.windows import MIN_COUNTED_LENGTH, cut_into_batches, cut_into_windows, truncate


def test_windows_end_at_their_count_of_lines() -> None:
    assert list(cut_into_windows("abcde", 2, len)) == [["a", "b"], ["c", "d"], ["e"]]
    assert list(cut_into_windows([], 2, len)) == []


def test_batches_hold_every_index_once_longest_first() -> None:
    lengths = [3, 40, 7, 100, 40, 1]
    found = list(cut_into_batches([0, 1, 3, 4, 5], lengths, 80))
    assert found == [[3], [1], [4], [0, 5]]
    assert all(len(batch) * MIN_COUNTED_LENGTH <= 80 for batch in found)


def full_ones(lengths: list[int], batch_tokens: int) -> int:
    count = 0
    while lengths:
        lengths = lengths[max(1, batch_tokens // max(lengths[0], MIN_COUNTED_LENGTH)) :]
        count += 1
    return count


def test_batches_are_even_and_at_most_one_more_than_full_ones_would_be() -> None:
    assert [len(batch) for batch in cut_into_batches(range(64), [24] * 64, 1024)] == [32, 32]
    assert [len(batch) for batch in cut_into_batches(range(64), [24] * 64, 512)] == [16, 16, 16, 16]
    assert [len(batch) for batch in cut_into_batches(range(64), [24] * 64, 4096)] == [64]
    assert list(cut_into_batches([], [], 1024)) == []
    lengths = [200, 90, 60, 60, 31, 30, 29, 20, 20, 8, 5, 2]
    for batch_tokens in (1, 64, 100, 128, 240, 600, 4096):
        found = list(cut_into_batches(range(len(lengths)), lengths, batch_tokens))
        assert [i for batch in found for i in batch] == list(range(len(lengths)))
        full = full_ones(lengths, batch_tokens)
        assert len(found) == (full if full == 1 else full + full % 2)
        for batch in found:
            padded = len(batch) * max(lengths[batch[0]], MIN_COUNTED_LENGTH)
            assert len(batch) == 1 or padded <= batch_tokens


def test_one_batch_is_cut_without_a_search_for_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sentence alone is one batch; it would wait for the search."""
    monkeypatch.setattr("nmt.search.windows.bisect_left", None)
    assert list(cut_into_batches([1, 0], [3, 40], 1024)) == [[1, 0]]
    assert list(cut_into_batches([], [], 1024)) == []


def test_only_rows_over_the_limit_are_truncated_and_reported() -> None:
    told: list[tuple[int, int]] = []
    rows = [[7, 8, EOS], [7, 8, 9, EOS], [EOS]]
    cut = truncate(rows, 3, lambda i, length: told.append((i, length)))
    assert cut == [[7, 8, EOS], [7, 8, EOS], [EOS]]
    assert told == [(1, 4)]
    assert rows[1] == [7, 8, 9, EOS]
