"""Functions of one's own that a training calls: its objective, and what follows some moments."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from nmt.data.tokens.batch import Batch
from nmt.model.transformer import Transformer
from nmt.training.loss import Loss

OwnObjective = Callable[[Transformer, Batch], Loss]
"""returns the loss of a batch in rows, computed by the model"""


@dataclass(frozen=True, kw_only=True)
class Callbacks:
    """What `nmt.train` calls; None: nothing. Of several processes, each calls all of them.

    The model that the moments get is in eval mode. Gradients that they leave in it are dropped, and
    no random number that they draw changes the training; what else they change, stays changed.
    """

    objective: OwnObjective | None = None
    """takes the model and a `Batch`, returns the `Loss` to minimise, in place of the label-smoothed
    cross-entropy. A step is computed in parts, on a CPU by several threads at the same time, so it
    is called for each part, and its sums over the target tokens are divided by those of the whole
    step. Dropout is a function of seed and step; random numbers that it draws itself by PyTorch are
    so with training.threads: 1, or on a GPU. Validation stays as it is."""
    after_step: Callable[[int, Transformer, Tensor], object] | None = None
    """gets the number of the step that was taken, the model after it, and the loss per target
    token, a scalar on the device: a GPU has to be waited for before it can be read"""
    after_validation: Callable[[int, Transformer, Mapping[str, float]], object] | None = None
    """gets the step, the model and the figures: loss, and bleu or chrf, as in metrics.jsonl"""
    after_save: Callable[[int, Path], object] | None = None
    """gets the step and the folder of a checkpoint, when it is on the disk: that may be some steps
    later"""

    @property
    def objective_name(self) -> str:
        """The name of the objective in its module, which the run keeps; "": none.

        That of a `functools.partial` has its arguments, so that a table tells their values apart.
        """
        return "" if self.objective is None else _name_of(self.objective)


def _name_of(function: Callable[..., Any]) -> str:
    if not isinstance(function, functools.partial):
        return str(getattr(function, "__qualname__", type(function).__qualname__))
    given = [*function.args, *(f"{key}={value}" for key, value in function.keywords.items())]
    return f"{_name_of(function.func)}({', '.join(map(str, given))})"
