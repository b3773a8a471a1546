"""All scores of one translation, and which published scores they may be compared with."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from nmt.evaluation.metrics import PLAIN, Metric, Score, bleu_metric, chrf_metric, ter_metric
from nmt.evaluation.paper_bleu import PUBLISHED, has_paper_bleu, language_codes, paper_bleu
from nmt.evaluation.test_sets import EvaluationSet

WIDTH = 100
"""columns of a terminal that a remark may take"""

TOKENIZED_REMARK = (
    "These count tokens as they are in the files: they compare only with scores of the same "
    "references, tokenised and cased in the same way."
)
PLAIN_REMARK = (
    "BLEU and chrF++ compare with figures of the same signature on the same test set, and with "
    "no others."
)
LANGUAGES_REMARK = "Say the languages, such as en-de, for the paper's own BLEU as well."


@dataclass(frozen=True)
class ScoreSheet:
    """Scores of one text (the first is the one to report) and remarks; `str()` gives a table."""

    scores: list[Score]
    remarks: list[str] = field(default_factory=list)
    """sentences that say which other scores these may be compared with"""

    def __str__(self) -> str:
        width = max(len(score.name) for score in self.scores)
        head = f"{'':{width}}   score"
        if any(score.confidence for score in self.scores):
            head += "   95 % interval"
        rows = (_row(score, width) for score in self.scores)
        remarks = (textwrap.fill(remark, WIDTH) for remark in self.remarks)
        signatures = (f"{score.name:{width}}  {score.signature}" for score in self.scores)
        return "\n".join([head, *rows, "", *remarks, "", *signatures])

    def as_json(self) -> dict[str, object]:
        """Return values for JSON: the fields of the first score, and all scores under `scores`."""
        return {
            **self.scores[0].as_json(),
            "scores": [score.as_json() for score in self.scores],
            "remarks": self.remarks,
        }


def _row(score: Score, name_width: int) -> str:
    row = f"{score.name:{name_width}}  {score.value:6.2f}"
    if interval := score.confidence:
        row += (
            f"   {interval['low']:.2f} to {interval['high']:.2f} (± {interval['half_width']:.2f})"
        )
    return row


def sheet_metrics(test_set: EvaluationSet, ter: bool = False) -> list[Metric]:
    """Return the metrics of a score sheet in the order of its rows: BLEU, chrF++, TER if `ter`.

    The paper's BLEU is not among them: it is no metric of sacreBLEU, and `paper_bleu` computes it.
    """
    metrics = [bleu_metric(test_set.tokenizer), chrf_metric(word_order=2)]
    return [*metrics, ter_metric()] if ter else metrics


def score_text(
    hypotheses: Sequence[str], test_set: EvaluationSet, ter: bool = False, confidence: bool = True
) -> list[Score]:
    """Return the BLEU and chrF++ of a text, and its TER if `ter`, in this order.

    With `confidence` each has a 95 % interval. If the test set is tokenised, the names of the
    scores begin with "tokenised".

    Raises:
        DataError: There are no sentences, or the numbers of hypotheses and references differ.
    """
    metrics = sheet_metrics(test_set, ter)
    scores = [metric.score(hypotheses, test_set.references, confidence) for metric in metrics]
    if test_set.tokenized:
        return [replace(score, name=f"tokenised {score.name}") for score in scores]
    return scores


def score_sheet(
    hypotheses: Sequence[str], test_set: EvaluationSet, ter: bool = False, confidence: bool = True
) -> ScoreSheet:
    """Return BLEU, chrF++, TER if `ter`, the paper's BLEU where it can be measured, and remarks.

    With `confidence` each score has a 95 % interval. The paper's BLEU needs plain text in known
    languages that have spaces between words. The remarks say what the scores compare with.

    Raises:
        DataError: There are no sentences, or the numbers of hypotheses and references differ.
    """
    scores = score_text(hypotheses, test_set, ter, confidence)
    languages = test_set.languages
    if test_set.tokenized:
        return ScoreSheet(scores, [TOKENIZED_REMARK])
    if languages is None:
        return ScoreSheet(scores, [PLAIN_REMARK, LANGUAGES_REMARK])
    if test_set.tokenizer != PLAIN or not has_paper_bleu(languages):
        return ScoreSheet(scores, [PLAIN_REMARK])
    paper = paper_bleu(hypotheses, test_set.references, languages, confidence)
    remark = _paper_remark(paper.name, test_set.official_name, languages)
    return ScoreSheet([*scores, paper], [PLAIN_REMARK, remark])


def _paper_remark(name: str, official_name: str, languages: tuple[str, str]) -> str:
    """Return a sentence: which figure of the paper the score `name` of `paper_bleu` compares with.

    `official_name` is sacreBLEU's name of the test set; empty if it is not one of sacreBLEU's.
    """
    if name != "paper BLEU":
        return (
            f"{name} counts the tokens of tokenizer.perl, as older papers do; the paper has no "
            f"figure for {'-'.join(languages)}."
        )
    if published := PUBLISHED.get((official_name, *language_codes(languages))):
        return f"{name} compares with the paper's {published}, and not with figures of sacreBLEU."
    which_text = "this text is not recognised as it"
    if official_name:
        which_text = f"this is {official_name}"
    return (
        f"{name} is measured as the paper measured newstest2014 and compares with its figures on "
        f"that set alone, unchanged; {which_text}."
    )


def per_sentence_scores(
    hypotheses: Sequence[str], test_set: EvaluationSet, ter: bool = False
) -> list[dict[str, float]]:
    """Return the scores of each sentence by name (BLEU, chrF++, TER if `ter`), to two decimals.

    Raises:
        DataError: There are no sentences, or the numbers of hypotheses and references differ.
    """
    sentences: list[dict[str, float]] = [{} for _ in hypotheses]
    for metric in sheet_metrics(test_set, ter):
        scores = metric.score_sentences(hypotheses, test_set.references)
        for sentence, score in zip(sentences, scores, strict=True):
            sentence[metric.name] = round(score, 2)
    return sentences
