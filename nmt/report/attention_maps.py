"""Where each head looks (the paper's figures 3 to 5): attention weights over a sentence, drawn."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from nmt.errors import DataError
from nmt.report.figure import drawing, font_families, save_figure

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

    from nmt.model.attention import AttentionRecord
    from nmt.run_directory import Run

Kind = Literal["cross", "encoder", "decoder"]
"""the three uses of attention (section 3.2.3)"""

KIND_TITLES = {
    "cross": "encoder-decoder attention, decoder",
    "encoder": "encoder self-attention,",
    "decoder": "decoder self-attention,",
}
MAX_PIECES = 80
"""with more pieces on a side a figure can no longer be read"""
CELL = 0.125
"""inches: a row or column of a map, high enough for a label"""
START, END = "<s>", "</s>"


@dataclass(frozen=True, slots=True)
class Attended:
    """A sentence and its translation as readable pieces, and how the model read and wrote them."""

    source: list[str]
    target: list[str]
    record: "AttentionRecord"


@dataclass(frozen=True, slots=True)
class AttentionMap:
    """One layer: `weights` (H, T, S); each of the T rows of a head is a distribution over S."""

    title: str
    row_title: str
    column_title: str
    rows: list[str]
    columns: list[str]
    weights: "npt.NDArray[np.float32]"


def readable(piece: str) -> str:
    """A subword piece as a label: word boundaries become spaces; one alone is shown as such."""
    return piece.replace("▁", " ").strip() or "␣"


def attend(run: "Run", sentence: str) -> Attended:
    """Translate `sentence` and record the attention of every layer.

    Raises:
        DataError: an empty sentence, or more pieces on a side than a figure can show.
    """
    import torch

    from nmt.data.tokenizer import BOS, EOS
    from nmt.decoding.beam_search import beam_search
    from nmt.model.attention import AttentionRecord

    read = [readable(piece) for piece in run.tokenizer.source_pieces(sentence)[:-1]]
    if not read:
        raise DataError("the sentence is empty; give some text to translate")
    _refuse_long(read, "sentence")
    device = next(run.model.parameters()).device
    source = torch.tensor(run.tokenizer.encode_source([sentence]), device=device)  # (1, S)
    record = AttentionRecord()
    with torch.inference_mode():
        best = beam_search(run.model, source, run.config.decoding, BOS, EOS)[0][0]
        target_input = torch.tensor([[BOS, *best.tokens]], device=device)  # (1, T)
        run.model(source, target_input, attention=record)
    written = [readable(piece) for piece in run.tokenizer.target_pieces(best.tokens)]
    _refuse_long(written, "translation")
    return Attended(read, written, record)


def _refuse_long(pieces: Sequence[str], what: str) -> None:
    if len(pieces) > MAX_PIECES:
        raise DataError(
            f"the {what} has {len(pieces)} pieces; attention maps are legible up to {MAX_PIECES}, "
            "give a shorter sentence"
        )


def attention_map(attended: Attended, kind: Kind, layer: int | None = None) -> AttentionMap:
    """The map of one layer, counted from 1; None: the last.

    A row of cross- or decoder attention carries the piece that is written there, not the one
    that is read: the query at position t predicts target token t + 1.

    Raises:
        DataError: the model has no such layer.
    """
    record = attended.record
    layers = {"cross": record.cross, "encoder": record.encoder, "decoder": record.decoder}[kind]
    number = len(layers) if layer is None else layer
    if not 1 <= number <= len(layers):
        stack = "encoder" if kind == "encoder" else "decoder"
        raise DataError(f"layer {number}: the {stack} of this model has layers 1 to {len(layers)}")
    source, written = [*attended.source, END], [*attended.target, END]
    row_title, column_title, rows, columns = {
        "cross": ("piece written", "source piece", written, source),
        "encoder": ("source piece", "attends to", source, source),
        "decoder": ("piece written", "earlier piece", written, [START, *attended.target]),
    }[kind]
    weights = layers[number - 1][0].float().cpu().numpy()  # (H, T, S)
    title = f"{KIND_TITLES[kind]} layer {number} of {len(layers)}"
    return AttentionMap(title, row_title, column_title, rows, columns, weights)


def draw_attention(attention: AttentionMap, output: Path) -> list[Path]:
    """Draw the mean over the heads, then each head; write `output`.png and `output`.svg.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    heads, height, width = attention.weights.shape
    across = math.ceil(math.sqrt(heads + 1))
    down = math.ceil((heads + 1) / across)
    size = (across * max(1.0, width * CELL) + 2.0, down * (max(1.0, height * CELL) + 0.3) + 1.2)
    with drawing(*size) as figure:
        families = font_families("".join(attention.rows + attention.columns))
        panels = figure.subplots(down, across, squeeze=False)
        names = ["mean of the heads", *(f"head {n}" for n in range(1, heads + 1))]
        maps = [attention.weights.mean(axis=0), *attention.weights]
        for panel in panels.flat[len(maps) :]:
            panel.set_axis_off()
        for panel, name, weights in zip(panels.flat, names, maps, strict=False):
            image = _draw_map(panel, weights)
            panel.set_title(name)
        for panel in panels[0]:
            panel.set_xticks(range(width), attention.columns, rotation=90, family=families)
            panel.set_xlabel(attention.column_title)
        for panel in panels[:, 0]:
            panel.set_yticks(range(height), attention.rows, family=families)
            panel.set_ylabel(attention.row_title)
        figure.suptitle(attention.title, fontsize=9.0)
        figure.colorbar(image, ax=panels, label="attention weight", shrink=0.6, aspect=25)
        return save_figure(figure, output, dots_per_inch=200)


def _draw_map(panel: "Axes", weights: "npt.NDArray[np.float32]") -> "AxesImage":
    """One head (T, S): dark where it looks; the scale is the same in every panel."""
    image = panel.imshow(weights, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    panel.xaxis.tick_top()
    panel.xaxis.set_label_position("top")
    panel.set_xticks([])
    panel.set_yticks([])
    panel.tick_params(length=0, pad=2)
    panel.spines[:].set_visible(True)
    panel.spines[:].set_color("0.7")
    return image


def plot_attention(
    run: "Run", sentence: str, output: Path, kind: Kind = "cross", layer: int | None = None
) -> list[Path]:
    """Translate `sentence` and draw one layer's attention; write `output`.png and `output`.svg.

    Raises:
        DataError: an empty or too long sentence, or a layer that the model does not have.
        MissingExtraError: matplotlib is not installed.
    """
    return draw_attention(attention_map(attend(run, sentence), kind, layer), output)
