"""The chapter on translations: how those of some sentences changed during training."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby

from nmt.report.metrics_log import evenly_spaced
from nmt.report.page.html import Html, collapsible, concatenate, element, note, placeholder, section
from nmt.training.examples import ExampleTranslation

MAX_VERSIONS = 7
"""versions of a translation that are shown; all others are collapsed"""


def mark_shared_words(text: str, other: str) -> Html:
    """Mark the words of `text` that `other` contains too, each at most as often as `other`."""
    left = Counter(map(_bare, other.split()))
    words = []
    for word in text.split():
        key = _bare(word)
        if left[key] > 0:
            left[key] -= 1
            words.append(element("mark", word))
        else:
            words.append(concatenate([word]))
    return Html(" ".join(words))


def _bare(word: str) -> str:
    """Remove case and outer punctuation; a word of punctuation alone stays as it is."""
    return word.casefold().strip(".,;:!?\"'()[]«»„“”‘’…") or word


def translations_section(examples: Mapping[int, Sequence[ExampleTranslation]]) -> Html:
    """Return the first sentences of the validation set with their translations over time."""
    title = "Translations over time"
    if not examples:
        return section(
            "translations",
            title,
            placeholder(
                "The run has kept no translations: it was not validated yet, or "
                "training.validation_metric is loss, for which nothing is translated."
            ),
        )
    last = examples[max(examples)]
    children = [_sentence(n, examples) for n in range(len(last))]
    words = "Greedy search on the validation set; words that the reference has as well are marked."
    return section("translations", title, note(words), *children)


def _sentence(number: int, examples: Mapping[int, Sequence[ExampleTranslation]]) -> Html:
    """Show source, reference, and each translation with the steps that produced it."""
    steps = [step for step in sorted(examples) if number < len(examples[step])]
    example = examples[steps[-1]][number]
    versions = []
    for text, group in groupby(steps, lambda step: examples[step][number].translation):
        members = list(group)
        span = f"{members[0]:,}" + (f" – {members[-1]:,}" if len(members) > 1 else "")
        versions.append(labelled_text(span, mark_shared_words(text, example.reference)))
    shown = [versions[n] for n in evenly_spaced(len(versions), MAX_VERSIONS)]
    parts = [
        labelled_text("source", example.source, "given"),
        labelled_text("reference", example.reference, "given"),
        *shown,
    ]
    if len(shown) < len(versions):
        parts.append(collapsible(f"all {len(versions)} versions", *versions))
    return element("article", *parts, class_="sentence")


def labelled_text(label: str, text: str, kind: str = "") -> Html:
    """Return a sentence after its label; `kind` is a class of page.css."""
    words = text if text.strip() else element("span", "(empty)", class_="quiet")
    shown = element("span", words, dir="auto")
    return element(
        "div", element("span", label, class_="label"), shown, class_=f"pair {kind}".strip()
    )
