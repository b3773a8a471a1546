"""A machine whose speed is known, for tests that plan with it."""

from nmt.planning.probe import Speed


def constant_speed(step_seconds: float) -> Speed:
    """What a probe would have measured on a CPU that takes `step_seconds` for any step."""
    return Speed(
        device="cpu",
        precision="fp32",
        threads=2,
        step_seconds=step_seconds,
        target_tokens=4000 / step_seconds,
        steps=10,
        step_tokens=4096,
        waiting=0.0,
        greedy_seconds=1.0,
        forward_seconds=0.2,
        peak_bytes=0,
    )
