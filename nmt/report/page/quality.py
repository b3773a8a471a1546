"""The chapter on quality: the score of a test set, what it depends on, and its extremes."""

from collections.abc import Sequence
from dataclasses import dataclass

from nmt.evaluation.breakdown import Row
from nmt.evaluation.metrics import Score
from nmt.report.page.charts import Bar, bar_chart
from nmt.report.page.html import Html, element, missing, note, section, table
from nmt.report.page.translations import line, marked

EXTREMES = 8
"""sentences shown of the worst and of the best"""


@dataclass(frozen=True)
class Judged:
    """A test set as the run translates it."""

    name: str
    sources: Sequence[str]
    references: Sequence[str]
    translations: Sequence[str]
    sentences_in_all: int
    """of the set; more than were translated where only its beginning was"""
    scores: Sequence[Score]
    sentence_scores: Sequence[float]
    """chrF of each sentence, 0 to 100"""
    by_length: Sequence[Row]
    by_rarity: Sequence[Row]
    rarity_words: str
    """what is rare, in words"""

    @property
    def title(self) -> str:
        """What was translated."""
        count, whole = len(self.sources), self.sentences_in_all
        return f"{self.name} set" if count == whole else f"first {count:,} of the {self.name} set"


def quality_section(judged: Judged | str) -> Html:
    """What is known of a test set, or the sentence that says why nothing is."""
    title = "Quality"
    if isinstance(judged, str):
        return section("quality", title, missing(judged))
    rows = [[score.name, *_figures(score)] for score in judged.scores]
    count, whole = len(judged.sources), judged.sentences_in_all
    part = f"{whole:,}" if count == whole else f"the first {count:,} of {whole:,}"
    return section(
        "quality",
        title,
        note(f"The run's {judged.name} set, {part} sentences, with the run's own beam."),
        table(["metric", "score", "95 % interval"], rows),
        *(element("p", f"{s.name}: {s.signature}", class_="signature") for s in judged.scores),
        element("div", *_charts(judged), class_="charts"),
        *_extremes(judged),
    )


def _figures(score: Score) -> list[str]:
    interval = score.confidence
    span = f"{interval.low:.2f} – {interval.high:.2f}" if interval else "–"
    return [f"{score.value:.2f}", span]


def _charts(judged: Judged) -> list[Html]:
    charts = [
        bar_chart("BLEU by length", "of the reference in words", map(_bar, judged.by_length), 100)
    ]
    if judged.by_rarity:
        bars = map(_bar, judged.by_rarity)
        charts.append(bar_chart("F1 of words by rarity", judged.rarity_words, bars, 100))
    else:
        charts.append(element("figure", missing(judged.rarity_words), class_="chart"))
    return charts


def _bar(row: Row) -> Bar:
    return Bar(row.label, row.scores[0], f"{row.scores[0]:.1f}", f"{row.size:,}")


def _extremes(judged: Judged) -> list[Html]:
    """The sentences with the lowest and the highest chrF; no sentence is in both."""
    scores = judged.sentence_scores
    order = sorted(range(len(scores)), key=scores.__getitem__)
    most = min(EXTREMES, len(order) // 2) or len(order)
    longest_first = sorted(order[most:], key=lambda i: (-scores[i], -len(judged.sources[i])))
    words = "By chrF of the sentence; words that the reference has as well are marked."
    parts = [element("h3", "The worst sentences"), note(words)]
    parts += [_sentence(judged, i) for i in order[:most]]
    if len(order) > most:
        parts.append(element("h3", "The best sentences"))
        parts += [_sentence(judged, i) for i in longest_first[:most]]
    return parts


def _sentence(judged: Judged, i: int) -> Html:
    return element(
        "article",
        element("span", f"chrF {judged.sentence_scores[i]:.0f} · line {i + 1:,}", class_="badge"),
        line("source", judged.sources[i], "given"),
        line("reference", judged.references[i], "given"),
        line("model", marked(judged.translations[i], judged.references[i])),
        class_="sentence",
    )
