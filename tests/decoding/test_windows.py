from nmt.data.tokenizer import EOS
from nmt.decoding.windows import SHORTEST_COUNTED, batches, cut, windows


def test_windows_end_at_their_count_of_lines() -> None:
    assert list(windows("abcde", 2, len)) == [["a", "b"], ["c", "d"], ["e"]]
    assert list(windows([], 2, len)) == []


def test_batches_hold_every_index_once_longest_first() -> None:
    lengths = [3, 40, 7, 100, 40, 1]
    found = list(batches([0, 1, 3, 4, 5], lengths, 80))
    assert found == [[3], [1, 4], [0, 5]]
    assert all(len(batch) * SHORTEST_COUNTED <= 80 for batch in found)


def test_only_rows_over_the_limit_are_cut_and_told_of() -> None:
    told: list[tuple[int, int]] = []
    rows = [[7, 8, EOS], [7, 8, 9, EOS], [EOS]]
    assert cut(rows, 3, lambda i, length: told.append((i, length))) == [[7, 8, 3], [7, 8, 3], [3]]
    assert told == [(1, 4)]
    assert rows[1] == [7, 8, 9, EOS]
