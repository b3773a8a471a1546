"""The chapter on quality: extremes in order, none in both lists."""

import re

from nmt.evaluation.breakdown import Row
from nmt.evaluation.metrics import Score
from nmt.report.page.quality import EXTREMES, Judged, quality_section


def judged(*scores: float, all_sentences: int | None = None) -> Judged:
    texts = [f"sentence {n}" for n in range(len(scores))]
    return Judged(
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
    places = shown(quality_section(judged(*scores)))
    assert [scores[i] for i in places[:EXTREMES]] == sorted(scores)[:EXTREMES]
    assert [scores[i] for i in places[EXTREMES:]] == sorted(scores, reverse=True)[:EXTREMES]


def test_no_sentence_is_among_both() -> None:
    for count in range(1, 20):
        places = shown(quality_section(judged(*map(float, range(count)))))
        assert len(places) == len(set(places))
        assert 0 in places


def test_the_score_has_its_signature_and_a_part_is_called_a_part() -> None:
    html = quality_section(judged(1.0, 2.0, all_sentences=9))
    assert "12.35" in html or "12.34" in html
    assert "nrefs:1|case:mixed" in html and "the first 2 of 9 sentences" in html
    assert "Rarity is unknown &lt;here&gt;." in html


def test_why_there_is_no_score_is_said() -> None:
    assert "no test <set>".replace("<", "&lt;").replace(">", "&gt;") in quality_section(
        "no test <set>"
    )
