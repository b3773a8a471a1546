"""Durations in words."""

import pytest

from nmt.report.duration import duration


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (59.4, "59 s"),
        (59.6, "1.0 min"),
        (90, "1.5 min"),
        (599.9, "10 min"),
        (3570, "1 h 00 min"),
        (5400, "1 h 30 min"),
        (180_000, "2 d 2 h"),
    ],
)
def test_two_figures_at_most(seconds: float, words: str) -> None:
    assert duration(seconds) == words
