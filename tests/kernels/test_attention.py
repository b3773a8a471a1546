"""Attention without padding is Eq. 1, and its gradients are those of Eq. 1 in float64."""

import math
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import Tensor

from nmt.kernels.attention import attend_unpadded
from nmt.kernels.rows import RowContext, UnpaddedSide
from tests.kernels.closeness import assert_rounded, random_activations


def sentences(lengths: list[int], padding: int = 0) -> UnpaddedSide:
    """Sentences of these lengths, the first of which has some padding at its end."""
    counts = torch.tensor(lengths, dtype=torch.int64)
    real = counts.clone()
    counts[:1] += padding
    starts = torch.cat((torch.zeros(1, dtype=torch.int64), counts.cumsum(0)))
    side = object.__new__(UnpaddedSide)  # of exactly these tokens, without rows of ids
    side.__dict__.update(offsets=starts, lengths=real)
    return side


def by_equation(
    query: Tensor, key: Tensor, value: Tensor, context: RowContext, heads: int
) -> Tensor:
    """Eq. 1 in float64, one sentence and head after the other."""
    result = torch.zeros(query.shape, dtype=torch.float64)
    width = query.shape[1] // heads
    assert isinstance(context.memory, UnpaddedSide)
    for n, length in enumerate(context.memory.lengths.tolist()):
        queries = slice(*context.queries.offsets[n : n + 2].tolist())
        first, last = context.memory.offsets[n : n + 2].tolist()
        for head in range(heads):
            columns = slice(head * width, (head + 1) * width)
            q, k, v = query[queries, columns], key[first:last, columns], value[first:last, columns]
            scores = q.double() @ k.double().t() / math.sqrt(width)
            position = torch.arange(last - first)
            is_hidden = position >= length
            if context.is_causal:
                is_hidden = position > position[:, None]
            weights = torch.softmax(scores.masked_fill(is_hidden, -math.inf), 1)
            result[queries, columns] = weights @ v.double()
    return result


def with_gradients(
    attend: object, inputs: list[Tensor], context: RowContext, heads: int, upstream: Tensor
) -> list[Tensor]:
    assert callable(attend)
    result = attend(*inputs, context, heads)
    return [result.detach(), *torch.autograd.grad(result, inputs, upstream.to(result.dtype))]


def in_float64(inputs: list[Tensor]) -> list[Tensor]:
    return [x.detach().double().requires_grad_() for x in inputs]


@pytest.mark.parametrize(("heads", "width"), [(1, 16), (2, 48), (4, 64)], ids=str)
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize(
    ("targets", "sources"),
    [([1], [1]), ([7, 33, 1, 64, 17], [4, 2, 40, 9, 50]), ([3, 130], [5, 16])],
    ids=str,
)
def test_it_is_the_equation(
    heads: int,
    width: int,
    is_causal: bool,
    targets: list[int],
    sources: list[int],
    dtype: torch.dtype,
) -> None:
    torch.manual_seed(1)
    queries = sentences(targets, padding=3)
    memory = queries if is_causal else sentences(sources, padding=5)
    context = RowContext(queries=queries, memory=memory, is_causal=is_causal)
    tokens = [int(each.offsets[-1]) for each in (queries, memory, memory)]
    inputs = [random_activations(dtype, count, heads * width) for count in tokens]
    upstream = torch.randn(tokens[0], heads * width).to(dtype)
    found = with_gradients(attend_unpadded, inputs, context, heads, upstream)
    exact = with_gradients(by_equation, in_float64(inputs), context, heads, upstream)
    for mine, right in zip(found, exact, strict=True):
        assert mine.dtype == dtype
        assert_rounded(mine, right)


def test_no_sentences_have_an_empty_result(dtype: torch.dtype) -> None:
    nothing = sentences([])
    inputs = [random_activations(dtype, 0, 16) for _ in range(3)]
    context = RowContext(queries=nothing, memory=nothing)
    for found in with_gradients(attend_unpadded, inputs, context, 1, torch.ones(0, 16)):
        assert found.shape == (0, 16)


def test_a_sentence_that_sees_nothing_gets_zeros(dtype: torch.dtype) -> None:
    context = RowContext(queries=sentences([2]), memory=sentences([0], padding=3))
    inputs = [
        random_activations(dtype, 2, 16),
        random_activations(dtype, 3, 16),
        random_activations(dtype, 3, 16),
    ]
    for found in with_gradients(attend_unpadded, inputs, context, 1, torch.ones(2, 16)):
        assert not found.any()


def test_what_is_no_number_stays_none(dtype: torch.dtype) -> None:
    context = RowContext(queries=sentences([4]), memory=sentences([5]))
    query, key, value = (
        random_activations(dtype, 4, 16),
        random_activations(dtype, 5, 16),
        random_activations(dtype, 5, 16),
    )
    key.data[3, 2] = math.nan
    assert attend_unpadded(query, key, value, context, 1).isnan().all()


def test_two_threads_compute_at_once(dtype: torch.dtype) -> None:
    context = RowContext(queries=sentences([20, 30]), memory=sentences([25, 10]))
    inputs = [
        random_activations(dtype, 50, 64),
        random_activations(dtype, 35, 64),
        random_activations(dtype, 35, 64),
    ]
    upstream = torch.randn(50, 64).to(dtype)

    def compute(_: int) -> list[Tensor]:
        return with_gradients(attend_unpadded, inputs, context, 2, upstream)

    expected = compute(0)
    with ThreadPoolExecutor(2) as pool:
        for found in pool.map(compute, range(200)):
            assert all(map(torch.equal, found, expected))
