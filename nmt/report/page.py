"""The page of a report: one HTML file that needs no network, made from templates.

The templates are in templates/, one for each chapter. They call the functions below as filters,
such as `records | training_charts`.
"""

import base64
import functools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
from jinja2 import Template

from nmt.data.text.words import fold_case, spaced_word_spans
from nmt.evaluation.metrics import METRIC_NAMES
from nmt.report.attention_maps import KINDS, Kind, SentenceAttention, attention_map
from nmt.report.curves import (
    best_step,
    curve,
    evenly_spaced,
    finite_number,
    last_number,
    last_step,
    training_charts,
)
from nmt.report.tables import template_environment
from nmt.training.validation import ExampleTranslation

MAX_VERSIONS = 7
"""versions of a translation that are shown at first; all others are collapsed"""
EXTREMES = 8
"""number of worst sentences that are shown, and of best ones"""
KIND_NAMES: Mapping[Kind, str] = {
    "encoder": "Encoder",
    "decoder": "Decoder",
    "cross": "Cross (decoder to encoder)",
}


def render_page(values: Mapping[str, Any]) -> str:
    """Return the HTML page: page.html filled with `values`, in which all text is escaped.

    Characters that an HTML file must not contain, NUL and lone surrogates, are replaced.
    """
    text = _page_template().render(values)
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")


@functools.cache
def _page_template() -> Template:
    """Return page.html with the functions and filters that it and its chapters use."""
    environment = template_environment()
    for function in (best_step, curve, finite_number, last_number, last_step):
        environment.globals[function.__name__] = function
    environment.globals["METRIC_NAMES"] = METRIC_NAMES
    filters: list[Callable[..., Any]] = [duration, mark_shared_words, minute, training_charts]
    filters += [extreme_sentences, translation_versions, attention_data, setting_text]
    environment.filters |= {function.__name__: function for function in filters}
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return environment.get_template("page.html")


def duration(seconds: float) -> str:
    """Format a duration: 40 s; 1.5 min; 1 h 30 min; 2 d 2 h."""
    if round(seconds) < 60:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    if round(minutes, 1) < 10:
        return f"{minutes:.1f} min"
    if round(minutes) < 60:
        return f"{minutes:.0f} min"
    hours, rest = divmod(round(minutes), 60)
    return f"{hours} h {rest:02} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"


def minute(time: object) -> str:
    """Format a time in ISO format: 2026-11-21T21:08:18+00:00 -> 2026-11-21 21:08 UTC."""
    try:
        return f"{datetime.fromisoformat(str(time)).astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    except ValueError:  # no ISO time, such as "unknown"
        return str(time)


def extreme_sentences(
    scores: Sequence[float], sources: Sequence[str]
) -> tuple[list[int], list[int]]:
    """Return up to `EXTREMES` indices of the worst sentences, worst first, and of the best ones.

    The best come best first; among equal scores, the longest source. No index is in both lists.
    """
    worst_first = sorted(range(len(scores)), key=scores.__getitem__)
    count = min(EXTREMES, len(scores) // 2)
    if len(scores) == 1:
        count = 1  # a single sentence is a worst one
    best_first = sorted(worst_first[count:], key=lambda i: (-scores[i], -len(sources[i])))
    return worst_first[:count], best_first[:count]


def translation_versions(
    examples: Mapping[int, Sequence[ExampleTranslation]],
) -> Iterator[dict[str, Any]]:
    """Yield for each validation sentence how its translation changed in the course of training.

    `examples` has the sentences with their translations of each validation, by optimiser step. Each
    dict has `example`, the sentence at the last step; `versions`, pairs of steps ("100 – 300") and
    translation; `shown`, at most `MAX_VERSIONS` of these pairs, evenly spaced.
    """
    newest_step = max(examples)
    last_examples = examples[newest_step]
    for index, last_example in enumerate(last_examples):
        history = [
            (step, sentences[index].translation)
            for step, sentences in sorted(examples.items())
            if index < len(sentences)
        ]
        versions = []  # consecutive steps with the same translation are one version
        for text, same_translation in groupby(history, key=itemgetter(1)):
            steps = [step for step, _text in same_translation]
            first, last = steps[0], steps[-1]
            versions.append((f"{first:,} – {last:,}" if first < last else f"{first:,}", text))
        shown = [versions[n] for n in evenly_spaced(len(versions), MAX_VERSIONS)]
        yield {"example": last_example, "versions": versions, "shown": shown}


def mark_shared_words(text: str, other: str) -> Iterator[tuple[str, bool]]:
    """Yield each word of `text`, and whether it is also in `other` (ignoring case, punctuation).

    If `other` has a word n times, only its first n places in `text` are yielded with True. The
    spaces between words are yielded as well, with False.
    """
    other_words = (other[start:end] for start, end in spaced_word_spans(other))
    unmatched = Counter(map(_bare, other_words))  # places in `other` of each word
    last_end = 0
    for start, end in spaced_word_spans(text):
        if 0 < last_end < start:
            yield " ", False
        last_end = end
        bare = _bare(text[start:end])
        unmatched[bare] -= 1  # below 0: `other` has no more of it
        yield text[start:end], unmatched[bare] >= 0


def _bare(word: str) -> str:
    """Remove case and outer punctuation; a word of punctuation alone is returned unchanged."""
    return fold_case(word).strip(".,;:!?\"'()[]«»„“”‘’…") or word


def attention_data(sentence: SentenceAttention) -> dict[str, Any]:
    """Return all attention maps of a sentence as JSON data for page.js.

    The weights (layers, H, T, S) are Base64 of bytes, 255 for a weight of 1.
    """
    kinds = {}
    for kind in KINDS:
        count = len(getattr(sentence.record, kind))
        layers = [attention_map(sentence, kind, n) for n in range(1, count + 1)]
        first = layers[0]  # its labels and titles are those of all layers
        weights = np.stack([layer.weights for layer in layers])  # (layers, H, T, S)
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


def setting_text(value: object) -> str:
    """Format a setting's value for the page: lists as words, commas in large numbers, None as –."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return " ".join(map(setting_text, value)) or "–"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {item}" for key, item in value.items() if item is not None)
    return f"{value:,}" if isinstance(value, int) and abs(value) >= 10_000 else str(value)
