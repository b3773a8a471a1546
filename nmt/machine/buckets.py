"""Sizes are rounded up to one of a few, because each new size of a product costs time."""

SIZE_BITS = {"cpu": 3, "cuda": 2}
"""binary digits of a batch size that `round_up_to_bucket` keeps, by `device.hardware_kind`: a CPU
compiles kernels for each size, and a GPU records a graph for each"""


def round_up_to_bucket(count: int, bits: int) -> int:
    """Return the smallest number >= `count` of which only the first `bits` binary digits can be 1.

    With bits = 1 these numbers are the powers of two; with bits = 2 they are 1, 2, 3, 4, 6, 8, 12,
    16, 24 and so on.
    """
    step: int = 1 << max(0, count.bit_length() - bits)
    missing = -count % step  # to the next multiple of `step`
    return count + missing
