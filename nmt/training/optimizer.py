"""Section 5.3: Adam, or Muon for the linear maps and Adam for the rest.

Also the moving average of the weights, if the recipe sets one.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from nmt.config import TrainingConfig
from nmt.training.muon import Muon


def build_optimizers(
    model: nn.Module, config: TrainingConfig, precision: str
) -> list[torch.optim.Optimizer]:
    """Return [Adam] for all weights, or [Muon, Adam] if the recipe's optimizer is muon.

    Muon gets the matrices of the linear maps, Adam the embeddings (with the output projection),
    norms and biases. Weight decay is decoupled; `update_weights` sets the learning rate.
    """
    optimizers: list[torch.optim.Optimizer] = []
    rest = list(model.parameters())
    if config.optimizer == "muon":
        matrices = [m.weight for m in model.modules() if isinstance(m, nn.Linear)]
        dtype = torch.bfloat16 if precision == "bf16" else torch.float32
        optimizers.append(Muon(matrices, config.weight_decay, dtype))
        in_muon = set(map(id, matrices))
        rest = [parameter for parameter in rest if id(parameter) not in in_muon]
    adam = torch.optim.Adam(
        rest,
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

    First they are divided by `divisor`, which makes them those of the mean loss per target token,
    and clipped to the L2 norm `clip_norm`. If `rejected` (scalar float32) is 1, weights and moments
    do not change. The device itself reads it, so Python need not wait for a GPU.
    """
    groups = [group for optimizer in optimizers for group in optimizer.param_groups]
    parameters: list[Tensor] = [parameter for group in groups for parameter in group["params"]]
    gradients = [p.grad for p in parameters if p.grad is not None]
    torch._foreach_mul_(gradients, 1 / divisor)
    if clip_norm is not None:
        torch.nn.utils.clip_grad_norm_(parameters, clip_norm)
    for group in groups:
        group["lr"] = learning_rate
    for optimizer in optimizers:
        # the fused optimizers of PyTorch, and Muon, skip a step if this attribute is 1
        optimizer.found_inf = rejected  # type: ignore[attr-defined]
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


class MovingAverage:
    """An exponential moving average of the weights, used in place of an average of checkpoints.

    After every step: average <- d * average + (1 - d) * weights. d is `decay`, but at step t at
    most (1 + t) / (10 + t), so that the random initial weights soon have no influence.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self._parameters = dict(model.named_parameters())
        self._decay = decay
        self.weights = {name: p.detach().clone() for name, p in self._parameters.items()}
        """the average of each parameter by its name, on the device of the model"""

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Add the weights of the model after step `step` (from 1) to the average, in place."""
        decay = min(self._decay, (1 + step) / (10 + step))
        torch._foreach_lerp_(
            list(self.weights.values()), list(self._parameters.values()), 1 - decay
        )

    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Copy the `weights` of an earlier session's average into this one, by name."""
        for name, weight in self.weights.items():
            weight.copy_(weights[name])
