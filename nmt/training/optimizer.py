"""Section 5.3: Adam, over the sum of a step's gradients divided by its tokens; or Muon with it."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from nmt.config import TrainingConfig
from nmt.training.muon import Muon


def build_optimizers(
    model: nn.Module, config: TrainingConfig, precision: str
) -> list[torch.optim.Optimizer]:
    """Return Adam for all weights; or Muon for the linear maps and Adam for all other weights.

    The other weights are embeddings (with the output projection), norms and biases. Weight decay
    is decoupled.
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
    """Take one optimiser step; the gradients are `divisor` times those of the mean loss.

    If `rejected` (scalar float32) is 1, weights and moments stay as they are. The device itself
    reads it, so Python need not wait for a GPU.
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
