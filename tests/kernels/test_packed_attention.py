"""Packed batches, as on a GPU: the loss and the gradients are those of padded rows."""

import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from types import SimpleNamespace
from typing import get_args

import numpy as np
import pytest
import torch
from torch import Tensor

import nmt.kernels
from nmt.data.tokens.batch import collate, pack
from nmt.data.tokens.token_store import TokenStore
from nmt.data.tokens.tokenizer import BOS, EOS, PAD
from nmt.kernels.packed_attention import can_attend_packed
from nmt.recipe.config import Norm
from tests.stand_in_models import packing_objective, small_transformer

V = 40
CPU = torch.device("cpu")


def pairs(source_lengths: list[int], target_lengths: list[int]) -> TokenStore:
    """Random pairs whose sides have these lengths, EOS included."""
    draw = np.random.default_rng(3)

    def side(lengths: list[int]) -> list[list[int]]:
        return [[*draw.integers(EOS + 1, V, length - 1).tolist(), EOS] for length in lengths]

    return TokenStore.of(side(source_lengths), side(target_lengths))


def weights(query: Tensor, key: Tensor, is_causal: bool) -> Tensor:
    """Eq. 1's weights (H, T, S) of one sentence: queries (T, H, K), keys (S, H, K)."""
    scores = torch.einsum("qhk,shk->hqs", query, key) / query.shape[2] ** 0.5
    if is_causal:
        scores = scores.masked_fill(~torch.ones_like(scores[0], dtype=torch.bool).tril(), -1e30)
    return scores.softmax(-1)


def forward(
    inputs: Sequence[Tensor], offsets: Sequence[Tensor], longest: Sequence[int], is_causal: bool
) -> Tensor:
    """What `sentence_kernels.forward` computes, sentence by sentence in PyTorch."""
    query, key, value = inputs
    result = torch.empty_like(query)
    for ours, theirs in zip(*map(ranges, offsets), strict=True):
        p = weights(query[ours], key[theirs], is_causal)
        result[ours] = torch.einsum("hqs,shk->qhk", p, value[theirs])
    return result


def backward(
    gradient: Tensor,
    inputs: Sequence[Tensor],
    offsets: Sequence[Tensor],
    longest: Sequence[int],
    is_causal: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """What `sentence_kernels.backward` computes, by the formulas that stand there."""
    query, key, value = inputs
    dq, dk, dv = (torch.empty_like(x) for x in inputs)
    for ours, theirs in zip(*map(ranges, offsets), strict=True):
        p = weights(query[ours], key[theirs], is_causal)
        dv[theirs] = torch.einsum("hqs,qhk->shk", p, gradient[ours])
        dp = torch.einsum("qhk,shk->hqs", gradient[ours], value[theirs])
        ds = p * (dp - (p * dp).sum(-1, keepdim=True)) / query.shape[2] ** 0.5
        dq[ours] = torch.einsum("hqs,shk->qhk", ds, key[theirs])
        dk[theirs] = torch.einsum("hqs,qhk->shk", ds, query[ours])
    return dq, dk, dv


def ranges(offsets: Tensor) -> list[slice]:
    """The rows of each sentence."""
    return [slice(*each) for each in zip(offsets[:-1], offsets[1:], strict=True)]


@pytest.fixture(autouse=True)
def processor() -> None:
    """Let the tests run once: nothing here is in C."""


@pytest.fixture
def kernels_on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in = SimpleNamespace(forward=forward, backward=backward)
    monkeypatch.setattr(nmt.kernels, "sentence_kernels", stand_in, raising=False)


def test_a_packed_batch_has_the_tokens_of_a_padded_one() -> None:
    store = pairs([3, 1, 7], [2, 6, 1])
    chosen = np.array([2, 0])
    packed, padded = pack(store, chosen, CPU), collate(store, chosen)
    for name in ("source", "target_input", "target_output"):
        rows = getattr(padded, name)
        assert getattr(packed, name).equal(rows[rows != PAD])
    assert packed.target_input[[0, 1]].tolist() == [BOS, BOS]
    assert packed.source_side.offsets.tolist() == [0, 7, 10]
    assert packed.target_side.positions.tolist() == [0, 0, 1]
    assert (packed.source_side.longest, packed.target_side.longest) == (7, 2)


@pytest.mark.parametrize("norm", get_args(Norm))
@pytest.mark.parametrize(
    "lengths",
    [([1], [1]), ([3, 9, 1], [5, 2, 4]), ([128, 5], [7, 120])],
    ids=["one", "few", "long"],
)
def test_loss_and_gradients_are_those_of_padded_rows(
    norm: str, lengths: tuple[list[int], list[int]], kernels_on_a_cpu: None
) -> None:
    model = small_transformer(V, norm=norm, dropout=0.0).double().train()
    objective, store = packing_objective(model), pairs(*lengths)
    rows = np.arange(len(store))
    batches = collate(store, rows), pack(store, rows, CPU)
    losses = [objective(batch).total for batch in batches]
    found = [torch.autograd.grad(loss, list(model.parameters())) for loss in losses]
    torch.testing.assert_close(losses[1], losses[0], rtol=1e-6, atol=0)
    for padded, packed in zip(*found, strict=True):
        torch.testing.assert_close(packed, padded, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("lengths", "multiple"),
    [
        (([1], [1]), 16),
        (([3, 9, 1], [5, 2, 4]), 16),
        (([16], [15]), 16),  # one token of the target is missing, and needs one of the source
        (([4] * 7, [4] * 7), 28),  # nothing is missing but a pair
        (([128, 5], [7, 120]), 100),
    ],
)
def test_filling_a_batch_changes_its_sizes_and_nothing_else(
    lengths: tuple[list[int], list[int]], multiple: int, kernels_on_a_cpu: None
) -> None:
    model = small_transformer(V, dropout=0.0).double().train()
    objective, store = packing_objective(model), pairs(*lengths)
    rows = np.arange(len(store))
    plain, filled = pack(store, rows, CPU), pack(store, rows, CPU, multiple)
    tokens_of_source, tokens_of_target, count, *longest = filled.shape
    assert tokens_of_source % multiple == tokens_of_target % multiple == 0
    assert all(limit.bit_count() == 1 for limit in (count, *longest))
    sentences = [side.offsets.diff() for side in (filled.source_side, filled.target_side)]
    assert max(sentences[0].max(), sentences[1].max()) <= longest[0] == longest[1]
    assert not ((sentences[0] == 0) & (sentences[1] > 0)).any()  # no query without a key
    losses = [objective(batch).total for batch in (plain, filled)]
    found = [torch.autograd.grad(loss, list(model.parameters())) for loss in losses]
    torch.testing.assert_close(losses[1], losses[0], rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(found[1], found[0], rtol=1e-6, atol=1e-9)


def test_a_cpu_does_not_attend_packed() -> None:
    assert not can_attend_packed(CPU, 64)


@pytest.mark.skipif(not find_spec("triton"), reason="Triton is not installed")
def test_the_kernels_compute_what_pytorch_does() -> None:
    """In Triton's interpreter, which needs no GPU and is chosen before Triton is imported."""
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    command = [sys.executable, "-m", "tests.kernels.interpreted_kernels"]
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
