"""How good translations are: sacreBLEU's BLEU, chrF and TER, with signature and interval.

sacreBLEU is Post, 2018: A Call for Clarity in Reporting BLEU Scores.
"""

import functools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF, CHRFScore
from sacrebleu.metrics.ter import TER, TERScore

from nmt.errors import DataError

UNSPACED = {"zh", "yue", "ja", "th", "lo", "km", "my", "bo"}
"""languages that put no spaces between words"""
METRIC_NAMES = {"bleu": "BLEU", "chrf": "chrF"}
"""by the names that recipes and records use"""

PLAIN, ALREADY_TOKENIZED = "13a", "none"
"""sacreBLEU's names of what divides text into the tokens that BLEU counts"""
RESAMPLES = 1000
# sacreBLEU holds the statistics of all resamples in memory at once; so many take 0.8 gigabytes
MAX_DRAWN_NUMBERS = 200_000_000


@dataclass(frozen=True, slots=True)
class Interval:
    """A 95 % confidence interval by bootstrap resampling of the sentences (Koehn, 2004).

    Of few sentences it is only rough, and would reach beyond the scores that there are.
    """

    mean: float
    """of the scores of the resamples"""
    half_width: float
    highest: float = 100.0
    """that a score can be"""

    @property
    def low(self) -> float:
        """Lower end."""
        return max(0.0, self.mean - self.half_width)

    @property
    def high(self) -> float:
        """Upper end."""
        return min(self.highest, self.mean + self.half_width)


@dataclass(frozen=True, slots=True)
class Score:
    """A figure with all that is needed to compare it with another; prints itself."""

    name: str
    value: float
    """0 to 100; TER also beyond"""
    signature: str
    """the settings that produced it"""
    confidence: Interval | None = None

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
    tokenize: str = PLAIN,
    confidence: bool = True,
) -> Score:
    """Corpus BLEU of one hypothesis and one reference a sentence.

    `tokenize` is what `bleu_tokenizer` says. Tokens that spaces separate are counted as they are
    where it is `none`: a tokenised BLEU, which does not compare with the usual one. Beyond 20,000
    sentences the interval takes fewer resamples.

    Raises:
        DataError: no sentences, or not as many hypotheses as references.
    """
    metric, name = bleu_metric(tokenize), METRIC_NAMES["bleu"]
    return named_for(_score(metric, name, hypotheses, references, confidence), tokenize)


def named_for(score: Score, tokenize: str) -> Score:
    """The score; of text that is tokenised already, under a name that says so."""
    if tokenize != ALREADY_TOKENIZED:
        return score
    return replace(score, name=f"tokenised {score.name}")


def bleu_metric(tokenize: str = PLAIN, sentence: bool = False) -> BLEU:
    """sacreBLEU's BLEU; for a `sentence` without the orders of n-grams that it is too short for."""
    # `force` silences its remarks on tokenised text, which come without a file name
    return BLEU(tokenize=tokenize, force=True, effective_order=sentence)


def bleu_tokenizer(language: str, tokenized: bool = False) -> str:
    """Which of sacreBLEU's tokenizers suits a target language; `none` for `tokenized` text.

    13a leaves a sentence without spaces in one piece. Chinese is divided into characters, Japanese
    into words where sacreBLEU's extra `ja` is installed, and other such languages into characters.
    """
    if tokenized:
        return ALREADY_TOKENIZED
    code = language_code(language)
    if code in ("zh", "yue"):
        return "zh"
    if code == "ja" and find_spec("MeCab") and find_spec("ipadic"):
        return "ja-mecab"
    return "char" if code in UNSPACED else PLAIN


def language_code(language: str) -> str:
    """A language without its country: de_AT is de."""
    return re.split("[-_]", language.lower())[0]


def multi_bleu(
    hypotheses: Sequence[str], references: Sequence[str], name: str, confidence: bool = True
) -> Score:
    """BLEU as multi-bleu.perl of Moses has it: cased, of the tokens as they are, not smoothed.

    The same errors as `bleu`.
    """
    metric = BLEU(tokenize="none", smooth_method="none", force=True)
    return _score(metric, name, hypotheses, references, confidence)


def chrf(hypotheses: Sequence[str], references: Sequence[str], confidence: bool = True) -> Score:
    """Corpus chrF: the F-score of character n-grams, for recall twice as important as precision.

    Popović, 2015: chrF: character n-gram F-score for automatic MT evaluation. The same errors as
    `bleu`.
    """
    return _score(_Chrf(), METRIC_NAMES["chrf"], hypotheses, references, confidence)


