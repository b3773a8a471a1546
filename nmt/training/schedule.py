"""Section 5.3: the learning rate as a pure function of the step."""

from nmt.config import Config


def inverse_square_root(step: int, peak: float, warmup_steps: int) -> float:
    """Linear warm-up to `peak`, then decay with the inverse square root of the step, from 1.

    lrate = d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5)    (Eq. 3)

    is this function with peak = d_model^-0.5 * warmup_steps^-0.5.
    """
    return peak * warmup_steps**0.5 * min(step**-0.5, step * warmup_steps**-1.5)


def learning_rate(step: int, config: Config) -> float:
    """The learning rate of optimiser step `step`, counted from 1."""
    warmup = config.training.warmup_steps
    peak = config.training.peak_learning_rate or (config.model.d_model * warmup) ** -0.5
    return inverse_square_root(step, peak, warmup)
