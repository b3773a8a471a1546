"""An exponential moving average of the weights, as smooth as an average of many checkpoints."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn


class MovingAverage:
    """average <- d * average + (1 - d) * weights, after every step.

    d is `decay`, but at step t at most (1 + t) / (10 + t), so that the random initial weights soon
    have no influence.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self._parameters = dict(model.named_parameters())
        self._decay = decay
        self.weights = {name: p.detach().clone() for name, p in self._parameters.items()}
        """the average by the names of the parameters, on the device of the model"""

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Add the weights after `step`, which counts from 1."""
        decay = min(self._decay, (1 + step) / (10 + step))
        torch._foreach_lerp_(
            list(self.weights.values()), list(self._parameters.values()), 1 - decay
        )

    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Continue from the `weights` of an earlier average."""
        for name, weight in self.weights.items():
            weight.copy_(weights[name])
