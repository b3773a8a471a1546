"""The chapter on translations: how those of some sentences changed during training."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from nmt.report.metrics_log import evenly_spaced
from nmt.training.validation import ExampleTranslation

MAX_VERSIONS = 7
"""versions of a translation that are shown; all others are collapsed"""


def translations_chapter(
    examples: Mapping[int, Sequence[ExampleTranslation]],
) -> dict[str, Any] | str:
    """Return the values of translations.html, or a sentence that says why there are none.

    `examples` are the translations of the same first sentences of the validation set by step.
    """
    if not examples:
        return (
            "The run has kept no translations: it was not validated yet, or "
            "training.validation_metric is loss, for which nothing is translated."
        )
    last = examples[max(examples)]
    return {"sentences": [_sentence(number, examples) for number in range(len(last))]}


def _sentence(number: int, examples: Mapping[int, Sequence[ExampleTranslation]]) -> dict[str, Any]:
    """Return a sentence with its different translations, each with the steps that produced it."""
    steps = [step for step in sorted(examples) if number < len(examples[step])]
    versions = []
    for text, group in groupby(steps, lambda step: examples[step][number].translation):
        first, *others = group
        versions.append((f"{first:,} – {others[-1]:,}" if others else f"{first:,}", text))
    shown = [versions[n] for n in evenly_spaced(len(versions), MAX_VERSIONS)]
    return {"example": examples[steps[-1]][number], "versions": versions, "shown": shown}


def mark_shared_words(text: str, other: str) -> Iterator[tuple[str, bool]]:
    """Yield the words of `text`, and whether `other` contains them, each at most as often."""
    left = Counter(map(_bare, other.split()))
    for word in text.split():
        left[_bare(word)] -= 1
        yield word, left[_bare(word)] >= 0


def _bare(word: str) -> str:
    """Remove case and outer punctuation; a word of punctuation alone stays as it is."""
    return word.casefold().strip(".,;:!?\"'()[]«»„“”‘’…") or word
