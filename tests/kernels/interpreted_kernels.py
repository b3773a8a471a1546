"""Compares the kernels for a GPU with PyTorch, in the interpreter of Triton."""

import torch

from nmt.kernels import sentence_kernels
from tests.kernels.test_packed_attention import backward, forward


def main() -> None:
    """Compare result and gradients of self- and cross-attention."""
    generator = torch.Generator().manual_seed(1)

    for queries, keys, is_causal, width in (
        ([5, 1, 17], [3, 20, 7], False, 16),
        ([40, 1, 31], [40, 1, 31], True, 16),
        ([3, 0, 2, 0], [4, 1, 1, 0], False, 16),  # sentences that fill a batch
        ([5, 1, 17], [3, 20, 7], False, 24),  # no power of two
    ):
        rows = sum(queries), sum(keys), sum(keys), sum(queries)
        draws = [torch.randn(count, 3, width, generator=generator) for count in rows]
        query, key, value, gradient = draws
        offsets = [torch.tensor([0, *each]).cumsum(0).int() for each in (queries, keys)]
        rest = offsets, (max(queries), max(keys)), is_causal
        inputs = query, key, value
        found = sentence_kernels.forward(inputs, *rest)
        gradients = sentence_kernels.backward(gradient, inputs, *rest)
        torch.testing.assert_close(found, forward(inputs, *rest), rtol=1e-4, atol=1e-5)
        expected = backward(gradient, inputs, *rest)
        torch.testing.assert_close(gradients, expected, rtol=1e-4, atol=1e-5)


if __name__ == "__main__":
    main()
