import json
from dataclasses import replace

import pytest

from nmt.errors import DataError
from nmt.evaluation.metrics import Score, bleu, chrf_metric, ter_metric
from nmt.evaluation.paper_bleu import paper_bleu
from nmt.evaluation.score_sheet import ScoreSheet, per_sentence_scores, score_sheet
from nmt.evaluation.test_sets import EvaluationSet

HYPOTHESES = ["Die Katze saß auf der Matte.", "", "Ein Hund bellt den alten Baum an."]
REFERENCES = ["Die Katze saß auf einer Matte.", "Nein.", "Ein Hund bellt den alten Baum an."]
TEST_SET = EvaluationSet("mine", REFERENCES, None, ("en", "de"))
TOKENIZED_SET = replace(TEST_SET, tokenized=True)


def test_the_sheet_holds_each_metrics_score() -> None:
    sheet = score_sheet(HYPOTHESES, TEST_SET, ter=True)
    assert sheet.scores == [
        bleu(HYPOTHESES, REFERENCES),
        chrf_metric(word_order=2).score(HYPOTHESES, REFERENCES),
        ter_metric().score(HYPOTHESES, REFERENCES),
        paper_bleu(HYPOTHESES, REFERENCES, ("en", "de")),
    ]
    assert sheet.scores[0] == sheet.scores[0]


def test_tokens_are_scored_as_they_are_and_have_no_papers_bleu() -> None:
    sheet = score_sheet(HYPOTHESES, TOKENIZED_SET, ter=True, confidence=False)
    names = [score.name for score in sheet.scores]
    assert names == ["tokenised BLEU", "tokenised chrF++", "tokenised TER"]
    assert sheet.scores[0].value == bleu(HYPOTHESES, REFERENCES, "none", confidence=False).value
    assert "tokenised and cased in the same way" in sheet.remarks[0]


@pytest.mark.parametrize(
    ("languages", "official_name", "remark"),
    [
        (None, "", "Say the languages, such as en-de, for the paper's own BLEU as well."),
        (("en", "de"), "", "paper BLEU is measured as the paper measured newstest2014"),
        (("en", "de"), "", "that set alone, unchanged; this text is not recognised as it."),
        (("en", "de"), "wmt19", "on that set alone, unchanged; this is wmt19."),
        (("en", "de"), "wmt14/full", "compares with the paper's 27.3 (base) and 28.4 (big), and"),
        (("en", "de"), "wmt13", "25.8 (base) and 26.4 (big) of its table 3"),
        (("en", "fr"), "wmt14/full", "compares with the paper's 38.1 (base) and 41.8 (big"),
        (("de", "en"), "wmt14/full", "Moses BLEU counts the tokens of tokenizer.perl"),
        (("en", "zh"), "wmt19", "compare with figures of the same signature"),
    ],
)
def test_it_says_what_may_be_compared_with_what(
    languages: tuple[str, str] | None, official_name: str, remark: str
) -> None:
    test_set = EvaluationSet("mine", REFERENCES, None, languages, official_name)
    sheet = score_sheet(HYPOTHESES, test_set, confidence=False)
    assert remark in sheet.remarks[-1]


def test_the_table_is_no_wider_than_a_terminal_but_for_signatures() -> None:
    sheet = score_sheet(HYPOTHESES, TEST_SET, ter=True)
    comet = Score("COMET × 100", 81.25, "comet-score")
    sheet = ScoreSheet([*sheet.scores, comet], [*sheet.remarks, "COMET is another thing."])
    table, remarks, signatures = str(sheet).split("\n\n")
    rows = table.split("\n")
    assert rows[0].split() == ["score", "95", "%", "interval"]
    assert [row[:11].strip() for row in rows[1:]] == [s.name[:11] for s in sheet.scores]
    assert rows[-1] == "COMET × 100   81.25"
    assert sheet.scores[0].confidence is not None
    assert f"{sheet.scores[0].value:.2f}   {sheet.scores[0].confidence['low']:.2f} to" in rows[1]
    assert max(map(len, rows + remarks.split("\n"))) <= 100
    assert len(signatures.split("\n")) == 5
    plain = str(score_sheet(HYPOTHESES, TEST_SET, confidence=False))
    assert plain.split("\n")[0].split() == ["score"]


def test_json_holds_the_main_score_and_all() -> None:
    sheet = score_sheet(HYPOTHESES, EvaluationSet("mine", REFERENCES), confidence=False)
    found = json.loads(json.dumps(sheet.as_json()))
    assert found["score"] == round(sheet.scores[0].value, 2)
    assert found["scores"] == [score.as_json() for score in sheet.scores]
    assert found["remarks"] == sheet.remarks


def test_each_sentence_has_its_scores() -> None:
    rows = per_sentence_scores(HYPOTHESES, TEST_SET, ter=True)
    assert rows[1] == {"BLEU": 0.0, "chrF++": 0.0, "TER": 100.0}
    assert rows[2] == {"BLEU": 100.0, "chrF++": 100.0, "TER": 0.0}
    assert 0 < rows[0]["BLEU"] < 100
    assert list(per_sentence_scores(HYPOTHESES, TOKENIZED_SET)[0]) == ["BLEU", "chrF++"]


def test_unequal_counts_are_an_error() -> None:
    with pytest.raises(DataError, match="3 translations but 2 references"):
        score_sheet(HYPOTHESES, EvaluationSet("mine", REFERENCES[:2]))
