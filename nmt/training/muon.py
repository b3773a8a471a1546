"""Muon: momentum made orthogonal, for the matrices inside the layers.

Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024.
"""

from collections import defaultdict
from collections.abc import Iterable

import torch
from torch import Tensor

# a, b and c of x -> a x + b x^3 + c x^5, which moves singular values towards 1
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
ITERATIONS = 5
EPSILON = 1e-7


def orthogonalize(matrices: Tensor) -> Tensor:
    """Return nearly U V^T for N matrices U S V^T (their singular value decompositions).

    Shapes are (N, A, B) -> (N, A, B). Newton-Schulz iterations move all singular values between
    0.7 and 1.2, so all directions of an update have about the same length.
    """
    a, b, c = COEFFICIENTS
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.transpose(1, 2) if tall else matrices
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp_min(EPSILON)  # no singular value above 1
    for _ in range(ITERATIONS):
        square = x @ x.transpose(1, 2)
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return x.transpose(1, 2) if tall else x


class Muon(torch.optim.Optimizer):
    """W <- W - lr * 0.2 sqrt(max(A, B)) * orthogonalize(Nesterov momentum), for matrices (A, B).

    The factor gives an update the size of an update by Adam (Liu et al., 2025, arXiv 2502.16982),
    so that one learning rate suits both. Matrices of the same shape are orthogonalised together,
    because a few large products are faster than many small ones.
    """

    def __init__(self, matrices: Iterable[Tensor], weight_decay: float, dtype: torch.dtype) -> None:
        """`dtype` is the type of the Newton-Schulz iterations; bfloat16 is precise enough.

        The learning rate is 0 until `update_weights` sets it in the parameter group.
        """
        super().__init__(matrices, {"lr": 0.0, "momentum": 0.95, "weight_decay": weight_decay})
        self._dtype = dtype
        self.found_inf: Tensor | None = None
        """scalar; if it is 1, a step changes nothing, as in the fused optimizers of PyTorch"""

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update every matrix that has a gradient, and its momentum, unless `found_inf` is 1."""
        (group,) = self.param_groups
        same_shape: dict[torch.Size, list[Tensor]] = defaultdict(list)
        for matrix in group["params"]:
            if matrix.grad is not None:
                same_shape[matrix.shape].append(matrix)
                if not self.state[matrix]:
                    self.state[matrix]["momentum"] = torch.zeros_like(matrix)
        for matrices in same_shape.values():
            self._update(matrices, group)

    def _update(self, matrices: list[Tensor], group: dict[str, float]) -> None:
        gradients = [matrix.grad for matrix in matrices if matrix.grad is not None]
        momenta = [self.state[matrix]["momentum"] for matrix in matrices]
        changed = [*momenta, *matrices]
        before = [] if self.found_inf is None else [tensor.clone() for tensor in changed]
        torch._foreach_lerp_(momenta, gradients, 1 - group["momentum"])
        ahead = torch._foreach_lerp(gradients, momenta, group["momentum"])
        directions = orthogonalize(torch.stack(ahead).to(self._dtype)).to(matrices[0].dtype)
        if group["weight_decay"]:
            torch._foreach_mul_(matrices, 1 - group["lr"] * group["weight_decay"])
        scale = 0.2 * max(matrices[0].shape) ** 0.5
        torch._foreach_add_(matrices, list(directions.unbind()), alpha=-group["lr"] * scale)
        if self.found_inf is not None:
            for tensor, old in zip(changed, before, strict=True):
                tensor.copy_(torch.where(self.found_inf > 0, old, tensor))
