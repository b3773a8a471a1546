"""Durations, large numbers and long texts."""

import pytest

from nmt.report.text_format import duration, short_number, truncate


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
def test_durations_have_at_most_two_numbers(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_large_numbers_have_a_unit() -> None:
    written = [short_number(number) for number in (999_999, 213_000_000, 4.5e9)]
    assert written == ["999,999", "213.00 M", "4.50 G"]


def test_a_long_text_ends_with_an_ellipsis() -> None:
    assert (truncate("abc", 3), truncate("abcd", 3)) == ("abc", "ab…")
