"""One optimiser step: compute the gradient, check it for divergence, update the weights."""

import math

import torch
from torch import Tensor

from nmt.errors import DivergedError
from nmt.recipe.config import Config
from nmt.training.divergence import PendingCheck, is_synchronous
from nmt.training.gradients import ComputedStep, GradientComputer
from nmt.training.monitor import Monitor
from nmt.training.optimizer import update_weights
from nmt.training.schedule import learning_rate
from nmt.training.state import RunState
from nmt.training.stopping import StopSignals


class Stepper:
    """Takes the steps of a run.

    A GPU is usually still computing a step when `take` returns. Its loss is read when the next
    step has been given to the GPU, so that the GPU never waits for Python. Even so, a divergent
    step does not change the weights: the update reads the result of the check on the device.
    """

    def __init__(
        self,
        config: Config,
        state: RunState,
        gradient_computer: GradientComputer,
        monitor: Monitor,
        signals: StopSignals,
    ) -> None:
        """`signals` may interrupt the computation of a gradient if one process trains alone."""
        self._config, self._state, self._gradient_computer = config, state, gradient_computer
        self._monitor, self._signals = monitor, signals
        self._pending: tuple[ComputedStep, PendingCheck] | None = None
        """the step that the device may still be computing: its loss has not been read yet"""

    def take(self) -> ComputedStep:
        """Take the next step: compute its gradient, check it, update the weights.

        Returns the loss, the gradient norm and the pairs of the step.

        Raises:
            DivergedError: this step or the one before has diverged. `state.step` is the
                number of the divergent step; weights and moments are those before it.
            Interrupted: a stop signal came while the gradient was computed.
        """
        state = self._state
        # with several processes, the others would wait for one that is interrupted
        trains_alone = self._gradient_computer.group.size == 1
        with self._signals.interruptible(trains_alone):
            computed = self._gradient_computer.compute(state.step + 1)
        state.step += 1  # not before: an interrupted step has not been taken
        check = state.divergence.check(computed.loss, computed.tokens, computed.norm)
        if is_synchronous(computed.loss.device):  # read the check before the update
            self._pending = computed, check
            self.synchronize()
            self.update(computed)
        else:
            self.update(computed, check.rejected)
            self.synchronize()  # reads the result of the step before
            self._pending = computed, check
        return computed

    def update(self, computed: ComputedStep, rejected: Tensor | None = None) -> None:
        """Update the weights and their moving average by the gradient in `Parameter.grad`.

        `computed` is the current step. If `rejected` (scalar float32) is 1, weights and
        moments do not change.
        """
        state = self._state
        # `GradientComputer.compute` has summed over the tokens of each process, and the all-reduce
        # has averaged these sums; so the mean over all tokens needs a division by the average
        # tokens of a process
        divisor = computed.tokens / self._gradient_computer.group.size
        rate = learning_rate(state.step, self._config)
        clip_norm = self._config.training.clip_norm
        state.largest_norm = torch.fmax(state.largest_norm, computed.norm.float() / divisor)
        update_weights(state.optimizers, divisor, rate, clip_norm, rejected)
        if state.moving_average:
            state.moving_average.update(state.step)

    def synchronize(self) -> None:
        """Wait for the loss of the last step, check it and count it in the monitor.

        Call this before validating or saving.

        Raises:
            DivergedError: the last step has diverged; `state.step` is then its number.
        """
        if self._pending is None:
            return
        computed, check = self._pending
        self._pending = None
        loss, problem = check.read()
        terms = {name: term.item() for name, term in computed.terms.items()}
        for name, term in terms.items():
            if not problem and not math.isfinite(term):
                problem = f"the term {name} of the loss is {term}"
        if problem:
            self._state.step = computed.step
            pairs = self._gradient_computer.describe_pairs(computed)
            raise DivergedError(f"step {computed.step:,}: {problem} for {pairs}")
        self._monitor.count(loss, computed.tokens, terms)

    def discard_pending(self) -> None:
        """Forget the last step without reading its result, before an earlier state is loaded."""
        self._pending = None
