"""The chapter on attention: all layers and heads of some sentences, to select in the browser."""

import base64
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from nmt.errors import DataError
from nmt.report.attention_maps import (
    KINDS,
    Kind,
    SentenceAttention,
    attention_map,
    record_attention,
)
from nmt.run_directory import LoadedModel

NAMES: Mapping[Kind, str] = {
    "encoder": "Encoder",
    "decoder": "Decoder",
    "cross": "Cross (decoder to encoder)",
}
MAX_DEFAULT_PIECES = 40
"""largest number of pieces of a sentence that the user has not chosen"""


def record_sentences(
    run: LoadedModel, sentences: Iterable[str], most: int, longest: int
) -> list[SentenceAttention]:
    """Record the attention of the first `most` sentences that have 1 to `longest` pieces."""
    found: list[SentenceAttention] = []
    for sentence in dict.fromkeys(sentences):
        if len(found) == most:
            break
        try:
            found.append(record_attention(run, sentence, longest))
        except DataError:
            continue  # it is empty, not valid text or too long, or its translation is too long
    return found


def attention_chapter(attended: Sequence[SentenceAttention]) -> dict[str, Any]:
    """Return the values of attention.html: what the script of the page draws the maps from."""
    return {"sentences": [_sentence(one) for one in attended]}


def _sentence(sentence: SentenceAttention) -> dict[str, Any]:
    """Return all maps of a sentence; the weights (L, H, T, S) are bytes, 255 for 1."""
    kinds = {}
    for kind in KINDS:
        count = len(sentence.layers(kind))
        layers = [attention_map(sentence, kind, n) for n in range(1, count + 1)]
        first = layers[0]
        weights = np.stack([layer.weights for layer in layers])  # (L, H, T, S)
        as_bytes = np.rint(weights * 255).astype(np.uint8)
        kinds[kind] = {
            "name": NAMES[kind],
            "rowTitle": first.row_title,
            "columnTitle": first.column_title,
            "rows": first.rows,
            "columns": first.columns,
            "layers": weights.shape[0],
            "heads": weights.shape[1],
            "weights": base64.b64encode(as_bytes.tobytes()).decode("ascii"),
        }
    return {"text": sentence.text, "kinds": kinds}
