"""Attention weights of each head over a sentence (the paper's figures 3 to 5), with labels."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from nmt.data.text.lines import check_text
from nmt.data.text.words import continues_cluster, continues_word, is_unspaced
from nmt.data.tokens.tokenizer import BOS
from nmt.errors import DataError
from nmt.model.attention import AttentionRecord
from nmt.run.model import LoadedModel
from nmt.search.beam_search import beam_search

Kind = Literal["cross", "encoder", "decoder"]
"""the three uses of attention (section 3.2.3)"""
KINDS: tuple[Kind, ...] = get_args(Kind)

KIND_TITLES = {
    "cross": "encoder-decoder attention, decoder",
    "encoder": "encoder self-attention,",
    "decoder": "decoder self-attention,",
}
"""how the title of a map begins; "layer 2 of 6" follows"""
MAX_PIECES = 80
"""largest number of pieces on a side; a figure with more is not legible"""
START, END = "<s>", "</s>"
"""the labels of BOS and EOS"""
CONTINUATION = "·"
"""the mark of a piece that continues a word"""


@dataclass(frozen=True, slots=True)
class Pieces:
    """A text in subword pieces, with a legible label for each piece."""

    labels: list[str]
    words: list[int]
    """for each piece, the index of its word; never decreasing"""

    def with_end(self) -> "Pieces":
        """Return the pieces with the end symbol `</s>` after them, as a word of its own."""
        return Pieces([*self.labels, END], [*self.words, max(self.words, default=-1) + 1])

    def with_start(self) -> "Pieces":
        """Return the pieces with the start symbol `<s>` before them, as a word of its own."""
        return Pieces([START, *self.labels], [0, *(word + 1 for word in self.words)])


@dataclass(frozen=True, slots=True)
class SentenceAttention:
    """A sentence and its translation as pieces, and the attention weights of every layer."""

    text: str
    source: Pieces
    target: Pieces
    record: AttentionRecord


@dataclass(frozen=True, slots=True)
class AttentionMap:
    """The attention weights of one layer, with labels for a figure; each row adds up to 1."""

    title: str
    row_title: str
    column_title: str
    rows: Pieces
    """the T positions that attend"""
    columns: Pieces
    """the S positions that are attended to"""
    weights: npt.NDArray[np.float32]
    """(H, T, S)"""


def readable_pieces(pieces: Sequence[str]) -> Pieces:
    """Return legible labels of SentencePiece pieces, and their word indices; ▁ begins a word.

    In scripts without spaces each piece does, unless it begins with a sign of the last cluster.

    Labels are without ▁; a piece of ▁ alone becomes ␣. The label of a piece that continues a word
    gets `CONTINUATION` before a letter or digit, unless all pieces are single characters.
    """
    labels, word_indices, word_index, previous = [], [], -1, ""  # the first piece begins a word
    single_characters = all(len(piece.strip("▁")) <= 1 for piece in pieces)
    for piece in pieces:
        begins_word = piece.startswith("▁") or word_index < 0 or _begins_unspaced(previous, piece)
        previous = piece
        if begins_word:
            word_index += 1
        label = piece.replace("▁", " ").strip() or "␣"
        is_marked = not begins_word and not single_characters and label[0].isalnum()
        labels.append(CONTINUATION + label if is_marked else label)
        word_indices.append(word_index)
    return Pieces(labels, word_indices)


def _begins_unspaced(previous: str, piece: str) -> bool:
    """Return whether a piece begins a word after the previous piece without a space."""
    if not previous.strip("▁") or continues_cluster(piece):
        return False
    return is_unspaced(piece) or (is_unspaced(previous[-1]) and continues_word(piece))


def join_words(pieces: Pieces) -> Pieces:
    """Return one piece for each word; its label joins the word's labels without `CONTINUATION`."""
    labels_of_words: dict[int, list[str]] = {}
    for word_index, label in zip(pieces.words, pieces.labels, strict=True):
        labels_of_words.setdefault(word_index, []).append(label)
    joined = []
    for first, *rest in labels_of_words.values():
        if first == "␣" and rest:  # the word boundary as a piece of its own: no text
            first = ""
        joined.append(first + "".join(label.removeprefix(CONTINUATION) for label in rest))
    return Pieces(joined, list(range(len(joined))))


