"""All scores of one translation, and with which published ones each may be compared."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field

from nmt.evaluation.metrics import (
    ALREADY_TOKENIZED,
    PLAIN,
    Score,
    bleu,
    chrf_plus_plus,
    named_for,
    sentence_scores,
    ter,
)
from nmt.evaluation.paper_bleu import PUBLISHED, codes_of, has_paper_bleu, paper_bleu
from nmt.evaluation.test_sets import EvaluationSet

WIDTH = 100
"""columns of a terminal that a remark may take"""

TOKENIZED_REMARK = (
    "These count tokens as they are in the files: they compare only with scores of the same "
    "references, tokenised and cased in the same way."
)


@dataclass(frozen=True)
class ScoreSheet:
    """Scores of one text, the one to report first; prints itself as a table."""

    scores: list[Score]
    remarks: list[str] = field(default_factory=list)
    """what each may be compared with, a sentence each"""

    @property
    def main(self) -> Score:
        """The score to report."""
        return self.scores[0]

    def plus(self, score: Score, remark: str) -> "ScoreSheet":
        """The same with one more score."""
        return ScoreSheet([*self.scores, score], [*self.remarks, remark])

    def __str__(self) -> str:
        width = max(len(score.name) for score in self.scores)
        lines = [f"{'':{width}}   score"]
        if any(score.confidence for score in self.scores):
            lines = [f"{lines[0]}   95 % interval"]
        lines += [_row(score, width) for score in self.scores]
        remarks = (textwrap.fill(remark, WIDTH) for remark in self.remarks)
        signatures = (f"{score.name:{width}}  {score.signature}" for score in self.scores)
        return "\n".join([*lines, "", *remarks, "", *signatures])

    def as_json(self) -> dict[str, object]:
        """The main score's values, and under `scores` those of all."""
        return {
            **self.main.as_json(),
            "scores": [score.as_json() for score in self.scores],
            "remarks": self.remarks,
        }


def _row(score: Score, width: int) -> str:
    row = f"{score.name:{width}}  {score.value:6.2f}"
    if interval := score.confidence:
        row += f"   {interval.low:.2f} to {interval.high:.2f} (± {interval.half_width:.2f})"
    return row


def score_sheet(
    hypotheses: Sequence[str],
    against: EvaluationSet,
    tokenize: str = PLAIN,
    with_ter: bool = False,
    confidence: bool = True,
) -> ScoreSheet:
    """BLEU, chrF++, TER if asked for, and the paper's BLEU where the languages are known.

    `tokenize` is what `bleu_tokenizer` says. Text that is tokenised is scored on its tokens, and
    has no paper's BLEU: that has a tokeniser of its own.

    Raises:
        DataError: no sentences, or not as many hypotheses as references.
    """
    references = against.references
    scores = [
        bleu(hypotheses, references, tokenize, confidence),
        chrf_plus_plus(hypotheses, references, confidence),
    ]
    if with_ter:
        scores.append(ter(hypotheses, references, confidence))
    if tokenize == ALREADY_TOKENIZED:
        others = [named_for(score, tokenize) for score in scores[1:]]
        return ScoreSheet([scores[0], *others], [TOKENIZED_REMARK])
    remarks = [
        "BLEU and chrF++ compare with figures of the same signature on the same test set, and with "
        "no others."
    ]
    languages = against.languages
    if languages is None:
        remarks.append("Say the languages (--languages en-de) for the paper's own BLEU as well.")
    elif has_paper_bleu(languages):
        scores.append(paper_bleu(hypotheses, references, languages, confidence))
        remarks.append(_paper_remark(scores[-1].name, against.official_name, languages))
    return ScoreSheet(scores, remarks)


def _paper_remark(name: str, official_name: str, languages: tuple[str, str]) -> str:
    """What the last score is, and which figure of the paper it stands beside."""
    pair = "-".join(languages)
    if name != "paper BLEU":
        return (
            f"{name} counts the tokens of tokenizer.perl, as older papers do; the paper has no "
            f"figure for {pair}."
        )
    if published := PUBLISHED.get((official_name, *codes_of(languages))):
        return f"{name} compares with the paper's {published}, and not with figures of sacreBLEU."
    this = f"this is {official_name}" if official_name else "this text is not recognised as it"
    return (
        f"{name} is measured as the paper measured newstest2014 and compares with its figures on "
        f"that set alone, unchanged; {this}."
    )


def per_sentence(
    hypotheses: Sequence[str],
    references: Sequence[str],
    tokenize: str = PLAIN,
    with_ter: bool = False,
) -> list[dict[str, float]]:
    """BLEU, chrF++ and, if asked for, TER of each sentence by itself, in order.

    Raises:
        DataError: no sentences, or not as many hypotheses as references.
    """
    names = ["BLEU", "chrF++", *["TER"] * with_ter]
    columns = [sentence_scores(name, hypotheses, references, tokenize) for name in names]
    rows = zip(*columns, strict=True)
    return [dict(zip(names, map(_rounded, row), strict=True)) for row in rows]


def _rounded(value: float) -> float:
    return round(value, 2)
