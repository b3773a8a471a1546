"""The chapter on quality: scores of a test set, by length and rarity, best and worst sentences."""

from collections.abc import Sequence
from typing import Any

from nmt.evaluation.breakdown import Row
from nmt.evaluation.metrics import Score
from nmt.report.page.charts import Bar
from nmt.report.scored_test_set import ScoredTestSet

EXTREMES = 8
"""number of worst and of best sentences that are shown"""


def quality_chapter(scored: ScoredTestSet | str) -> dict[str, Any] | str:
    """Return the values of quality.html, or the sentence that says why there are no scores.

    `worst` and `best` are the indices of the sentences with the lowest and the highest chrF; no
    sentence is in both lists.
    """
    if isinstance(scored, str):
        return scored
    count, whole = len(scored.sources), scored.sentences_in_all
    scores = scored.sentence_scores
    order = sorted(range(count), key=scores.__getitem__)
    most = min(EXTREMES, count // 2) or count
    best_first = sorted(order[most:], key=lambda i: (-scores[i], -len(scored.sources[i])))
    return {
        "scored": scored,
        "part": f"{whole:,}" if count == whole else f"the first {count:,} of {whole:,}",
        "scores": [_score_row(score) for score in scored.scores],
        "by_length": _bars(scored.by_length),
        "by_rarity": _bars(scored.by_rarity),
        "worst": order[:most],
        "best": best_first[:most],
    }


def _score_row(score: Score) -> list[str]:
    interval = score.confidence
    span = f"{interval.low:.2f} – {interval.high:.2f}" if interval else "–"
    return [score.name, f"{score.value:.2f}", span]


def _bars(rows: Sequence[Row]) -> list[Bar]:
    return [Bar(r.label, r.scores[0], f"{r.scores[0]:.1f}", f"{r.size:,}") for r in rows]
