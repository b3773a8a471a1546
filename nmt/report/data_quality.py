"""The output of `nmt data inspect`: tables for a terminal."""

from collections.abc import Iterator
from typing import Any

from nmt.data.text.cleaning import RULES
from nmt.data.text.quality import BINS, LanguageStatistics, Leak, Quality
from nmt.report.text_format import truncate

BAR = 40
"""characters of the longest bar of a histogram"""
EXAMPLE = 100
"""characters of an example at most"""


def render_quality(quality: Quality) -> str:
    """Return the whole report."""
    parts = [_cleaning(quality.counts), _sides(quality.source, quality.target)]
    parts += [_histogram(quality.source), _histogram(quality.target), _leaks(quality.leaks)]
    return "\n\n".join("\n".join(part) for part in parts)


def _cleaning(counts: dict[str, Any]) -> Iterator[str]:
    read = counts["read"]
    yield "training pairs"
    yield f"  {'read':44}{read:>12,}"
    for rule, words in RULES.items():
        if dropped := counts["dropped"][rule]:
            yield f"  {'left out: ' + words:44}{dropped:>12,}{dropped / read:>9.2%}"
            for example in counts["examples"][rule]:
                sides = f"{example['source']!r} | {example['target']!r}"
                yield f"      {example['file']}:{example['line']}: {truncate(sides, EXAMPLE)}"
    yield f"  {'kept':44}{counts['kept']:>12,}{counts['kept'] / read:>9.2%}"


def _sides(*sides: LanguageStatistics) -> Iterator[str]:
    def row(name: str, values: list[str]) -> str:
        return f"  {name:44}" + "".join(f"{value:>12}" for value in values)

    yield row("", [side.language for side in sides]).rstrip()
    yield row("tokens", [f"{side.tokens:,}" for side in sides])
    for percent in sides[0].percentiles:
        name = {50: "median", 100: "longest"}.get(percent, f"{percent} %")
        yield row(f"sentence length, {name}", [str(side.percentiles[percent]) for side in sides])
    yield row("tokens per word (held-out)", [f"{side.tokens_per_word:.2f}" for side in sides])
    yield row("unknown tokens (held-out)", [f"{side.unknown_rate:.3%}" for side in sides])


def _histogram(side: LanguageStatistics) -> Iterator[str]:
    yield f"sentence length in tokens, {side.language}"
    most, total = max(side.histogram), sum(side.histogram)
    ends = [f"{upper - 1}" for upper in BINS[1:]] + [""]
    for lower, end, count in zip(BINS, ends, side.histogram, strict=True):
        if count:
            span = f"{lower}" if str(lower) == end else f"{lower}-{end}" if end else f"{lower}+"
            bar = "█" * max(1, round(BAR * count / most))
            yield f"  {span:>9} {count:>11,} {count / total:>6.1%} {bar}"


def _leaks(leaks: list[Leak]) -> Iterator[str]:
    yield "held-out sentences that stand in the training text"
    columns = ("sentences", "pairs", "sources", "pairs*", "sources*")
    yield "  " + f"{'':12}" + "".join(f"{column:>11}" for column in columns)
    for leak in leaks:
        exact, plain = (leak.pairs, leak.sources), (leak.pairs_normalized, leak.sources_normalized)
        values = (leak.sentences, *exact, *plain)
        yield "  " + f"{leak.split:12}" + "".join(f"{value:>11,}" for value in values)
    yield "  * but for case, punctuation and spaces"
    for leak in leaks:
        for example in leak.examples:
            yield f"  {leak.split}: {truncate(example, EXAMPLE)}"
