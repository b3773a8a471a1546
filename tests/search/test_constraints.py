"""Translations are neither too short nor repetitive, and only what was asked for is forbidden."""

import math
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch

from nmt.config import DecodingConfig
from nmt.data.tokens.tokenizer import BOS, EOS, PAD
from nmt.search.beam_search import beam_search
from nmt.search.constraints import forbid
from nmt.search.greedy import greedy_search
from nmt.search.hypothesis import Hypothesis

V = 8
Search = Callable[..., list[Hypothesis]]


def forbidden(history: list[list[int]], **settings: int) -> list[set[int]]:
    """Which tokens may not follow each row."""
    logits = torch.zeros(len(history), V)
    rows = torch.tensor(history, dtype=torch.int64).view(len(history), -1)
    forbid(logits, rows, DecodingConfig(**settings), (PAD, BOS), EOS)  # type: ignore[arg-type]
    return [{i for i, logit in enumerate(row) if logit == -math.inf} for row in logits.tolist()]


def test_padding_and_begin_are_forbidden_and_nothing_else() -> None:
    assert forbidden([[4, 4, 4]]) == [{PAD, BOS}]


def test_the_end_may_not_come_too_early() -> None:
    assert forbidden([[4, 5]], min_length=3) == [{PAD, BOS, EOS}]
    assert forbidden([[4, 5]], min_length=2) == [{PAD, BOS}]


def test_no_ngram_comes_twice() -> None:
    history = [[4, 5, 6, 4, 5], [4, 5, 4, 6, 4], [7, 6, 5, 4, 4]]
    found = [row - {PAD, BOS} for row in forbidden(history, no_repeat_ngram=3)]
    assert found == [{6}, set(), set()]
    found = [row - {PAD, BOS} for row in forbidden(history, no_repeat_ngram=2)]
    assert found == [{6}, {5, 6}, {4}]
    assert forbidden([[4, 6]], no_repeat_ngram=1) == [{PAD, BOS, 4, 6}]


@pytest.mark.parametrize("length", [0, 1, 2, 3])
def test_a_history_shorter_than_an_ngram_forbids_nothing(length: int) -> None:
    assert forbidden([[4] * length], no_repeat_ngram=4) == [
        {PAD, BOS} if length < 4 else {PAD, BOS, 4}
    ]


def test_the_end_may_come_where_nothing_else_is_left() -> None:
    everything = [token for token in range(V) if token not in (PAD, BOS, EOS)]
    assert forbidden([everything], no_repeat_ngram=1, min_length=9) == [set(range(V)) - {EOS}]


def best_of_beam(*arguments: Any) -> list[Hypothesis]:
    return [n_best[0] for n_best in beam_search(*arguments)]


@pytest.mark.parametrize("search", [greedy_search, best_of_beam])
def test_a_search_keeps_to_them(table_model: Callable[..., Any], search: Search) -> None:
    draw = random.Random(1)
    source = torch.tensor([[draw.randrange(4, V), EOS] for _ in range(20)])
    settings = DecodingConfig(min_length=6, no_repeat_ngram=2, max_length_offset=12)
    for seed in range(3):
        found = search(table_model(V, seed), source, settings, BOS, EOS)
        for tokens in (hypothesis.tokens for hypothesis in found):
            pairs = list(zip(tokens, tokens[1:], strict=False))
            assert len(tokens) >= 6 and len(set(pairs)) == len(pairs)
    free = DecodingConfig(max_length_offset=12)
    assert any(len(h.tokens) < 6 for h in search(table_model(V, 0), source, free, BOS, EOS))
