"""Section 5.3: Adam, or Muon for the linear maps; also a moving average of the weights."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor, nn

from nmt.recipe.config import TrainingConfig
from nmt.run.checkpoint import trained_parameters

# a, b and c of x -> a x + b x^3 + c x^5, which moves singular values towards 1
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
ITERATIONS = 5
EPSILON = 1e-7  # so that a matrix of zeros is not divided by 0


def build_optimizers(
    model: nn.Module, config: TrainingConfig, precision: str
) -> list[torch.optim.Optimizer]:
    """Return [Adam] for all weights, or [Muon, Adam] if the recipe's optimizer is muon.

    Muon gets the matrices of the linear maps, Adam the embeddings (with the output projection),
    norms and biases. If `precision` is bf16, Muon orthogonalises in bfloat16. Weight decay is
    decoupled. The learning rate is 0 until `update_weights` sets it.
    """
    optimizers: list[torch.optim.Optimizer] = []
    for_adam: list[nn.Parameter] = list(trained_parameters(model).values())
    if config.optimizer == "muon":
        matrices = [module.weight for module in model.modules() if isinstance(module, nn.Linear)]
        dtype = torch.bfloat16 if precision == "bf16" else torch.float32
        optimizers.append(Muon(matrices, config.weight_decay, dtype))
        in_muon = set(map(id, matrices))
        for_adam = [parameter for parameter in for_adam if id(parameter) not in in_muon]
    adam = torch.optim.Adam(
        for_adam,
        lr=0.0,
        betas=(config.adam_beta1, config.adam_beta2),
        eps=config.adam_epsilon,
        weight_decay=config.weight_decay,
        decoupled_weight_decay=True,
        fused=True,
    )
    return [*optimizers, adam]


def update_weights(
    optimizers: Sequence[torch.optim.Optimizer],
    divisor: float,
    learning_rate: float,
    clip_norm: float | None,
    rejected: Tensor | None = None,
) -> None:
    """Take one optimiser step with the gradients in `Parameter.grad`, and delete them.

    First the gradients are divided by `divisor`, which turns a sum over target tokens into a mean.
    Then they are clipped to the L2 norm `clip_norm` (None: not clipped). If `rejected` (scalar
    float32) is 1, weights and moments do not change. The device reads it, so that Python need not
    wait for it.
    """
    groups = [group for optimizer in optimizers for group in optimizer.param_groups]
    parameters: list[Tensor] = [parameter for group in groups for parameter in group["params"]]
    gradients = [p.grad for p in parameters if p.grad is not None]
    # operations on lists of tensors have no public names
    torch._foreach_mul_(gradients, 1 / divisor)
    if clip_norm is not None:
        torch.nn.utils.clip_grad_norm_(parameters, clip_norm)
    for group in groups:
        group["lr"] = learning_rate
    for optimizer in optimizers:
        # the fused optimizers of PyTorch, and Muon, say by this that they skip a step themselves if
        # `found_inf` is 1; for others Python waits here for the device
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            optimizer.found_inf = rejected  # type: ignore[attr-defined]
            optimizer.step()
        elif rejected is None or not rejected:
            optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def orthogonalize(matrices: Tensor) -> Tensor:
    """Return nearly U V^T for N matrices U S V^T (their singular value decompositions).

    Shapes are (N, A, B) -> (N, A, B). Newton-Schulz iterations move all singular values to
    between 0.7 and 1.2, so that an update changes all directions by about the same length.
    """
    a, b, c = COEFFICIENTS
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.transpose(1, 2) if tall else matrices
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp_min(EPSILON)  # no singular value above 1
    for _ in range(ITERATIONS):
        square = x @ x.transpose(1, 2)
        factor = torch.baddbmm(square, square, square, beta=b, alpha=c)  # b X X^T + c (X X^T)^2
        x = torch.baddbmm(x, factor, x, beta=a)
    return x.transpose(1, 2) if tall else x


class Muon(torch.optim.Optimizer):
    """W <- W - lr * 0.2 sqrt(max(A, B)) * orthogonalize(Nesterov momentum), for matrices (A, B).

    The factor gives an update the size of an update by Adam (Liu et al., 2025, arXiv 2502.16982),
    so that one learning rate suits both. Matrices of the same shape are orthogonalised together,
    because a few large products are faster than many small ones.
    """

    def __init__(self, matrices: Iterable[Tensor], weight_decay: float, dtype: torch.dtype) -> None:
        """`dtype` is the type of the Newton-Schulz iterations; bfloat16 is precise enough."""
        super().__init__(matrices, {"lr": 0.0, "momentum": 0.95, "weight_decay": weight_decay})
        self._dtype = dtype
        self._step_supports_amp_scaling = True
        self.found_inf: Tensor | None = None
        """scalar; if it is 1, a step changes nothing, as in the fused optimizers of PyTorch"""

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update every matrix that has a gradient, and its momentum, unless `found_inf` is 1.

        `closure` is not used; the interface of PyTorch asks for it.
        """
        (group,) = self.param_groups  # there is only one
        same_shape: dict[torch.Size, list[Tensor]] = defaultdict(list)
        for matrix in group["params"]:
            if matrix.grad is not None:
                same_shape[matrix.shape].append(matrix)
                if not self.state[matrix]:
                    self.state[matrix]["momentum"] = torch.zeros_like(matrix)
        for matrices in same_shape.values():
            self._update(matrices, group)

    def _update(self, matrices: list[Tensor], group: dict[str, float]) -> None:
        """Update matrices of the same shape, which all have a gradient, and their momenta."""
        gradients = [matrix.grad for matrix in matrices if matrix.grad is not None]
        momenta = [self.state[matrix]["momentum"] for matrix in matrices]
        changed = [*momenta, *matrices]  # restored at the end if the step is rejected
        before = [] if self.found_inf is None else [tensor.clone() for tensor in changed]
        torch._foreach_lerp_(momenta, gradients, 1 - group["momentum"])
        nesterov = torch._foreach_lerp(gradients, momenta, group["momentum"])
        directions = orthogonalize(torch.stack(nesterov).to(self._dtype)).to(matrices[0].dtype)
        if group["weight_decay"]:
            torch._foreach_mul_(matrices, 1 - group["lr"] * group["weight_decay"])
        scale = 0.2 * max(matrices[0].shape) ** 0.5
        torch._foreach_add_(matrices, list(directions.unbind()), alpha=-group["lr"] * scale)
        if self.found_inf is not None:
            for tensor, old in zip(changed, before, strict=True):
                tensor.copy_(torch.where(self.found_inf > 0, old, tensor))


class MovingAverage:
    """An exponential moving average of the weights, one of the candidates for the best weights.

    After every step: average <- d * average + (1 - d) * weights. d is `decay`, but at step t at
    most (1 + t) / (10 + t), so that the random initial weights soon have no influence.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        """Begin with the present weights of `model`; `decay` is that of late steps, below 1."""
        self._parameters = trained_parameters(model)
        self._decay = decay
        self.weights = {name: p.detach().clone() for name, p in self._parameters.items()}
        """the average of each parameter by its name, on the device of the model"""

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Move the average, in place, towards the weights of the model after `step` (from 1)."""
        decay = min(self._decay, (1 + step) / (10 + step))
        averages, weights = tuple(self.weights.values()), tuple(self._parameters.values())
        torch._foreach_lerp_(averages, weights, 1 - decay)

    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Copy the `weights` of an earlier session's average into this one, by name."""
        for name, weight in self.weights.items():
            weight.copy_(weights[name])
