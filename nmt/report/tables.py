"""The text of `nmt compare` and `nmt data inspect` for a terminal of 100 columns.

The page of a report shows the same rows about the data.
"""

import math
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from nmt.data.text.cleaning import RULES
from nmt.data.text.quality import BINS, LanguageStatistics, Leak, Quality
from nmt.evaluation.compare import Breakdown, ComparedSentence, Comparison
from nmt.evaluation.metrics import Score

WIDTH = 100
BAR = 40
"""characters of the longest bar of a histogram"""


def render_comparison(comparison: Comparison) -> str:
    """Return the output of `nmt compare`: scores, significance, breakdowns and examples."""
    labels = [system.label for system in comparison.systems]
    parts = [_scores(comparison), _differences(comparison)]
    parts += [_breakdown(breakdown, labels) for breakdown in comparison.breakdowns]
    for label, examples in comparison.examples.items():
        if examples:
            parts.append(_sentences(label, examples))
    return "\n\n".join("\n".join(part) for part in parts)


def render_quality(quality: Quality) -> str:
    """Return the output of `nmt data inspect`: cleaning, lengths and leaks of a corpus."""
    sides = [quality.source, quality.target]
    parts = [_cleaning(quality.counts), _lengths(sides)]
    parts += [_histogram(side) for side in sides] + [_leaks(quality.leaks)]
    return "\n\n".join("\n".join(part) for part in parts)


def _columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the rows as lines; columns are aligned, all but the first one to the right."""
    first, *others = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for label, *cells in rows:
        right = (f"{cell:>{width + 3}}" for cell, width in zip(cells, others, strict=True))
        yield f"  {label:{first}}{''.join(right)}"


def _scores(comparison: Comparison) -> Iterator[str]:
    count = len(comparison.test_set.references)
    yield f"{count} sentence{'s' * (count != 1)} of {comparison.test_set}"
    first = comparison.systems[0].scores
    rows = [["", *(score.name for score in first)]]
    for system in comparison.systems:
        rows.append([f"{system.label}  {system.name}", *map(_with_interval, system.scores)])
    yield from _columns(rows)
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
    rows = [[breakdown.grouped_by, breakdown.counted, *labels]]
    for row in breakdown.rows:
        rows.append([row.label, f"{row.size:,}", *(f"{score:.2f}" for score in row.scores)])
    yield from _columns(rows)


def _sentences(label: str, sentences: list[ComparedSentence]) -> Iterator[str]:
    yield f"Sentences where {label} stands out most, by chrF++"
    for sentence in sentences:
        scores = ", ".join(f"{label} {score:.1f}" for label, score in sentence.scores.items())
        yield f"line {sentence.line} ({scores})"
        if sentence.source is not None:
            yield _wrapped("source", sentence.source)
        yield _wrapped("reference", sentence.reference)
        for system, translation in sentence.translations.items():
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


def cleaning_rows(counts: dict[str, Any]) -> list[list[str]]:
    """Return what was read, left out by each rule and kept: name, number of pairs, share."""
    pairs = {"read": counts["read"]}
    for rule, words in RULES.items():
        if dropped := counts["dropped"].get(rule):
            pairs[f"left out: {words}"] = dropped
    pairs["learnt from"] = counts["kept"]
    read = max(counts["read"], 1)
    return [[name, f"{count:,}", f"{count / read:.2%}"] for name, count in pairs.items()]


def cleaning_examples(counts: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """Return the first pairs that each rule left out: why, file and line, source, target."""
    return [
        (words, f"{one['file']}:{one['line']}", one["source"], one["target"])
        for rule, words in RULES.items()
        for one in counts["examples"].get(rule, [])
    ]


def length_rows(sides: Sequence[LanguageStatistics]) -> list[list[str]]:
    """Return the number of tokens and the percentiles of the sentence length of both sides."""
    rows = [["tokens in all", *(f"{side.tokens:,}" for side in sides)]]
    for percent in sides[0].percentiles:
        name = {50: "median", 100: "longest"}.get(percent, f"{percent} % are no longer than")
        rows.append([name, *(f"{side.percentiles[percent]:,}" for side in sides)])
    return rows


def histogram(side: LanguageStatistics) -> list[tuple[str, int]]:
    """Return how many sentences have which length, without empty classes at both ends."""
    ends = [*(upper - 1 for upper in BINS[1:]), None]
    filled = [n for n, count in enumerate(side.histogram) if count]
    bars = []
    for n in range(filled[0], filled[-1] + 1) if filled else ():
        low, high = BINS[n], ends[n]
        span = f"{low}" if low == high else f"{low}–{high}" if high else f"{low} and more"
        bars.append((span, side.histogram[n]))
    return bars


def _cleaning(counts: dict[str, Any]) -> Iterator[str]:
    yield "training pairs"
    yield from _columns(cleaning_rows(counts))
    for words, place, source, target in cleaning_examples(counts):
        yield f"  {words}: {place}: {_truncate(f'{source!r} | {target!r}')}"


def _truncate(text: str) -> str:
    return text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"


def _lengths(sides: list[LanguageStatistics]) -> Iterator[str]:
    yield "sentence length in tokens"
    rows = [["", *(side.language for side in sides)], *length_rows(sides)]
    rows.append(["tokens per word (held-out)", *(f"{side.tokens_per_word:.2f}" for side in sides)])
    rows.append(["unknown tokens (held-out)", *(f"{side.unknown_rate:.3%}" for side in sides)])
    yield from _columns(rows)


def _histogram(side: LanguageStatistics) -> Iterator[str]:
    yield f"sentence length in tokens, {side.language}"
    total, most = sum(side.histogram), max(side.histogram)
    bars = histogram(side)
    rows = [[span, f"{count:,}", f"{count / total:.1%}"] for span, count in bars]
    for line, (_, count) in zip(_columns(rows), bars, strict=True):
        yield f"{line} {'█' * math.ceil(BAR * count / most)}"


def _leaks(leaks: list[Leak]) -> Iterator[str]:
    yield "held-out sentences that stand in the training text"
    rows = [["", "sentences", "pairs", "sources", "pairs*", "sources*"]]
    for leak in leaks:
        exact, plain = (leak.pairs, leak.sources), (leak.pairs_normalized, leak.sources_normalized)
        rows.append([leak.split, *(f"{count:,}" for count in (leak.sentences, *exact, *plain))])
    yield from _columns(rows)
    yield "  * but for case, punctuation and spaces"
    for leak in leaks:
        for example in leak.examples:
            yield f"  {leak.split}: {_truncate(example)}"