def merge_words(attention: AttentionMap) -> AttentionMap:
    """Return the attention from word to word: the rows, and the columns, of a word become one.

    The attention to a word is the sum over its pieces; the attention from a word is the mean over
    its pieces (Clark et al., 2019: What Does BERT Look At?). Each row is a distribution again.
    """
    rows, columns = attention.rows, attention.columns
    row_starts = np.flatnonzero(np.diff(rows.words, prepend=-1))  # first piece of each word
    column_starts = np.flatnonzero(np.diff(columns.words, prepend=-1))
    weights = np.add.reduceat(attention.weights, column_starts, axis=2)  # sums of columns
    weights = np.add.reduceat(weights, row_starts, axis=1)  # sums of rows
    pieces_per_word = np.bincount(rows.words)
    weights /= pieces_per_word[:, None]  # sums of rows become means
    return replace(
        attention,
        row_title=attention.row_title.replace("piece", "word"),
        column_title=attention.column_title.replace("piece", "word"),
        rows=join_words(rows),
        columns=join_words(columns),
        weights=weights,
    )


def record_attention(
    loaded: LoadedModel, sentence: str, max_pieces: int = MAX_PIECES
) -> SentenceAttention:
    """Translate `sentence` by beam search, and record the attention of the model to both sides.

    Raises:
        DataError: the sentence is empty, is not valid text or has more than `max_pieces` pieces,
            or its translation has more than `MAX_PIECES`.
    """
    check_text(sentence, f"the sentence {sentence!a}")
    vocabulary = loaded.tokenizer.source
    (ids,) = vocabulary.encode([sentence])
    source_pieces = readable_pieces([vocabulary.pieces[i] for i in ids[:-1]])  # without EOS
    if not source_pieces.labels:
        raise DataError("the sentence is empty; give some text to translate")
    _check_length(source_pieces.labels, "sentence", max_pieces)
    device = next(loaded.model.parameters()).device
    source = torch.tensor([ids], device=device)  # (1, S)
    record = AttentionRecord()
    with torch.inference_mode():
        (hypotheses,) = beam_search(loaded.model, source, loaded.config.decoding)
        best = hypotheses[0]
        target_input = torch.tensor([[BOS, *best.tokens]], device=device)  # (1, T)
        loaded.model(source, target_input, attention=record)  # teacher forcing
    target_pieces = readable_pieces([loaded.tokenizer.target.pieces[i] for i in best.tokens])
    _check_length(target_pieces.labels, "translation", MAX_PIECES)
    return SentenceAttention(sentence, source_pieces, target_pieces, record)


def _check_length(pieces: Sequence[str], name: str, max_pieces: int) -> None:
    if len(pieces) > max_pieces:
        raise DataError(
            f"the {name} has {len(pieces)} pieces; attention maps are legible up to {max_pieces}, "
            "give a shorter sentence"
        )


def attention_map(
    sentence: SentenceAttention, kind: Kind, layer: int | None = None, head: int | None = None
) -> AttentionMap:
    """Return the weights of one layer (None: the last) and one head (None: all), with labels.

    Layers and heads count from 1. A row of cross or decoder attention has the label of the piece
    that the decoder writes at this position, not of the piece before it, which the decoder reads.

    Raises:
        DataError: the model has no such layer or head.
    """
    layers: Sequence[Tensor] = getattr(sentence.record, kind)
    number = len(layers) if layer is None else layer
    if not 1 <= number <= len(layers):
        stack = "encoder" if kind == "encoder" else "decoder"
        raise DataError(f"layer {number}: the {stack} of this model has layers 1 to {len(layers)}")
    source, target = sentence.source.with_end(), sentence.target.with_end()
    rows, row_title = target, "piece written"
    if kind == "encoder":
        rows, row_title = source, "source piece"
    columns, column_title = {
        "cross": (source, "source piece"),
        "encoder": (source, "attends to"),
        "decoder": (sentence.target.with_start(), "earlier piece"),
    }[kind]
    weights = layers[number - 1][0].float().cpu().numpy()  # (1, H, T, S) -> (H, T, S)
    title = f"{KIND_TITLES[kind]} layer {number} of {len(layers)}"
    if head is not None:
        if not 1 <= head <= len(weights):
            heads = f"heads 1 to {len(weights)}"
            raise DataError(f"head {head}: the layers of this model have {heads}")
        title += f",\nhead {head} of {len(weights)}"
        weights = weights[head - 1 : head]  # (1, T, S)
    return AttentionMap(title, row_title, column_title, rows, columns, weights)
