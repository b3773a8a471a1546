"""The head of the page: figures where there are some."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from nmt.config import Config
from nmt.evaluation.metrics import Interval, Score
from nmt.report.page.summary import compared_weights, facts, start_time, tiles
from nmt.report.page.template import render

SCORE = Score("BLEU", 41.234, "", Interval(39.7, 42.7, 1.5))
CONFIG = Config.model_validate({"data": {"corpus": "demo", "tokenized": True}})


def summary(
    records: list[dict[str, Any]], problem: str = "", best: Mapping[str, Any] = MappingProxyType({})
) -> str:
    values = {
        "tiles": tiles(records, ("test set", SCORE), 2_093_056) if records else [],
        "problem": problem,
        "facts": facts(CONFIG, {}, 0, None),
        "candidates": compared_weights(best),
    }
    return render("summary.html", {"summary": values})


def test_each_figure_has_a_tile() -> None:
    records = [
        {"event": "validation", "step": 50, "bleu": 30.0, "seconds": 100},
        {"event": "validation", "step": 100, "bleu": 29.0, "seconds": 5400},
        {"event": "train", "step": 100, "target_tokens": 10_800_000},
    ]
    html = summary(records)
    for value in ("41.23", "± 1.50, test set", "30.00", "greedy, step 50", "1 h 30 min"):
        assert value in html
    for value in ("10.80 M", "2,000 a second", "2.09 M", "2,093,056", "demo, tokenised"):
        assert value in html


def test_a_run_with_only_a_recipe_has_a_summary() -> None:
    html = summary([], problem="metrics.jsonl: <gone>")
    assert "metrics.jsonl: &lt;gone&gt;" in html and "0 of " in html and "unknown" in html


def test_the_compared_weights_are_listed() -> None:
    best = {"candidates": {"averaged": {"loss": 1.5, "bleu": 40.0}, "step-5": {"loss": 1.25}}}
    html = summary([], best=best)
    assert ">averaged<" in html and ">1.250<" in html and ">–<" in html
    assert "compared at the end" not in summary([], best={"candidates": ["averaged"]})


def test_the_start_is_shown_to_the_minute() -> None:
    assert start_time({"started": "2026-11-21T21:08:18+00:00"}) == "2026-11-21 21:08 UTC"
    assert start_time({"started": "yesterday"}) == "yesterday"
