"""The chapter on quality: scores of a test set, by length and rarity, best and worst sentences."""

from nmt.evaluation.breakdown import Row
from nmt.evaluation.metrics import Score
from nmt.report.page.charts import Bar, bar_chart
from nmt.report.page.html import Html, element, note, placeholder, section, table
from nmt.report.page.translations import labelled_text, mark_shared_words
from nmt.report.scored_test_set import ScoredTestSet

EXTREMES = 8
"""number of worst and of best sentences that are shown"""


def quality_section(scored: ScoredTestSet | str) -> Html:
    """Return the scores of a test set, or a sentence that says why there are none."""
    title = "Quality"
    if isinstance(scored, str):
        return section("quality", title, placeholder(scored))
    rows = [[score.name, *_figures(score)] for score in scored.scores]
    count, whole = len(scored.sources), scored.sentences_in_all
    part = f"{whole:,}" if count == whole else f"the first {count:,} of {whole:,}"
    return section(
        "quality",
        title,
        note(f"The run's {scored.name} set, {part} sentences, with the run's own beam."),
        table(["metric", "score", "95 % interval"], rows),
        *(element("p", f"{s.name}: {s.signature}", class_="signature") for s in scored.scores),
        element("div", *_charts(scored), class_="charts"),
        *_extremes(scored),
    )


def _figures(score: Score) -> list[str]:
    interval = score.confidence
    span = f"{interval.low:.2f} – {interval.high:.2f}" if interval else "–"
    return [f"{score.value:.2f}", span]


def _charts(scored: ScoredTestSet) -> list[Html]:
    charts = [
        bar_chart("BLEU by length", "of the reference in words", map(_bar, scored.by_length), 100)
    ]
    if scored.by_rarity:
        bars = map(_bar, scored.by_rarity)
        charts.append(bar_chart("F1 of words by rarity", scored.rarity_words, bars, 100))
    else:
        charts.append(element("figure", placeholder(scored.rarity_words), class_="chart"))
    return charts


def _bar(row: Row) -> Bar:
    return Bar(row.label, row.scores[0], f"{row.scores[0]:.1f}", f"{row.size:,}")


def _extremes(scored: ScoredTestSet) -> list[Html]:
    """Show the sentences with the lowest and the highest chrF; no sentence is in both lists."""
    scores = scored.sentence_scores
    order = sorted(range(len(scores)), key=scores.__getitem__)
    most = min(EXTREMES, len(order) // 2) or len(order)
    best_first = sorted(order[most:], key=lambda i: (-scores[i], -len(scored.sources[i])))
    words = "By chrF of the sentence; words that the reference has as well are marked."
    parts = [element("h3", "The worst sentences"), note(words)]
    parts += [_sentence(scored, i) for i in order[:most]]
    if len(order) > most:
        parts.append(element("h3", "The best sentences"))
        parts += [_sentence(scored, i) for i in best_first[:most]]
    return parts


def _sentence(scored: ScoredTestSet, i: int) -> Html:
    return element(
        "article",
        element("span", f"chrF {scored.sentence_scores[i]:.0f} · line {i + 1:,}", class_="badge"),
        labelled_text("source", scored.sources[i], "given"),
        labelled_text("reference", scored.references[i], "given"),
        labelled_text("model", mark_shared_words(scored.translations[i], scored.references[i])),
        class_="sentence",
    )
