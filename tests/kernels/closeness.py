"""How close the results of the library are to the exact ones."""

import torch
from torch import Tensor

ROUNDING = {torch.bfloat16: 2.0**-8, torch.float32: 2.0**-24}
"""half the distance of two numbers of a type, beside the number"""
TOLERANCE = {torch.bfloat16: 1.01 * 2.0**-8, torch.float32: 1e-5}
"""relative error of a result: it is rounded once, and is a sum in float32"""


def assert_rounded(found: Tensor, exact: Tensor) -> None:
    """`found` is `exact` (float64) rounded once; sums in float32 may move it a little.

    Numbers near zero are differences of larger ones, and as exact as these.
    """
    size = exact.abs().mean().item() if exact.numel() else 0.0
    rtol, atol = TOLERANCE[found.dtype], min(TOLERANCE[found.dtype], 1e-4) * size
    torch.testing.assert_close(found.double(), exact, rtol=rtol, atol=atol)


def random_activations(dtype: torch.dtype, *shape: int) -> Tensor:
    return torch.randn(shape).to(dtype).requires_grad_()


def whole_numbers(*shape: int) -> Tensor:
    """Random numbers, sums of whose products are exact until they are rounded."""
    return torch.randint(-2, 3, shape).float()
