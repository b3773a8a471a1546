"""The chapter on data: what cleaning removed before training, and the lengths of sentences."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from nmt.config import Config
from nmt.data.prepared import read_counts
from nmt.data.text.cleaning import RULES
from nmt.data.text.quality import BINS, PERCENTILES
from nmt.data.tokens.token_store import Lengths, TokenStore
from nmt.errors import DataError
from nmt.report.page.charts import Bar
from nmt.report.text_format import truncate

EXAMPLE = 200
"""characters of an example at most"""


def data_chapter(config: Config, fingerprint: str | None) -> dict[str, Any] | str:
    """Return the values of data.html, or a sentence that says why the prepared data are missing."""
    if fingerprint is None:
        return "environment.json does not say what the run was trained on."
    folder = Path(config.data.directory, "prepared", fingerprint)
    try:
        counts, store = read_counts(folder), TokenStore.open(folder)
    except DataError:
        return f"The prepared data are not at {folder}; `nmt prepare` makes them again."
    lengths = {
        config.data.source_language: store.source.lengths - 1,  # without the end of the sentence
        config.data.target_language: store.target.lengths - 1,
    }
    sides = list(lengths.values())
    return {
        "cleaning": list(_cleaning(counts)),
        "lengths": {"head": ["sentence length in tokens", *lengths], "rows": list(_lengths(sides))},
        "examples": _examples(counts),
        "histograms": {language: _histogram(side) for language, side in lengths.items()},
    }


def _cleaning(counts: dict[str, Any]) -> Iterator[list[str]]:
    read = counts["read"]

    def row(name: str, count: int) -> list[str]:
        return [name, f"{count:,}", f"{count / max(read, 1):.2%}"]

    yield row("read", read)
    for rule, words in RULES.items():
        if dropped := counts["dropped"].get(rule):
            yield row(f"left out: {words}", dropped)
    yield row("learnt from", counts["kept"])


def _examples(counts: dict[str, Any]) -> list[list[str]]:
    """Return the first pairs that each rule removed: why, where, source and target."""
    rows = [
        [words, f"{Path(one['file']).name}:{one['line']}", one["source"], one["target"]]
        for rule, words in RULES.items()
        for one in counts["examples"].get(rule, [])
    ]
    return [[truncate(cell, EXAMPLE) for cell in row] for row in rows]


def _lengths(sides: list[Lengths]) -> Iterator[list[str]]:
    yield ["tokens in all", *(f"{int(side.sum()):,}" for side in sides)]
    columns = [np.percentile(side, PERCENTILES, method="nearest") for side in sides]
    for percent, *values in zip(PERCENTILES, *columns, strict=True):
        name = {50: "median", 100: "longest"}.get(percent, f"{percent} % are no longer than")
        yield [name, *(f"{int(value):,}" for value in values)]


def _histogram(lengths: Lengths) -> list[Bar]:
    """Return how many sentences have which length, without empty classes at both ends."""
    counts = np.histogram(lengths, [*BINS, np.inf])[0].tolist()
    filled = [n for n, count in enumerate(counts) if count]
    bars = []
    for n in range(filled[0], filled[-1] + 1) if filled else ():
        low, high = BINS[n], BINS[n + 1] - 1 if n + 1 < len(BINS) else None
        span = f"{low}" if low == high else f"{low}–{high}" if high else f"{low} and more"
        bars.append(Bar(span, counts[n], f"{counts[n]:,}", f"{counts[n] / len(lengths):.1%}"))
    return bars
