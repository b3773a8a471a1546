"""Section 5.3: Adam, over the sum of a step's gradients divided by its tokens."""

from collections.abc import Iterable

import torch
from torch import nn

from nmt.config import TrainingConfig


def make_optimizer(parameters: Iterable[nn.Parameter], config: TrainingConfig) -> torch.optim.Adam:
    """Adam with the configured betas and epsilon; weight decay, if any, is decoupled."""
    return torch.optim.Adam(
        parameters,
        lr=0.0,
        betas=(config.adam_beta1, config.adam_beta2),
        eps=config.adam_epsilon,
        weight_decay=config.weight_decay,
        decoupled_weight_decay=True,
        fused=True,
    )


def update(
    optimizer: torch.optim.Adam, tokens: int, learning_rate: float, clip_norm: float | None
) -> None:
    """One optimiser step from gradients that are sums over `tokens` target tokens."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    gradients = [p.grad for p in parameters if p.grad is not None]
    torch._foreach_mul_(gradients, 1 / tokens)
    if clip_norm is not None:
        torch.nn.utils.clip_grad_norm_(parameters, clip_norm)
    for group in optimizer.param_groups:
        group["lr"] = learning_rate
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
