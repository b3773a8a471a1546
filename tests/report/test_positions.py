"""The picture of the positional encoding."""

from pathlib import Path

import pytest

from nmt.errors import ConfigError
from nmt.report.positions import plot_positions


def test_the_axes_say_what_they_show(tmp_path: Path) -> None:
    png, svg = plot_positions(12, 6, tmp_path / "positions")
    text = svg.read_text("utf-8")
    assert all(f"<!-- {label}" in text for label in ("position", "dimension", "PE(position"))
    assert png.stat().st_size > 1000


def test_an_odd_number_of_dimensions_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--d-model 7: expected an even number"):
        plot_positions(12, 7, tmp_path / "positions")
    assert not list(tmp_path.iterdir())
