"""The positional encoding of section 3.5 as a picture: the waves of all dimensions."""

from pathlib import Path

from nmt.errors import ConfigError
from nmt.model.positional_encoding import sinusoids
from nmt.report.figure import COLUMN_WIDTH, drawing, save_figure


def plot_positions(length: int, d_model: int, output: Path) -> list[Path]:
    """Draw PE(pos, i) for `length` positions and all dimensions i; write a PNG and an SVG.

    Raises:
        ConfigError: an odd `d_model`: sine and cosine come in pairs.
        MissingExtraError: matplotlib is not installed.
    """
    if d_model % 2:
        raise ConfigError(f"--d-model {d_model}: expected an even number, each sine has its cosine")
    table = sinusoids(length, d_model).numpy()  # (length, D)
    with drawing(COLUMN_WIDTH, 2.4) as figure:
        panels = figure.subplots(1, 2, sharey=True)
        for panel, first, name in zip(
            panels, (0, 1), ("sine, i even", "cosine, i odd"), strict=True
        ):
            image = panel.imshow(
                table[:, first::2],
                cmap="RdBu_r",
                vmin=-1,
                vmax=1,
                aspect="auto",
                origin="lower",
                interpolation="nearest",
                extent=(0, d_model, -0.5, length - 0.5),
            )
            panel.set_title(name)
            panel.set_xlabel("dimension i")
            panel.locator_params(axis="x", nbins=4, integer=True)
            panel.spines[:].set_visible(True)
        panels[0].set_ylabel("position")
        figure.colorbar(image, ax=panels, label="PE(position, i)", ticks=[-1, -0.5, 0, 0.5, 1])
        return save_figure(figure, output)
