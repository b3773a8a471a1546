"""What a run takes on disk: bytes."""

import math
from dataclasses import dataclass

from nmt.config import Config
from nmt.model.transformer import Transformer
from nmt.training.retention import ranking_size
from nmt.training.step_memory import FP32, optimizer_bytes, parameter_count


@dataclass(frozen=True)
class Disk:
    """Bytes that a run takes on disk."""

    checkpoint: int
    """weights, and what a resumed run needs beside them"""
    checkpoints: int
    """how many there are at most at once, the one that is being written included"""
    finished: int
    """weights without training state: the average, and the moving average"""

    @property
    def total(self) -> int:
        """All of them at once."""
        return self.checkpoint * self.checkpoints + self.finished


def disk_space(config: Config, model: Transformer) -> Disk:
    """What is kept, at worst: the last, the best and those to average are all different ones."""
    training, weights = config.training, FP32 * parameter_count(model)
    ranked = ranking_size(training)
    regular = 0 if training.average == "best" else training.average_checkpoints
    kept = ranked + max(regular, training.keep_last)
    steps, both = training.max_steps, math.lcm(training.checkpoint_every, training.validate_every)
    possible = steps // training.checkpoint_every + steps // training.validate_every - steps // both
    return Disk(
        checkpoint=weights + optimizer_bytes(config, model),
        checkpoints=min(kept, max(1, possible)) + 1,
        finished=weights * (2 if training.moving_average else 1),
    )
