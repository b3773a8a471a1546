"""The chapter on quality: extremes in order, none in both lists."""

import re

from nmt.evaluation.breakdown import Row
from nmt.evaluation.metrics import Score
from nmt.report.page.quality import EXTREMES, quality_chapter
from nmt.report.page.template import render
from nmt.report.scored_test_set import ScoredTestSet


def chapter(scored: ScoredTestSet | str) -> str:
    return render("quality.html", {"quality": quality_chapter(scored)})


def scored(*scores: float, all_sentences: int | None = None) -> ScoredTestSet:
    texts = [f"sentence {n}" for n in range(len(scores))]
    return ScoredTestSet(
        name="test",
        sources=texts,
        references=texts,
        translations=texts,
        sentences_in_all=all_sentences or len(scores),
        scores=[Score("BLEU", 12.345, "nrefs:1|case:mixed", None)],
        sentence_scores=scores,
        by_length=[Row("1–5", 7, (50.0,))],
        by_rarity=[],
        rarity_words="Rarity is unknown <here>.",
    )


def shown(html: str) -> list[int]:
    return [int(number) - 1 for number in re.findall(r"line (\d+)<", html)]


def test_the_worst_come_first_and_the_best_after_them() -> None:
    scores = [float((n * 37) % 101) for n in range(101)]
    places = shown(chapter(scored(*scores)))
    assert [scores[i] for i in places[:EXTREMES]] == sorted(scores)[:EXTREMES]
    assert [scores[i] for i in places[EXTREMES:]] == sorted(scores, reverse=True)[:EXTREMES]


def test_no_sentence_is_in_both_lists() -> None:
    for count in range(1, 20):
        places = shown(chapter(scored(*map(float, range(count)))))
        assert len(places) == len(set(places))
        assert 0 in places


def test_signature_and_part_of_the_set_are_shown() -> None:
    html = chapter(scored(1.0, 2.0, all_sentences=9))
    assert "12.35" in html or "12.34" in html
    assert "nrefs:1|case:mixed" in html and "the first 2 of 9 sentences" in html
    assert "Rarity is unknown &lt;here&gt;." in html


def test_a_missing_score_is_explained() -> None:
    assert "no test &lt;set&gt;" in chapter("no test <set>")
