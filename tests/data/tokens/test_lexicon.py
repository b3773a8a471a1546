"""IBM Model 1 finds who translates whom."""

import numpy as np
import pytest

from nmt.data.tokens import lexicon as lexicon_module
from nmt.data.tokens.lexicon import Lexicon, most_frequent
from nmt.data.tokens.token_store import TokenStore
from nmt.data.tokens.tokenizer import EOS

SIZE, OFFSET = 30, 13


def store_of(pairs: int) -> TokenStore:
    """Sources of tokens 4 to 16, each translated by the token `OFFSET` above, in any order."""
    random = np.random.default_rng(1)
    sources = [random.integers(4, 17, random.integers(1, 6)).tolist() for _ in range(pairs)]
    targets = [random.permutation([i + OFFSET for i in row]).tolist() for row in sources]
    return TokenStore.of([[*row, EOS] for row in sources], [[*row, EOS] for row in targets])


def learnt(store: TokenStore) -> Lexicon:
    lexicon = Lexicon(store, SIZE)
    lexicon.learn()
    return lexicon


def test_each_token_is_translated_by_its_translation() -> None:
    lexicon = learnt(store_of(300))
    table = lexicon.best(17, 2, np.array([EOS]))
    assert table.shape == (17, 2)
    assert table[4:, 0].tolist() == [i + OFFSET for i in range(4, 17)]
    assert (table[:3] == 0).all()  # tokens that do not occur have no translation
    left_out = [EOS, 4 + OFFSET]
    assert not np.isin(left_out, lexicon.best(17, 3, np.array(left_out))).any()


def test_probabilities_of_a_source_token_sum_to_one_and_grow_with_each_iteration() -> None:
    store, finished = store_of(100), list[int]()
    lexicon = Lexicon(store, SIZE)
    lexicon.learn(finished.append)
    assert finished == [1, 2, 3, 4, 5]
    sums = np.bincount(lexicon.pairs // SIZE, lexicon.probabilities)
    assert sums[4:17] == pytest.approx(1.0)
    right = lexicon.pairs % SIZE == lexicon.pairs // SIZE + OFFSET
    assert lexicon.probabilities[right].min() > 0.5


def test_one_iteration_is_that_of_the_book() -> None:
    """Two sentences by hand: a b | x y and a | x; each begins with equal shares."""
    a, b, x, y = 4, 5, 6, 7
    store = TokenStore.of([[a, b], [a]], [[x, y], [x]])
    lexicon = Lexicon(store, SIZE)
    assert lexicon.pairs.tolist() == [a * SIZE + x, a * SIZE + y, b * SIZE + x, b * SIZE + y]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lexicon_module, "ITERATIONS", 1)
        lexicon.learn()
    # counts: a-x 1/2 + 1, a-y 1/2, b-x 1/2, b-y 1/2
    assert lexicon.probabilities.tolist() == [0.75, 0.25, 0.5, 0.5]


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    store = store_of(200)
    expected = learnt(store)
    monkeypatch.setattr(lexicon_module, "_AT_ONCE", 40)
    found = learnt(store)
    assert np.array_equal(found.pairs, expected.pairs)
    assert found.probabilities == pytest.approx(expected.probabilities)


def test_a_large_corpus_is_thinned_out_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    store = store_of(1000)
    monkeypatch.setattr(lexicon_module, "MAX_COOCCURRENCES", 4000)
    lexicon = Lexicon(store, SIZE)
    assert 2000 < lexicon._cooccurrence_counts.sum() <= 4200
    assert lexicon._sentences[-1] > 990
    lexicon.learn()
    right = (lexicon.best(17, 1, np.array([EOS]))[4:, 0] == np.arange(4, 17) + OFFSET).mean()
    assert right > 0.9


def test_the_most_frequent_come_first() -> None:
    store = TokenStore.of([[4], [4]], [[7, 7, 7, 5, 5], [9, EOS]])
    assert most_frequent(store, 2).tolist() == [7, 5]
    assert most_frequent(store, 9).tolist() == [7, 5, 3, 9]
