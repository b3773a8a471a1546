"""Section 5.3: the learning rate as a pure function of the step, which counts from 1."""

import math

from nmt.recipe.config import Config, TrainingConfig

ONE_CYCLE_START, ONE_CYCLE_END = 1 / 25, 1e-4 / 25
"""first and last learning rate as fractions of the peak, PyTorch's defaults for this policy"""


def inverse_square_root(step: int, peak: float, warmup_steps: int) -> float:
    """Return the learning rate: a linear warm-up to `peak`, then a decay with 1 / sqrt(step).

    With peak = d_model^-0.5 * warmup_steps^-0.5 this is the schedule of the paper (Eq. 3):
    lrate = d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5)
    """
    return peak * warmup_steps**0.5 * min(step**-0.5, step * warmup_steps**-1.5)


def constant(step: int, peak: float, warmup_steps: int) -> float:
    """Return the learning rate: a linear warm-up to `peak`, then `peak` for all later steps."""
    return peak * min(1.0, step / warmup_steps)


def linear(step: int, peak: float, warmup_steps: int, max_steps: int) -> float:
    """Return the learning rate: linear warm-up to `peak`, then a line to 0 at `max_steps` + 1."""
    return peak * min(step / warmup_steps, _remaining(step, warmup_steps, max_steps))


def cosine(step: int, peak: float, warmup_steps: int, max_steps: int) -> float:
    """Return the learning rate: linear warm-up to `peak`, half a cosine to 0 at `max_steps` + 1."""
    if step < warmup_steps:
        return peak * step / warmup_steps
    return peak * _half_cosine(_remaining(step, warmup_steps, max_steps))


def one_cycle(step: int, peak: float, warmup_steps: int, max_steps: int) -> float:
    """Return the learning rate: half a cosine from peak / 25 to `peak`, then one to almost 0.

    This is the policy of Smith and Topin (arXiv 1708.07120), with cosines as in PyTorch.
    """
    if step < warmup_steps:
        rise = _half_cosine(step / warmup_steps)
        return peak * (ONE_CYCLE_START + (1 - ONE_CYCLE_START) * rise)
    left = _half_cosine(_remaining(step, warmup_steps, max_steps))
    return peak * (ONE_CYCLE_END + (1 - ONE_CYCLE_END) * left)


def cooldown(step: int, cooldown_steps: int, max_steps: int) -> float:
    """Return a factor for the rate: 1, then a line to 0 over the last `cooldown_steps` steps."""
    if cooldown_steps == 0:
        return 1.0
    return min(1.0, max(0.0, max_steps + 1 - step) / (cooldown_steps + 1))


def learning_rate(step: int, config: Config) -> float:
    """Return the learning rate of a step (from 1) for the schedule in the recipe.

    A new schedule needs a function above, a case here and its name in the configuration
    (`TrainingConfig.schedule`).
    """
    training = config.training
    warmup, max_steps = training.warmup_steps, training.max_steps
    peak = training.peak_learning_rate
    if peak is None:  # that of the paper (Eq. 3): d_model^-0.5 * warmup_steps^-0.5
        peak = (config.model.d_model * warmup) ** -0.5
    match training.schedule:
        case "inverse_square_root":
            rate = inverse_square_root(step, peak, warmup)
        case "constant" | "warmup_stable_decay":
            rate = constant(step, peak, warmup)
        case "linear":
            rate = linear(step, peak, warmup, max_steps)
        case "cosine":
            rate = cosine(step, peak, warmup, max_steps)
        case "one_cycle":
            rate = one_cycle(step, peak, warmup, max_steps)
    return rate * cooldown(step, _cooldown_steps(training), max_steps)


def steps_before_cooldown(training: TrainingConfig) -> int:
    """Return how many first steps have a learning rate that does not depend on `max_steps`.

    It is 0 for schedules whose whole course depends on it.
    """
    if training.schedule in ("linear", "cosine", "one_cycle"):
        return 0
    return training.max_steps - _cooldown_steps(training)


def _cooldown_steps(training: TrainingConfig) -> int:
    """Return `training.cooldown_steps`, or the default of a schedule that always has some."""
    if training.schedule == "warmup_stable_decay" and training.cooldown_steps == 0:
        # it does not begin before the warm-up has ended
        return min(training.max_steps // 5, max(0, training.max_steps - training.warmup_steps))
    return training.cooldown_steps


def describe_endless_warmup(training: TrainingConfig) -> str | None:
    """Return a sentence if the warm-up does not end before the training; None if it does."""
    if training.warmup_steps < training.max_steps:
        return None
    return (
        f"warmup_steps ({training.warmup_steps:,}) are not fewer than max_steps "
        f"({training.max_steps:,}), so the learning rate only rises"
    )


def _remaining(step: int, warmup_steps: int, max_steps: int) -> float:
    """Return a line from 1 at the end of the warm-up, and before, to 0 at `max_steps` + 1."""
    decay_steps = max(1, max_steps + 1 - warmup_steps)
    steps_left = max(0, max_steps + 1 - step)
    return min(1.0, steps_left / decay_steps)


def _half_cosine(x: float) -> float:
    """Return a curve from 0 at x = 0 to 1 at x = 1, flat at both ends."""
    return (1 - math.cos(math.pi * x)) / 2
