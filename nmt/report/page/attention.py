"""The chapter on attention: every layer and head of a few sentences, chosen in the browser."""

import base64
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from nmt.errors import DataError
from nmt.report.attention_maps import KINDS, Attended, Kind, attend, attention_map
from nmt.report.page.html import Html, element, json_block, missing, note, section
from nmt.run_directory import LoadedModel

NAMES: Mapping[Kind, str] = {
    "encoder": "Encoder",
    "decoder": "Decoder",
    "cross": "Cross (decoder to encoder)",
}
LEGIBLE = 40
"""pieces of a sentence that nobody asked for by name"""


def attend_all(
    run: LoadedModel, sentences: Iterable[str], most: int, longest: int
) -> list[Attended]:
    """Translate the first `most` sentences of 1 to `longest` pieces that a map can show."""
    found: list[Attended] = []
    for sentence in dict.fromkeys(sentences):
        if len(found) == most:
            break
        try:
            found.append(attend(run, sentence, longest))
        except DataError:
            continue  # it is empty, no text, or too long to be read, as is its translation
    return found


def attention_section(attended: Sequence[Attended] | str) -> Html:
    """The viewer of the maps, or the sentence that says why there is none."""
    title = "Attention"
    if isinstance(attended, str):
        return section("attention", title, missing(attended))
    words = (
        "Each row is a distribution over the columns: the stronger the colour, the more weight. A "
        "row of decoder or cross-attention carries the piece that is written there. A dot before "
        "a piece means that it goes on the word before it."
    )
    return section(
        "attention",
        title,
        note(words),
        element("noscript", missing("The maps are drawn by the page's script.")),
        element("div", id="attention-viewer"),
        json_block("attention-data", [_sentence(one) for one in attended]),
    )


def _sentence(attended: Attended) -> dict[str, Any]:
    """All maps of a sentence; weights as bytes, 255 for 1, head by head and row by row."""
    kinds = {}
    for kind in KINDS:
        layers = [attention_map(attended, kind, n) for n in range(1, attended.layers(kind) + 1)]
        first = layers[0]
        weights = np.stack([layer.weights for layer in layers])  # (L, H, T, S)
        kinds[kind] = {
            "name": NAMES[kind],
            "rowTitle": first.row_title,
            "columnTitle": first.column_title,
            "rows": first.rows,
            "columns": first.columns,
            "layers": weights.shape[0],
            "heads": weights.shape[1],
            "weights": base64.b64encode(_bytes(weights)).decode("ascii"),
        }
    return {"text": attended.text, "kinds": kinds}


def _bytes(weights: npt.NDArray[np.float32]) -> bytes:
    return np.rint(weights * 255).astype(np.uint8).tobytes()
