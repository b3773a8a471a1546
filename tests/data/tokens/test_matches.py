"""Matches stand behind a source between symbols that no text has, and come off again."""

import numpy as np
import pytest

from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.matches import (
    has_match_symbols,
    match_symbols,
    plain_store,
    with_matches,
    without_matches,
)
from nmt.data.tokens.token_store import TokenStore
from nmt.data.tokens.tokenizer import EOS, SubwordModel
from nmt.data.tokens.vocabulary import learn_vocabulary
from nmt.recipe.config import DataConfig, MemoryConfig, TokenizerConfig
from tests.data.tokens.tokenizers import drawn_segmentation

SYMBOLS = match_symbols(DataConfig(memory=MemoryConfig()))


@pytest.fixture(scope="module")
def model() -> SubwordModel:
    pairs = [SentencePair("a small dog runs", "ein Hund")] * 3
    config = TokenizerConfig(kind="char", vocabulary_size=60)
    return learn_vocabulary(pairs, config, ["<tag>"], SYMBOLS).source


@pytest.mark.parametrize(
    ("scores", "symbols"),
    [
        ([], []),
        ([0.99, 0.9], ["<match-high>", "<match-high>"]),
        ([0.89, 0.7, 0.1], ["<match-middle>", "<match-middle>", "<match-low>"]),
    ],
)
def test_a_symbol_before_each_match_says_how_near_it_is(
    model: SubwordModel, scores: list[float], symbols: list[str]
) -> None:
    [source], [target] = model.encode(["a dog"]), model.encode(["Hund"])
    joined = with_matches(model, source, [(target, score) for score in scores], limit=100)
    expected = [*source[:-1]]
    for symbol in symbols:
        expected += [model.pieces.index(symbol), *target[:-1]]
    assert joined == [*expected, EOS]
    assert without_matches(model, joined) == source


@pytest.mark.parametrize(("limit", "kept"), [(100, "un"), (12, "u"), (10, "n"), (6, "")])
def test_a_match_that_makes_a_source_too_long_is_left_out(
    model: SubwordModel, limit: int, kept: str
) -> None:
    [source] = model.encode(["dog"])  # 5 ids with the space and EOS
    targets = {"u": "uuuuu" if limit != 10 else "u" * 20, "n": "nnn"}
    encoded = [(ids, 0.9) for ids in model.encode(list(targets.values()))]
    joined = with_matches(model, source, encoded, limit)
    assert len(joined) <= limit
    assert [n for n in targets if model.pieces.index(n) in joined[len(source) :]] == list(kept)


@pytest.mark.parametrize("text", ["a <match-high> dog", "<match-low>", "▁<match-high>a"])
def test_a_text_that_is_spelled_like_a_symbol_is_text(model: SubwordModel, text: str) -> None:
    [ids] = model.encode([text])
    assert {model.pieces.index(symbol) for symbol in SYMBOLS}.isdisjoint(ids)
    assert without_matches(model, ids) == ids


def test_the_plain_store_has_the_sources_without_matches(model: SubwordModel) -> None:
    plain = model.encode(["a dog", "dogs run", "a"])
    [target] = model.encode(["Hund"])
    matches = [(target, 0.6), (target, 0.95)]
    sources = [with_matches(model, plain[0], matches, 99), plain[1]]
    sources.append(with_matches(model, plain[2], matches[:1], 99))
    store = TokenStore.of(sources, [target] * 3)
    for each in (store, TokenStore.of(plain, [target] * 3)):
        found = plain_store(each, model)
        assert [found.source.sentence(i).tolist() for i in range(3)] == plain
        assert found.source.lengths.tolist() == list(map(len, plain))
        assert np.array_equal(found.target.ids, store.target.ids)


def test_a_vocabulary_without_the_symbols_has_no_matches() -> None:
    pairs = [SentencePair("a <match-high>", "b")] * 3
    model = learn_vocabulary(pairs, TokenizerConfig(kind="char", vocabulary_size=40)).source
    store = TokenStore.of([[5, 6, EOS]], [[7, EOS]])
    assert not has_match_symbols(model)
    assert without_matches(model, [5, 6, EOS]) == [5, 6, EOS]
    assert plain_store(store, model) is store


def test_segmentations_that_are_drawn_keep_the_symbols() -> None:
    pairs = [SentencePair("a small dog runs around the house", "ein Hund")] * 3
    tokenizer = learn_vocabulary(pairs, TokenizerConfig(vocabulary_size=60), (), SYMBOLS)
    model = tokenizer.source
    source, target = model.encode(["a small dog", "ein Hund"])
    joined = with_matches(model, source, [(target, 0.8)], 99)
    drawn = drawn_segmentation(model, joined, 0.9)
    assert len(drawn) > len(joined)
    assert model.decode([without_matches(model, drawn)]) == ["a small dog"]
    assert model.decode([drawn[drawn.index(model.pieces.index("<match-middle>")) :]]) == [
        "ein Hund"
    ]
