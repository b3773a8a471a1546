"""Translations are neither too short nor repetitive, and only what was asked for is forbidden."""

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch

from nmt.data.tokens.tokenizer import BOS, EOS, PAD
from nmt.recipe.config import DecodingConfig
from nmt.search.beam_search import beam_search
from nmt.search.decoding import (
    EncodedSource,
    IncrementalDecoder,
    leaving_sentences,
    remaining_sentences,
)
from nmt.search.hypothesis import IMPOSSIBLE, Hypothesis
from nmt.search.sampling import greedy_search
from tests.stand_in_models import table_model

V = 8


def forbidden(history: list[list[int]], **settings: Any) -> list[set[int]]:
    """Which tokens besides padding and BOS may not follow each row."""
    model = table_model(V)
    options = DecodingConfig(**settings)
    encoded = EncodedSource.encode(model, torch.tensor([[EOS]]), options)
    log_p = torch.zeros(len(history), V)
    rows = torch.tensor(history, dtype=torch.int64).view(len(history), -1)
    IncrementalDecoder(model, encoded, options).forbid(log_p, rows)
    found = [{i for i, value in enumerate(row) if value == IMPOSSIBLE} for row in log_p.tolist()]
    assert all({PAD, BOS} <= row for row in found)
    return [row - {PAD, BOS} for row in found]


@pytest.mark.parametrize(
    ("history", "settings", "expected"),
    [
        ([4, 4, 4], {}, set()),
        ([4, 5], {"min_length": 3}, {EOS}),
        ([4, 5], {"min_length": 2}, set()),
        ([4, 6], {"no_repeat_ngram": 1}, {4, 6}),
        ([], {"no_repeat_ngram": 4}, set()),
        ([4, 4, 4], {"no_repeat_ngram": 4}, set()),
        ([4, 4, 4, 4], {"no_repeat_ngram": 4}, {4}),
        # where nothing else is left, the end may come
        ([1, 4, 5, 6, 7], {"no_repeat_ngram": 1, "min_length": 9}, {1, 4, 5, 6, 7}),
    ],
)
def test_what_may_not_follow(
    history: list[int], settings: dict[str, int], expected: set[int]
) -> None:
    assert forbidden([history], **settings) == [expected]


def test_no_ngram_of_a_row_comes_twice() -> None:
    history = [[4, 5, 6, 4, 5], [4, 5, 4, 6, 4], [7, 6, 5, 4, 4]]
    assert forbidden(history, no_repeat_ngram=3) == [{6}, set(), set()]
    assert forbidden(history, no_repeat_ngram=2) == [{6}, {5, 6}, {4}]


def best_of_beam(*arguments: Any) -> list[Hypothesis]:
    return [n_best[0] for n_best in beam_search(*arguments)]


@pytest.mark.parametrize("search", [greedy_search, best_of_beam])
def test_a_search_keeps_to_them(search: Callable[..., list[Hypothesis]]) -> None:
    draw = random.Random(1)
    source = torch.tensor([[draw.randrange(4, V), EOS] for _ in range(20)])
    settings = DecodingConfig(min_length=6, no_repeat_ngram=2, max_length_offset=12)
    for seed in range(3):
        for hypothesis in search(table_model(V, seed), source, settings):
            tokens = hypothesis.tokens
            pairs = list(zip(tokens, tokens[1:], strict=False))
            assert len(tokens) >= 6 and len(set(pairs)) == len(pairs)
    free = DecodingConfig(max_length_offset=12)
    assert any(len(h.tokens) < 6 for h in search(table_model(V, 0), source, free))


@pytest.mark.parametrize("done", [[4], [0, 5], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5], []])
def test_sentences_that_remain_stay_in_their_places_but_for_the_holes(done: list[int]) -> None:
    is_done = torch.zeros(6, dtype=torch.bool)
    is_done[done] = True
    places = remaining_sentences(is_done)
    assert sorted(places.tolist()) == [n for n in range(6) if n not in done]
    stay = [n for n in range(len(places)) if n not in done]
    assert places[stay].tolist() == stay


def test_a_batch_takes_few_sizes_as_its_sentences_end() -> None:
    done = torch.zeros(100, dtype=torch.bool)
    sizes = set()
    for place in torch.randperm(100, generator=torch.Generator().manual_seed(1)).tolist():
        done[place] = True
        leaving = leaving_sentences(done)
        assert not (leaving & ~done).any()
        going_on, size = int((~done).sum()), int((~leaving).sum())
        assert going_on <= size <= 1.25 * going_on
        sizes.add(size)
    assert sorted(sizes) == [
        *range(8),  # 0, 1, 2, 3, 4, 5, 6, 7
        *range(8, 16, 2),
        *range(16, 32, 4),
        *range(32, 64, 8),
        *(64, 80, 96, 100),
    ]