def chrf_plus_plus(
    hypotheses: Sequence[str], references: Sequence[str], confidence: bool = True
) -> Score:
    """Corpus chrF++: chrF with words and pairs of words among the n-grams.

    Popović, 2017: chrF++: words helping character n-grams. The same errors as `bleu`.
    """
    return _score(_Chrf(word_order=2), "chrF++", hypotheses, references, confidence)


def ter(hypotheses: Sequence[str], references: Sequence[str], confidence: bool = True) -> Score:
    """Corpus TER: edits and shifts of blocks over the words of the reference; lower is better.

    Snover et al., 2006: A Study of Translation Edit Rate. The same errors as `bleu`.
    """
    return _score(_Ter(), "TER", hypotheses, references, confidence)


class _Chrf(CHRF):
    """sacreBLEU 2.6 cannot take the mean of resamples of which some, but not all, score nothing."""

    def _compute_score_from_stats(self, stats: list[int]) -> CHRFScore:
        found = super()._compute_score_from_stats(stats)
        found.score = float(found.score)
        return found


class _Ter(TER):
    """The same."""

    def _compute_score_from_stats(self, stats: list[float]) -> TERScore:
        found = super()._compute_score_from_stats(stats)
        found.score = float(found.score)
        return found


def _score(
    metric: BLEU | CHRF | TER,
    name: str,
    hypotheses: Sequence[str],
    references: Sequence[str],
    confidence: bool,
) -> Score:
    refuse_unequal(hypotheses, references, name)
    numbers = 10 if isinstance(metric, BLEU) else 3 * getattr(metric, "order", 1)
    resamples = 1
    if confidence:
        resamples = max(1, min(RESAMPLES, MAX_DRAWN_NUMBERS // (numbers * len(hypotheses))))
    result = metric.corpus_score(hypotheses, [references], n_bootstrap=resamples)
    highest = math.inf if isinstance(metric, TER) else 100.0
    interval = Interval(float(result._mean), float(result._ci), highest) if resamples > 1 else None
    return Score(
        name=name,
        value=float(result.score),
        signature=metric.get_signature().format(),
        confidence=interval,
    )


def refuse_unequal(hypotheses: Sequence[str], references: Sequence[str], name: str) -> None:
    """Raise a DataError where there is nothing to score, or not one reference for each."""
    if len(hypotheses) != len(references):
        raise DataError(
            f"{len(hypotheses)} translations but {len(references)} references; "
            f"{name} needs one reference for each"
        )
    if not hypotheses:
        raise DataError("no translations to score; expected at least one sentence")


def sentence_scores(
    name: str, hypotheses: Sequence[str], references: Sequence[str], tokenize: str = PLAIN
) -> list[float]:
    """The score of each sentence by itself; `name`: BLEU, chrF++ or TER.

    BLEU of a sentence leaves out the orders of n-grams that it is too short for.

    Raises:
        DataError: no sentences, or not as many hypotheses as references.
    """
    refuse_unequal(hypotheses, references, name)
    metric: BLEU | CHRF | TER
    if name == "BLEU":
        metric = bleu_metric(tokenize, sentence=True)
    else:
        metric = TER() if name == "TER" else CHRF(word_order=2)
    pairs = zip(hypotheses, references, strict=True)
    return [float(metric.sentence_score(text, [reference]).score) for text, reference in pairs]


def words_of(line: str, tokenize: str = PLAIN) -> list[str]:
    """The words that BLEU counts."""
    return str(_metric(tokenize).tokenizer(line)).split()


@functools.cache
def _metric(tokenize: str) -> BLEU:
    return bleu_metric(tokenize)


def sentence_utilities(name: str, texts: Sequence[str], tokenize: str = PLAIN) -> list[list[float]]:
    """The score, 0 to 100, of text i (row) if text j (column) were the only reference.

    `name`: chrf or bleu; BLEU of a sentence leaves out the orders of n-grams that it is too short
    for. The n-grams of each reference are counted once, those of a text for each reference.
    """
    columns = []
    for text in texts:
        metric = _sentence_metric(name, text, tokenize)
        columns.append([float(metric.corpus_score([other], None).score) for other in texts])
    return [list(row) for row in zip(*columns, strict=True)]


def _sentence_metric(name: str, reference: str, tokenize: str) -> BLEU | CHRF:
    if name == "chrf":
        return CHRF(references=[[reference]])
    return BLEU(tokenize=tokenize, force=True, effective_order=True, references=[[reference]])
