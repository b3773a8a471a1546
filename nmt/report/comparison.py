"""The output of `nmt compare`: text for a terminal of 100 columns."""

import textwrap
from collections.abc import Iterator

from nmt.evaluation.compare import Breakdown, ComparedSentence, Comparison
from nmt.evaluation.metrics import Score

WIDTH = 100


def render_comparison(comparison: Comparison) -> str:
    """Return the whole comparison: scores, significance, breakdowns and examples."""
    labels = [system.label for system in comparison.systems]
    parts = [_scores(comparison), _differences(comparison)]
    parts += [_breakdown(breakdown, labels) for breakdown in comparison.breakdowns]
    for label, examples in comparison.examples.items():
        if examples:
            parts.append(_examples(label, examples))
    return "\n\n".join("\n".join(part) for part in parts)


def _scores(comparison: Comparison) -> Iterator[str]:
    count = len(comparison.test_set.references)
    yield f"{count} sentence{'s' * (count != 1)} of {comparison.test_set}"
    first = comparison.systems[0].scores
    yield "   " + "".join(f"{score.name:26}" for score in first) + "from"
    for system in comparison.systems:
        columns = "".join(f"{_with_interval(score):26}" for score in system.scores)
        yield f"{system.label}  {columns}{system.name}"
    for score in first:
        yield f"{score.name}: {score.signature}"


def _with_interval(score: Score) -> str:
    if interval := score.confidence:
        return f"{score.value:.2f} ({interval.low:.2f}-{interval.high:.2f})"
    return f"{score.value:.2f}"


def _differences(comparison: Comparison) -> Iterator[str]:
    for difference in comparison.differences:
        yield textwrap.fill(str(difference), WIDTH, subsequent_indent="  ")
    if len(comparison.differences) > 1:
        pairs = len(comparison.differences)
        yield f"(With {pairs} pairs, p has to be below 0.05 / {pairs}.)"


def _breakdown(breakdown: Breakdown, labels: list[str]) -> Iterator[str]:
    yield breakdown.title
    columns = "".join(f"{label:>8}" for label in labels)
    yield f"  {breakdown.grouped_by:>13}{breakdown.counted:>12}{columns}"
    for row in breakdown.rows:
        scores = "".join(f"{score:>8.2f}" for score in row.scores)
        yield f"  {row.label:>13}{row.size:>12,}{scores}"


def _examples(label: str, examples: list[ComparedSentence]) -> Iterator[str]:
    yield f"Sentences where {label} stands out most, by chrF++"
    for example in examples:
        scores = ", ".join(f"{label} {score:.1f}" for label, score in example.scores.items())
        yield f"line {example.line} ({scores})"
        if example.source is not None:
            yield _wrapped("source", example.source)
        yield _wrapped("reference", example.reference)
        for system, translation in example.translations.items():
            yield _wrapped(system, translation)


def _wrapped(name: str, text: str) -> str:
    """Wrap a text after its name, and replace characters that a terminal cannot print."""
    shown = "".join(c if c.isprintable() else " " if c.isspace() else "\ufffd" for c in text)
    return textwrap.fill(
        shown.strip() or "(nothing)",
        WIDTH,
        initial_indent=f"  {name:11}",
        subsequent_indent=" " * 13,
        break_on_hyphens=False,
    )
