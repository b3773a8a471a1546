"""Attention weights of each head over a sentence, as a figure (the paper's figures 3 to 5)."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from nmt.data.text.lines import check_text
from nmt.data.tokens.tokenizer import BOS
from nmt.errors import DataError
from nmt.model.attention import AttentionRecord
from nmt.report.figure import font_families, new_figure, save_figure
from nmt.report.pieces import Pieces, join_words, readable_pieces
from nmt.run_directory import LoadedModel
from nmt.search.beam_search import beam_search
from nmt.translation.line import print_warning

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

Kind = Literal["cross", "encoder", "decoder"]
"""the three uses of attention (section 3.2.3)"""
KINDS: tuple[Kind, ...] = get_args(Kind)

KIND_TITLES = {
    "cross": "encoder-decoder attention, decoder",
    "encoder": "encoder self-attention,",
    "decoder": "decoder self-attention,",
}
MAX_PIECES = 80
"""largest number of pieces on a side; a figure with more is not legible"""
CELL = 0.125
"""inches: size of a row or column of a map, enough for a label"""
LETTER = 0.065
"""inches: average width of a letter of a label"""
TITLE_MARGIN = 0.05
"""inches: free space on each side of the title"""


@dataclass(frozen=True, slots=True)
class SentenceAttention:
    """A sentence and its translation as pieces, and the attention weights of every layer."""

    text: str
    source: Pieces
    target: Pieces
    record: AttentionRecord

    def layers(self, kind: Kind) -> Sequence[Tensor]:
        """Return the weights (1, H, T, S) of each layer with this use of attention."""
        layers: Sequence[Tensor] = getattr(self.record, kind)
        return layers


@dataclass(frozen=True, slots=True)
class AttentionMap:
    """The weights (H, T, S) of one layer; each of the T rows of a head is a distribution over S."""

    title: str
    row_title: str
    column_title: str
    row_pieces: Pieces
    column_pieces: Pieces
    weights: npt.NDArray[np.float32]

    @property
    def rows(self) -> list[str]:
        """Labels of the rows."""
        return self.row_pieces.labels

    @property
    def columns(self) -> list[str]:
        """Labels of the columns."""
        return self.column_pieces.labels


def merge_words(attention: AttentionMap) -> AttentionMap:
    """Return the same layer from word to word; words are separated by spaces.

    The attention to a word is the sum over its pieces, the attention from a word their mean (Clark
    et al., 2019: What Does BERT Look At?), so that each row is a distribution again.
    """
    rows, columns = attention.row_pieces, attention.column_pieces
    row_starts = np.flatnonzero(np.diff(rows.words, prepend=-1))
    column_starts = np.flatnonzero(np.diff(columns.words, prepend=-1))
    weights = np.add.reduceat(attention.weights, column_starts, axis=2)
    weights = np.add.reduceat(weights, row_starts, axis=1)
    weights /= np.bincount(rows.words)[:, None]
    return replace(
        attention,
        row_title=attention.row_title.replace("piece", "word"),
        column_title=attention.column_title.replace("piece", "word"),
        row_pieces=join_words(rows),
        column_pieces=join_words(columns),
        weights=weights,
    )


def record_attention(
    run: LoadedModel, sentence: str, longest: int = MAX_PIECES
) -> SentenceAttention:
    """Translate `sentence` and record the attention of every layer.

    Raises:
        DataError: the sentence is empty, is not valid text or has more than `longest` pieces, or
            its translation has more than `MAX_PIECES`.
    """
    check_text(sentence, f"the sentence {sentence!a}")
    read = readable_pieces(run.tokenizer.source_pieces(sentence)[:-1])
    if not read.labels:
        raise DataError("the sentence is empty; give some text to translate")
    _check_length(read.labels, "sentence", longest)
    device = next(run.model.parameters()).device
    source = torch.tensor(run.tokenizer.encode_source([sentence]), device=device)  # (1, S)
    record = AttentionRecord()
    with torch.inference_mode():
        best = beam_search(run.model, source, run.config.decoding)[0][0]
        target_input = torch.tensor([[BOS, *best.tokens]], device=device)  # (1, T)
        run.model(source, target_input, attention=record)
    written = readable_pieces(run.tokenizer.target_pieces(best.tokens))
    _check_length(written.labels, "translation", MAX_PIECES)
    return SentenceAttention(sentence, read, written, record)


def _check_length(pieces: Sequence[str], what: str, longest: int) -> None:
    if len(pieces) > longest:
        raise DataError(
            f"the {what} has {len(pieces)} pieces; attention maps are legible up to {longest}, "
            "give a shorter sentence"
        )


def attention_map(
    sentence: SentenceAttention, kind: Kind, layer: int | None = None
) -> AttentionMap:
    """Return the map of one layer, counted from 1, or of the last layer.

    The label of a row of cross- or decoder attention is the piece that is written there, not the
    one that is read: the query at position t predicts target token t + 1.

    Raises:
        DataError: the model has no such layer.
    """
    layers = sentence.layers(kind)
    number = len(layers) if layer is None else layer
    if not 1 <= number <= len(layers):
        stack = "encoder" if kind == "encoder" else "decoder"
        raise DataError(f"layer {number}: the {stack} of this model has layers 1 to {len(layers)}")
    source, written = sentence.source.with_end(), sentence.target.with_end()
    row_title, column_title, rows, columns = {
        "cross": ("piece written", "source piece", written, source),
        "encoder": ("source piece", "attends to", source, source),
        "decoder": ("piece written", "earlier piece", written, sentence.target.with_start()),
    }[kind]
    weights = layers[number - 1][0].float().cpu().numpy()  # (H, T, S)
    title = f"{KIND_TITLES[kind]} layer {number} of {len(layers)}"
    return AttentionMap(title, row_title, column_title, rows, columns, weights)


def select_head(attention: AttentionMap, head: int) -> AttentionMap:
    """Return the map of a single head, counted from 1.

    Raises:
        DataError: the layer has no such head.
    """
    heads = len(attention.weights)
    if not 1 <= head <= heads:
        raise DataError(f"head {head}: the layers of this model have heads 1 to {heads}")
    title = f"{attention.title},\nhead {head} of {heads}"
    return replace(attention, title=title, weights=attention.weights[head - 1 : head])


def draw_attention(
    attention: AttentionMap, output: Path, warn: Callable[[str], None] = print_warning
) -> list[Path]:
    """Draw the mean over several heads, then each head; write `output`.png and `output`.svg.

    `warn` is called for characters that no font has.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    heads, height, width = attention.weights.shape
    names, maps = [""], [*attention.weights]
    if heads > 1:
        names = ["mean of the heads", *(f"head {n}" for n in range(1, heads + 1))]
        maps.insert(0, attention.weights.mean(axis=0))
    across = math.ceil(math.sqrt(len(maps)))
    down = math.ceil(len(maps) / across)
    alone = len(maps) == 1  # narrow enough for a column of a page, with the scale below
    margins = (0.6 if alone else 1.3, 1.3 if alone else 0.8)
    labels = [LETTER * max(map(len, side)) for side in (attention.rows, attention.columns)]
    with new_figure(
        across * max(1.0, width * CELL) + margins[0] + labels[0],
        down * (max(1.0, height * CELL) + 0.3) + margins[1] + labels[1],
    ) as figure:
        families = font_families("".join(attention.rows + attention.columns), warn)
        panels = figure.subplots(down, across, squeeze=False)
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
        _set_title(figure, attention.title, 8.0 if alone else 9.0)
        place = "bottom" if alone else "right"
        scale = figure.colorbar(image, ax=panels, location=place, shrink=0.6, aspect=25)
        scale.set_label("attention weight")
        return save_figure(figure, output, dots_per_inch=200)


def _set_title(figure: "Figure", title: str, size: float) -> None:
    """Write the title above all panels, and widen a figure that is too narrow for it."""
    text = figure.suptitle(title, fontsize=size)
    width = text.get_window_extent().width / figure.dpi + 2 * TITLE_MARGIN
    figure.set_figwidth(max(figure.get_figwidth(), width))


def _draw_map(panel: "Axes", weights: npt.NDArray[np.float32]) -> "AxesImage":
    """Draw the weights (T, S) of one head; dark is 1, with the same scale in every panel."""
    image = panel.imshow(weights, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    panel.xaxis.tick_top()
    panel.xaxis.set_label_position("top")
    panel.set_xticks([])
    panel.set_yticks([])
    panel.tick_params(length=0, pad=2)
    panel.spines[:].set_visible(True)
    panel.spines[:].set_color("0.7")
    return image
