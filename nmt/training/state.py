"""The state of a run: everything that training changes, and how a checkpoint brings it back."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from nmt.errors import CheckpointError
from nmt.files import check_format
from nmt.run.adapter import AdapterOrigin
from nmt.run.checkpoint import load_into, load_state, load_with_metadata
from nmt.run.model import LoadedModel
from nmt.training.divergence import DivergenceDetector
from nmt.training.gradients import GradientComputer
from nmt.training.monitor import Monitor
from nmt.training.optimizer import MovingAverage, build_optimizers
from nmt.training.retention import Ranking, ranking_size

FORMAT = 1
"""version of what `RunState.state` returns; a state without a version has format 1"""
_REQUIRED_KEYS = {"optimizers", "ranking", "shares", "micro_batches"}
"""keys that states of the oldest versions, which had no format, lack"""


class RunState:
    """The number of the last step, the optimizers, the moving average, the ranking and counters.

    A step depends on the weights, on this state and on its own number: its pairs, its dropout masks
    and the segmentations of `tokenizer.sampling` are functions of (seed, step). So a run that is
    resumed from a saved state takes exactly the steps of an uninterrupted run.
    """

    def __init__(
        self,
        loaded: LoadedModel,
        precision: str,
        gradient_computer: GradientComputer,
        monitor: Monitor,
    ) -> None:
        """Start at step 0; this state includes those of `gradient_computer` and `monitor`."""
        training = loaded.config.training
        self.step = 0
        """the number of the last step, from 1; 0 before the first step"""
        self.validation_due = False
        """whether the weights of `step` still have to be validated"""
        self.roll_backs = 0
        """how often the run has returned to an earlier checkpoint"""
        self.optimizers = build_optimizers(loaded.model, training, precision)
        decay = training.moving_average
        self.moving_average = MovingAverage(loaded.model, decay) if decay else None
        self.ranking = Ranking(ranking_size(training), training.validation_metric)
        device = next(loaded.model.parameters()).device
        self.divergence = DivergenceDetector(device, training.largest_spike)
        self.largest_norm = torch.zeros((), device=device)
        """the largest norm of a gradient so far, before clipping: scalar"""
        self._loaded = loaded
        self._gradient_computer, self._monitor = gradient_computer, monitor

    def state(self) -> dict[str, Any]:
        """Return what a resumed run needs beside the weights, as the checkpoint stores it.

        It has plain types and tensors only. All processes of a group must call this together.
        """
        return {
            "format": FORMAT,
            "step": self.step,
            **self.large_tensors(),
            "ranking": self.ranking.state(),
            "monitor": self._monitor.state(),
            "usual_loss": self.divergence.running_loss,  # the running mean
            "largest_norm": self.largest_norm.item(),
            "roll_backs": self.roll_backs,
            "validation_due": self.validation_due,
            **self._gradient_computer.state(),
        }

    def large_tensors(self) -> dict[str, Any]:
        """Return the large entries of `state()`: moments of the optimizers and moving average."""
        return {
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "moving_average": self.moving_average.weights if self.moving_average else None,
        }

    def load(self, path: Path) -> None:
        """Continue from the checkpoint `path` of an earlier session: its weights and its `state()`.

        Raises:
            CheckpointError: the checkpoint is damaged, has weights of another model, or was written
                by another version of nmt; or the adapter in it belongs to another parent.
        """
        saved = load_state(path)
        _check_version(saved, path)
        weights, metadata = load_with_metadata(path)
        loaded = self._loaded
        if loaded.config.training.lora:  # the adapter belongs to the weights of one parent
            parent = AdapterOrigin.read(loaded.metadata, loaded.path).parent
            AdapterOrigin.read(metadata, path).check_parent(parent, path)
        load_into(loaded.model, weights, path)
        self.load_state(saved)

    def load_state(self, saved: Mapping[str, Any]) -> None:
        """Continue from a `state()`; the weights are those that belong to it."""
        self.step = saved["step"]
        for optimizer, moments in zip(self.optimizers, saved["optimizers"], strict=True):
            optimizer.load_state_dict(moments)
        if self.moving_average:
            self.moving_average.load(saved["moving_average"])
        self.ranking.load_state(saved["ranking"])
        self._monitor.load_state(saved["monitor"])
        self.divergence.reset(saved["usual_loss"])
        self.largest_norm.fill_(saved.get("largest_norm", math.inf))  # older states lack it
        self.roll_backs = saved["roll_backs"]
        self.validation_due = saved["validation_due"]
        self._gradient_computer.load_state(saved)


def _check_version(saved: Mapping[str, Any], path: Path) -> None:
    """Check that this version can continue from the training state of the checkpoint `path`.

    Raises:
        CheckpointError: a newer version of nmt wrote it, or one that is too old.
    """
    check_format(saved, FORMAT, path, "choose another `run_dir`", CheckpointError)
    if not _REQUIRED_KEYS.issubset(saved):
        raise CheckpointError(
            f"{path}: its training state is of an earlier version of nmt; "
            "continue the run with that version, or choose another `run_dir`"
        )
