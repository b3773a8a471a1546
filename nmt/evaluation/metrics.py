"""How good translations are: sacreBLEU's BLEU, with its signature and a confidence interval.

The only file that knows sacreBLEU (Post, 2018: A Call for Clarity in Reporting BLEU Scores).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sacrebleu.metrics.bleu import BLEU

from nmt.errors import DataError

RESAMPLES = 1000
# sacreBLEU holds all resamples in memory at once; so many draws take about a gigabyte
MAX_DRAWS = 20_000_000


@dataclass(frozen=True, slots=True)
class Interval:
    """A 95 % confidence interval by bootstrap resampling of the sentences (Koehn, 2004)."""

    mean: float
    """of the scores of the resamples"""
    half_width: float

    @property
    def low(self) -> float:
        """Lower end."""
        return self.mean - self.half_width

    @property
    def high(self) -> float:
        """Upper end."""
        return self.mean + self.half_width


@dataclass(frozen=True, slots=True)
class Score:
    """A figure with all that is needed to compare it with another; prints itself."""

    name: str
    value: float
    """0 to 100"""
    signature: str
    """the settings that produced it"""
    confidence: Interval | None

    def __str__(self) -> str:
        line = f"{self.name} = {self.value:.2f}"
        if self.confidence:
            ends = f"{self.confidence.low:.2f} to {self.confidence.high:.2f}"
            line += f" ± {self.confidence.half_width:.2f} (95 % interval {ends})"
        return f"{line}\n{self.signature}"

    def as_json(self) -> dict[str, object]:
        """Plain values, rounded to two decimals as printed."""
        interval = self.confidence and {
            "low": round(self.confidence.low, 2),
            "high": round(self.confidence.high, 2),
            "half_width": round(self.confidence.half_width, 2),
        }
        return {
            "name": self.name,
            "score": round(self.value, 2),
            "signature": self.signature,
            "confidence_95": interval,
        }


def bleu(
    hypotheses: Sequence[str],
    references: Sequence[str],
    tokenized: bool = False,
    confidence: bool = True,
) -> Score:
    """Corpus BLEU of one hypothesis and one reference a sentence.

    `tokenized` counts the tokens that spaces separate, as they are: a tokenised BLEU, which does
    not compare with the usual one. Beyond 20,000 sentences the interval takes fewer resamples.

    Raises:
        DataError: no sentences, or not as many hypotheses as references.
    """
    if len(hypotheses) != len(references):
        raise DataError(
            f"{len(hypotheses)} translations but {len(references)} references; "
            "BLEU needs one reference for each"
        )
    if not hypotheses:
        raise DataError("no translations to score; expected at least one sentence")
    # `force` silences sacreBLEU's remarks on tokenised text, which come without a file name
    metric = BLEU(tokenize="none" if tokenized else "13a", force=True)
    resamples = max(1, min(RESAMPLES, MAX_DRAWS // len(hypotheses))) if confidence else 1
    result = metric.corpus_score(hypotheses, [references], n_bootstrap=resamples)
    interval = Interval(float(result._mean), float(result._ci)) if resamples > 1 else None
    return Score(
        name="tokenised BLEU" if tokenized else "BLEU",
        value=float(result.score),
        signature=metric.get_signature().format(),
        confidence=interval,
    )


def looks_tokenized(lines: Sequence[str]) -> str | None:
    """What betrays that text was not turned back into plain text, if anything does."""
    for mark in ("@@ ", "▁"):
        if sum(mark in line for line in lines) * 20 > len(lines):
            return f"subword marks '{mark}'"
    if sum(line.endswith((" .", " ?", " !")) for line in lines) * 2 > len(lines):
        return "a space before most final full stops"
    return None
