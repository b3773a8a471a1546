"""The index of bigrams: sentences that share many of them with a text are likely to be similar."""

import numpy as np
import pytest

from nmt.data.text import bigram_index
from nmt.data.text.bigram_index import BigramIndex, bigrams_of, likely_sentences


def likely(signatures: list[str], text: str, most: int = 9, entries: int = 1000) -> list[int]:
    index = BigramIndex.of(signatures)
    lists = index.lists(np.unique(bigrams_of([text])))
    numbers, estimates = likely_sentences(lists, len(text), 0.5, entries, most)
    return numbers[np.argsort(-estimates, kind="stable")].tolist()


def test_sentences_that_share_more_bigrams_are_likelier() -> None:
    assert likely(["abcx", "xyz", "abcd", "abxy"], "abcd") == [2, 0, 3]
    assert likely(["abcd", "abce", "abcf"], "abcd", most=1) == [0]


def test_much_longer_and_shorter_sentences_are_left_out() -> None:
    assert likely(["abcdefghij", "a", "ab"], "abc") == [2]
    assert likely(["abcd" * 2000], "abcd" * 1500) == [0]  # longer than an entry can say


def test_the_rarest_bigrams_are_read_first() -> None:
    signatures = [f"ab{chr(200 + n)}" for n in range(50)]
    assert likely([*signatures, "xyab"], "zyab", entries=5) == [50]


def test_of_a_frequent_bigram_the_last_sentences_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bigram_index, "_MOST_ENTRIES", 3)
    assert sorted(likely(["ab"] * 10, "ab")) == [7, 8, 9]


@pytest.mark.parametrize("signatures", [[], [""], ["", "a", ""]])
def test_empty_sentences_are_no_problem(signatures: list[str]) -> None:
    assert likely(signatures, "bc") == []
