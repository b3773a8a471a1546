"""How close numbers in bfloat16 are to the exact ones."""

import torch
from torch import Tensor

ROUNDING = 2.0**-8  # half the distance of two numbers in bfloat16, beside the number


def assert_rounded(found: Tensor, exact: Tensor) -> None:
    """In bfloat16, `found` is `exact` (float64) rounded once; sums in float32 may move it a little.

    Numbers near zero are differences of larger ones, and as exact as these.
    """
    assert found.dtype == torch.bfloat16
    size = exact.abs().mean().item() if exact.numel() else 0.0
    torch.testing.assert_close(found.double(), exact, rtol=1.01 * ROUNDING, atol=1e-4 * size)


def random_bf16(*shape: int) -> Tensor:
    return torch.randn(shape).bfloat16().requires_grad_()
