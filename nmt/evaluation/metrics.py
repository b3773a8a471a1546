"""How good translations are: sacreBLEU's BLEU and chrF, with signature and confidence interval.

The only file that knows sacreBLEU (Post, 2018: A Call for Clarity in Reporting BLEU Scores).
"""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from nmt.data.parallel_text import SentencePair, read_lines
from nmt.errors import ConfigError, DataError, NmtError

METRIC_NAMES = {"bleu": "BLEU", "chrf": "chrF"}
"""by the names that recipes and records use"""

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
    # `force` silences sacreBLEU's remarks on tokenised text, which come without a file name
    metric = BLEU(tokenize="none" if tokenized else "13a", force=True)
    name = "tokenised BLEU" if tokenized else METRIC_NAMES["bleu"]
    return _score(metric, name, hypotheses, references, confidence)


def chrf(hypotheses: Sequence[str], references: Sequence[str], confidence: bool = True) -> Score:
    """Corpus chrF: the F-score of character n-grams, for recall twice as important as precision.

    Popović, 2015: chrF: character n-gram F-score for automatic MT evaluation. The same errors as
    `bleu`.
    """
    return _score(CHRF(), METRIC_NAMES["chrf"], hypotheses, references, confidence)


def _score(
    metric: BLEU | CHRF,
    name: str,
    hypotheses: Sequence[str],
    references: Sequence[str],
    confidence: bool,
) -> Score:
    if len(hypotheses) != len(references):
        raise DataError(
            f"{len(hypotheses)} translations but {len(references)} references; "
            f"{name} needs one reference for each"
        )
    if not hypotheses:
        raise DataError("no translations to score; expected at least one sentence")
    resamples = max(1, min(RESAMPLES, MAX_DRAWS // len(hypotheses))) if confidence else 1
    result = metric.corpus_score(hypotheses, [references], n_bootstrap=resamples)
    interval = Interval(float(result._mean), float(result._ci)) if resamples > 1 else None
    return Score(
        name=name,
        value=float(result.score),
        signature=metric.get_signature().format(),
        confidence=interval,
    )


def sentence_utilities(
    name: str, texts: Sequence[str], tokenized: bool = False
) -> list[list[float]]:
    """The score, 0 to 100, of text i (row) if text j (column) were the only reference.

    `name`: chrf or bleu; BLEU of a sentence leaves out the orders of n-grams that it is too short
    for. The n-grams of each reference are counted once, those of a text for each reference.
    """
    columns = []
    for text in texts:
        metric = _sentence_metric(name, text, tokenized)
        columns.append([float(metric.corpus_score([other], None).score) for other in texts])
    return [list(row) for row in zip(*columns, strict=True)]


def _sentence_metric(name: str, reference: str, tokenized: bool) -> BLEU | CHRF:
    if name == "chrf":
        return CHRF(references=[[reference]])
    tokenize = "none" if tokenized else "13a"
    return BLEU(tokenize=tokenize, force=True, effective_order=True, references=[[reference]])


def looks_tokenized(lines: Sequence[str]) -> str | None:
    """What betrays that text was not turned back into plain text, if anything does."""
    for mark in ("@@ ", "▁"):
        if sum(mark in line for line in lines) * 20 > len(lines):
            return f"subword marks '{mark}'"
    if sum(line.endswith((" .", " ?", " !")) for line in lines) * 2 > len(lines):
        return "a space before most final full stops"
    return None


def official_test_set(name: str, languages: tuple[str, str]) -> list[SentencePair]:
    """A test set as sacreBLEU knows it (wmt13, wmt14/full, …), downloaded by it where need be.

    It keeps test sets in the folder that the environment variable SACREBLEU names, or else in
    ~/.sacrebleu. Where a set has several references, they are those of the first.

    Raises:
        ConfigError: sacreBLEU has no set of that name, or not in these languages.
        DataError: it cannot be downloaded, or is damaged.
    """
    from sacrebleu.dataset import DATASETS
    from sacrebleu.utils import SACREBLEU_DIR, get_reference_files, get_source_file

    if name not in DATASETS:
        near = difflib.get_close_matches(name, DATASETS, n=1)
        hint = f"did you mean '{near[0]}'?" if near else "known are wmt13, wmt14/full and others"
        raise ConfigError(f"sacreBLEU has no test set '{name}'; {hint} (see `sacrebleu --list`)")
    pair, pairs = "-".join(languages), DATASETS[name].langpairs
    if pair not in pairs:
        known = ", ".join(sorted(pairs))
        raise ConfigError(f"test set '{name}' has no {pair}; it has {known}")
    folder = Path(SACREBLEU_DIR, name)
    try:
        files = get_source_file(name, pair), get_reference_files(name, pair)[0]
        source, target = (list(read_lines(Path(file))) for file in files)
    except NmtError:
        raise
    except (Exception, SystemExit) as error:  # it ends the program itself where a hash is wrong
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DataError(
            f"test set '{name}' cannot be had from sacreBLEU: {reason}; check the network, delete "
            f"{folder} and try again, or give the files with --source and --reference"
        ) from error
    if len(source) != len(target) or not source:
        raise DataError(
            f"{folder}: {len(source)} sentences and {len(target)} references of {pair}, expected "
            "as many and at least one; it was downloaded in part: delete it and try again"
        )
    return [SentencePair(*texts) for texts in zip(source, target, strict=True)]
