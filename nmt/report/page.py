"""The page of a report: values for the templates, which make one HTML file that needs no network.

The templates are in templates/, one for each chapter.
"""

import base64
import functools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from nmt.evaluation.metrics import METRIC_NAMES
from nmt.report.attention_maps import KINDS, Kind, SentenceAttention, attention_map
from nmt.report.curves import (
    Record,
    best_step,
    curve,
    evenly_spaced,
    last_number,
    last_step,
    number,
    training_charts,
)
from nmt.report.scored_test_set import ScoredTestSet
from nmt.report.tables import cleaning_examples, cleaning_rows, histogram, length_rows
from nmt.report.watch import duration
from nmt.training.validation import ExampleTranslation

FOLDER = Path(__file__).with_name("templates")
MAX_VERSIONS = 7
"""versions of a translation that are shown; all others are collapsed"""
EXTREMES = 8
"""number of worst and of best sentences that are shown"""
KIND_NAMES: Mapping[Kind, str] = {
    "encoder": "Encoder",
    "decoder": "Decoder",
    "cross": "Cross (decoder to encoder)",
}


def render_page(values: Mapping[str, Any]) -> str:
    """Fill page.html; text among the values is escaped, so it never becomes markup.

    Characters that an HTML file must not contain, NUL and lone surrogates, are replaced.
    """
    text = _page_template().render(values)
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")


@functools.cache
def _page_template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    for function in (best_step, curve, last_number, last_step, read_asset):
        environment.globals[function.__name__] = function
    environment.globals["METRIC_NAMES"] = METRIC_NAMES
    filters: list[Callable[..., Any]] = [breakable, duration, mark_shared_words, minute]
    filters += [short_number, compared_weights, training_charts, validation_table]
    filters += [extreme_sentences, translation_versions, attention_data, flatten_settings]
    filters += [cleaning_rows, cleaning_examples, length_rows, histogram]
    environment.filters |= {function.__name__: function for function in filters}
    environment.filters["number"] = format
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return environment.get_template("page.html")


def read_asset(name: str) -> Markup:
    """Read the style or the script; neither contains its own end tag."""
    return Markup((FOLDER / name).read_text("utf-8"))


def breakable(name: str) -> Markup:
    """Allow a line break after each dot and underscore of a name."""
    return Markup("<wbr>").join(re.split(r"(?<=[._])", name))


def short_number(number: float) -> str:
    """Format a number with two decimals and a unit if it is large: 2,097,152 -> 2.10 M."""
    for size, name in ((1e9, "G"), (1e6, "M")):
        if number >= size:
            return f"{number / size:.2f} {name}"
    return f"{number:,.0f}"


def minute(time: object) -> str:
    """Format a time in ISO format: 2026-11-21T21:08:18+00:00 -> 2026-11-21 21:08 UTC."""
    try:
        return f"{datetime.fromisoformat(str(time)).astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    except ValueError:
        return str(time)


def compared_weights(best: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return a table of the weights that best.json compares: its head, and its rows."""
    candidates = best.get("candidates")
    found = candidates if isinstance(candidates, Mapping) else {}
    figures = {name: value for name, value in found.items() if isinstance(value, Mapping)}
    keys = sorted({key for value in figures.values() for key in value})
    rows = [
        [name, *(_figure(value, key, ".3f") for key in keys)] for name, value in figures.items()
    ]
    return ["weights", *(f"validation {key}" for key in keys)], rows


def validation_table(records: list[Record]) -> tuple[list[str], list[list[str]]]:
    """Return the head and the rows of all validations; of two at a step the later one counts."""
    names = {"loss": "loss", "perplexity": "perplexity", **METRIC_NAMES}
    found = {record["step"]: record for record in records if record.get("event") == "validation"}
    shown = [key for key in names if any(key in record for record in found.values())]
    rows = []
    for step, record in sorted(found.items()):
        seconds = number(record, "seconds")
        minutes = "–" if seconds is None else f"{seconds / 60:,.1f}"
        rows.append([f"{step:,}", *(_figure(record, key, ",.2f") for key in shown), minutes])
    return ["step", *(names[key] for key in shown), "minutes"], rows


def _figure(values: Mapping[str, Any], key: str, form: str) -> str:
    """Format the number under a key; a dash stands for one that is missing."""
    value = number(values, key)
    return "–" if value is None else format(value, form)


def extreme_sentences(scored: ScoredTestSet) -> tuple[list[int], list[int]]:
    """Return the indices of the sentences with the lowest and of those with the highest chrF.

    No sentence is in both lists.
    """
    scores, count = scored.sentence_scores, len(scored.sources)
    order = sorted(range(count), key=scores.__getitem__)
    most = min(EXTREMES, count // 2) or count
    best_first = sorted(order[most:], key=lambda i: (-scores[i], -len(scored.sources[i])))
    return order[:most], best_first[:most]


def translation_versions(
    examples: Mapping[int, Sequence[ExampleTranslation]],
) -> Iterator[dict[str, Any]]:
    """Yield each sentence with its different translations and the steps that produced each.

    `examples` are the translations of the same first sentences of the validation set by step.
    """
    for index in range(len(examples[max(examples)])):
        kept = [(step, found[index]) for step, found in sorted(examples.items()) if found[index:]]
        versions = []
        for text, group in groupby(kept, lambda pair: pair[1].translation):
            first, *others = (step for step, _ in group)
            versions.append((f"{first:,} – {others[-1]:,}" if others else f"{first:,}", text))
        shown = [versions[n] for n in evenly_spaced(len(versions), MAX_VERSIONS)]
        yield {"example": kept[-1][1], "versions": versions, "shown": shown}


def mark_shared_words(text: str, other: str) -> Iterator[tuple[str, bool]]:
    """Yield the words of `text`, and whether `other` contains them, each at most as often."""
    left = Counter(map(_bare, other.split()))
    for word in text.split():
        left[_bare(word)] -= 1
        yield word, left[_bare(word)] >= 0


def _bare(word: str) -> str:
    """Remove case and outer punctuation; a word of punctuation alone stays as it is."""
    return word.casefold().strip(".,;:!?\"'()[]«»„“”‘’…") or word


def attention_data(sentence: SentenceAttention) -> dict[str, Any]:
    """Return all maps of a sentence for the script; weights (L, H, T, S) are bytes, 255 for 1."""
    kinds = {}
    for kind in KINDS:
        count = len(sentence.layers(kind))
        layers = [attention_map(sentence, kind, n) for n in range(1, count + 1)]
        first = layers[0]
        weights = np.stack([layer.weights for layer in layers])  # (L, H, T, S)
        as_bytes = np.rint(weights * 255).astype(np.uint8)
        kinds[kind] = {
            "name": KIND_NAMES[kind],
            "rowTitle": first.row_title,
            "columnTitle": first.column_title,
            "rows": first.rows.labels,
            "columns": first.columns.labels,
            "layers": weights.shape[0],
            "heads": weights.shape[1],
            "weights": base64.b64encode(as_bytes.tobytes()).decode("ascii"),
        }
    return {"text": sentence.text, "kinds": kinds}


def flatten_settings(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield each setting as its dotted name and its value as text."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from flatten_settings(value, f"{prefix}{name}.")
        else:
            yield prefix + name, _value_text(value)


def _value_text(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return " ".join(map(_value_text, value)) or "–"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {one}" for key, one in value.items() if one is not None)
    return f"{value:,}" if isinstance(value, int) and abs(value) >= 10_000 else str(value)
