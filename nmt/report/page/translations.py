"""The chapter on single sentences: how their translations changed while the model learnt."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby

from nmt.report.page.html import Html, element, folded, joined, missing, note, section
from nmt.training.examples import ExampleTranslation

MOST_STAGES = 7
"""shown of a sentence; the others are folded away"""


def marked(text: str, other: str) -> Html:
    """`text` with those words set off that also stand in `other`, each as often as there."""
    left = Counter(map(_bare, other.split()))
    words = []
    for word in text.split():
        key = _bare(word)
        if left[key] > 0:
            left[key] -= 1
            words.append(element("mark", word))
        else:
            words.append(joined([word]))
    return Html(" ".join(words))


def _bare(word: str) -> str:
    """Without the punctuation at its ends; punctuation alone stays as it is."""
    return word.casefold().strip(".,;:!?\"'()[]«»„“”‘’…") or word


def translations_section(examples: Mapping[int, Sequence[ExampleTranslation]]) -> Html:
    """The first sentences of the validation set, stage by stage."""
    title = "Translations over time"
    if not examples:
        return section(
            "translations",
            title,
            missing(
                "The run has kept no translations: it was not validated yet, or "
                "training.validation_metric is loss, for which nothing is translated."
            ),
        )
    last = examples[max(examples)]
    children = [_sentence(n, examples) for n in range(len(last))]
    words = "Greedy search on the validation set; words that the reference has as well are marked."
    return section("translations", title, note(words), *children)


def _sentence(number: int, examples: Mapping[int, Sequence[ExampleTranslation]]) -> Html:
    """One sentence: source, reference, and each translation with the steps that gave it."""
    steps = [step for step in sorted(examples) if number < len(examples[step])]
    example = examples[steps[-1]][number]
    stages = []
    for text, group in groupby(steps, lambda step: examples[step][number].translation):
        members = list(group)
        span = f"{members[0]:,}" + (f" – {members[-1]:,}" if len(members) > 1 else "")
        stages.append(line(span, marked(text, example.reference)))
    shown = [stages[n] for n in evenly(len(stages), MOST_STAGES)]
    parts = [
        line("source", example.source, "given"),
        line("reference", example.reference, "given"),
        *shown,
    ]
    if len(shown) < len(stages):
        parts.append(folded(f"all {len(stages)} versions", *stages))
    return element("article", *parts, class_="sentence")


def line(label: str, text: str, kind: str = "") -> Html:
    """A sentence with what it is."""
    words = text if text.strip() else element("span", "(empty)", class_="quiet")
    shown = element("span", words, dir="auto")
    return element(
        "div", element("span", label, class_="label"), shown, class_=f"pair {kind}".strip()
    )


def evenly(count: int, most: int) -> list[int]:
    """At most `most` of the numbers below `count`, evenly spread, the first and last among them."""
    if count <= most:
        return list(range(count))
    return sorted({round(n * (count - 1) / (most - 1)) for n in range(most)})
