"""What vocabularies lack of the text: which characters, at word level which words, how often."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nmt.data.tokens.token_store import Indices, Sentences
from nmt.data.tokens.tokenizer import SPACE, UNK, SubwordModel

UnknownParts = dict[int, list[str]]
"""What a vocabulary lacks of a text, see `SubwordModel.unknown`, by the index of the text in its
block; a text of which it lacks nothing has no entry."""

# Beyond so many different words the rare ones are forgotten, which bounds the memory.
_MOST_WORDS, _KEPT_WORDS = 100_000, 10_000
_STORED, _SHOWN = 100, 10


def unknown_parts(
    model: SubwordModel, encoded: Sentences, indices: Indices, texts: Sequence[str]
) -> UnknownParts:
    """Return what `model` lacks of the texts with these indices; `encoded` are their ids."""
    positions = np.flatnonzero(encoded.ids == UNK)
    rows = np.unique(np.searchsorted(encoded.offsets, positions, side="right") - 1)
    suspects = {*indices[rows].tolist(), *(i for i in indices.tolist() if SPACE in texts[i])}
    return {index: model.unknown(texts[index]) for index in sorted(suspects)}


class UnknownCounts:
    """How often the vocabulary of one side lacks which character, or at word level which word."""

    def __init__(self) -> None:
        self._total = 0
        self._counts = Counter[str]()

    def add(self, parts: UnknownParts) -> None:
        """Count what is lacking of some texts."""
        for parts_of_text in parts.values():
            self._total += len(parts_of_text)
            self._counts.update(parts_of_text)
        if len(self._counts) > _MOST_WORDS:
            self._counts = Counter(dict(self._counts.most_common(_KEPT_WORDS)))

    def as_json(self) -> dict[str, Any]:
        """Return {"total", "most_frequent"}: how many, and {part: how often} of the first 100."""
        return {"total": self._total, "most_frequent": dict(self._counts.most_common(_STORED))}


def describe_unknown(counts: Mapping[str, Any]) -> list[str]:
    """Return a line for each side whose vocabulary lacks something of the kept training pairs.

    `counts` are `Prepared.counts`. A line is "3 in the source text: ▅ (U+2585) 2, (U+0000) 1".
    """
    lines = []
    for side, unknown in counts.get("unknown", {}).items():  # older data have no such key
        if unknown["total"]:
            found = describe_parts(unknown["most_frequent"])
            lines.append(f"{unknown['total']:,} in the {side} text: {found}")
    return lines


def describe_parts(frequencies: Mapping[str, int]) -> str:
    """Return the most frequent of {character or word: how often} as "▅ (U+2585) 2, (U+0000) 1"."""
    phrases = []
    for part, count in Counter(frequencies).most_common(_SHOWN):
        shown = part if part.isprintable() else ascii(part)[1:-1]
        code = f" (U+{ord(part):04X})" if len(part) == 1 else ""
        phrases.append(f"{shown}{code} {count:,}")
    if len(frequencies) > _SHOWN:
        phrases.append("…")
    return ", ".join(phrases)
