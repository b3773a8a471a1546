"""Sampled pieces spell the same text, are another draw each step, and the same draw each time."""

import numpy as np
import pytest

from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.token_store import TokenStore
from nmt.data.tokens.tokenizer import EOS, UNK, Tokenizer
from tests.data.tokens.small_tokenizers import PAIRS, learn

# two spaces in a row must come back
TEXTS = [*PAIRS[:2], SentencePair("a  dog eats !", "ein  Hund frisst !")]
SIZES = {"bpe": 90, "unigram": 33}


def tokenizer_and_store(kind: str = "bpe") -> tuple[Tokenizer, TokenStore]:
    tokenizer = learn(kind, vocabulary_size=SIZES[kind], normalization="identity")
    rows = (
        tokenizer.source.encode([pair.source for pair in TEXTS]),
        tokenizer.target.encode([pair.target for pair in TEXTS]),
    )
    return tokenizer, TokenStore.of(*rows)


def drawn(
    store: TokenStore, tokenizer: Tokenizer, alpha: float, *, indices: list[int], step: int = 1
) -> list[tuple[list[int], list[int]]]:
    pairs = tokenizer.resample(store, np.array(indices), alpha, seed=1, step=step)
    return [
        (list(pairs.source.sentence(i)), list(pairs.target.sentence(i)))
        for i in range(len(indices))
    ]


@pytest.mark.parametrize("kind", SIZES)
@pytest.mark.parametrize("step", range(5))
def test_the_pieces_change_and_the_text_stays(kind: str, step: int) -> None:
    tokenizer, store = tokenizer_and_store(kind)
    pairs = tokenizer.resample(store, np.array([2, 0, 1]), 0.3, seed=1, step=step)
    for place, index in enumerate([2, 0, 1]):
        for side, text in (
            (pairs.source, TEXTS[index].source),
            (pairs.target, TEXTS[index].target),
        ):
            assert tokenizer.target.decode([side.sentence(place).tolist()]) == [text]
            assert side.sentence(place)[-1] == EOS


def test_a_draw_is_a_function_of_seed_step_and_pair() -> None:
    tokenizer, store = tokenizer_and_store()
    together = drawn(store, tokenizer, 0.5, indices=[0, 1, 2])
    assert drawn(store, tokenizer, 0.5, indices=[0, 1, 2]) == together
    alone = [drawn(store, tokenizer, 0.5, indices=[i])[0] for i in (2, 1, 0)]
    assert alone[::-1] == together
    assert drawn(store, tokenizer, 0.5, indices=[0, 1, 2], step=2) != together


def test_without_dropout_bpe_merges_as_ever() -> None:
    tokenizer, store = tokenizer_and_store()
    for i, (source, target) in enumerate(drawn(store, tokenizer, 0.0, indices=[0, 1, 2])):
        assert source == list(store.source.sentence(i))
        assert target == list(store.target.sentence(i))


def test_more_dropout_gives_more_pieces() -> None:
    tokenizer, store = tokenizer_and_store()
    lengths = [
        sum(len(drawn(store, tokenizer, alpha, indices=[0], step=s)[0][0]) for s in range(50))
        for alpha in (0.0, 0.1, 0.5, 0.99)
    ]
    assert lengths == sorted(set(lengths))


def test_an_unknown_symbol_keeps_the_ids() -> None:
    tokenizer, _ = tokenizer_and_store()
    ids = tokenizer.source.encode(["a xylophone house"])[0]
    assert UNK in ids
    assert all(tokenizer.source.resample(ids, 0.9, seed) == ids for seed in range(5))
