"""A report on a corpus before training: counts, lengths, unknown symbols, and leaks.

A leak is a sentence of the validation or test set that occurs in the training text as well.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nmt.data.corpora.registry import obtain_splits
from nmt.data.prepared import prepare
from nmt.data.text.contamination import normalize
from nmt.data.text.parallel_text import ParallelText, SentencePair
from nmt.data.tokens.token_store import Lengths, Sentences, TokenStore
from nmt.data.tokens.tokenizer import UNK, SubwordModel
from nmt.data.tokens.unknown_parts import unknown_of_texts
from nmt.errors import Log
from nmt.recipe.config import Config

PERCENTILES = (1, 5, 25, 50, 75, 95, 99, 100)
BINS = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024)
"""The lower ends of the bins of a length histogram, in tokens."""
RATIO_PERCENTILES = (1, 50, 99)
_MOST_RATIOS = 1_000_000  # pairs, evenly spread, whose ratio of lengths is looked at
EXAMPLES = 3


@dataclass(frozen=True)
class LanguageStatistics:
    """Statistics of one language of the training text, after cleaning."""

    language: str
    tokens: int
    """subword tokens, without the EOS of each sentence"""
    percentiles: dict[int, int]
    """the sentence length in tokens at each of `PERCENTILES`, by percentile"""
    histogram: list[int]
    """the number of sentences in each of `BINS`"""
    tokens_per_word: float
    """in the validation and test sets; words are separated by spaces"""
    unknown_rate: float
    """the fraction of unknown symbols among the tokens of the validation and test sets"""
    unknown: dict[str, int]
    """how often the characters occur, at word level the words, that the vocabulary lacks of these
    sets"""


@dataclass(frozen=True)
class Leak:
    """How many sentences of a held-out set occur in the training text as well."""

    split: str
    """validation or test"""
    sentences: int
    """the number of pairs of the held-out set"""
    pairs: int
    """the number of held-out pairs whose source and target are those of a training pair"""
    sources: int
    """the number of held-out pairs whose source is that of a training pair, whatever the target"""
    pairs_normalized: int
    """as `pairs`, but case, Unicode form, punctuation and spaces may differ"""
    sources_normalized: int
    """as `sources`, but case, Unicode form, punctuation and spaces may differ"""
    examples: list[str]
    """the first few sources that leaked"""


@dataclass(frozen=True)
class Quality:
    """The whole report of `nmt data inspect`."""

    counts: dict[str, Any]
    """`Prepared.counts`"""
    source: LanguageStatistics
    target: LanguageStatistics
    length_ratios: dict[int, float]
    """the target tokens for one of the source at each of `RATIO_PERCENTILES`, by percentile; what
    data.cleaning.max_length_ratio leaves out is not among them"""
    leaks: list[Leak]

    def as_json(self) -> dict[str, Any]:
        """Return the report as plain values for JSON, with the lower ends of the histogram bins."""
        return {**asdict(self), "histogram_bins": list(BINS)}


def inspect(config: Config, log: Log) -> Quality:
    """Return the report on the data of a configuration; prepare the data first if necessary.

    Raises:
        NmtError: the data cannot be prepared.
    """
    prepared = prepare(config, log)
    splits = obtain_splits(config.data, log)
    store, tokenizer, languages = prepared.plain_train, prepared.tokenizer, config.data.languages
    source_language, target_language = config.data.languages_of(splits.train)
    held_out: dict[str, list[SentencePair]] = {}  # {name of a set that there is: its pairs}
    for name, texts in (("validation", splits.validation), ("test", splits.test)):
        if texts:
            held_out[name] = [pair for text in texts for pair in ParallelText(text, languages)]
    log("looking for held-out sentences in the training text")
    # generators: the training text is read block by block in `find_leaks`
    training_texts = (ParallelText(text, languages) for text in splits.train)
    training = (pair for text in training_texts for pair in text.pairs("surrogateescape"))
    pairs = [pair for pairs_of_set in held_out.values() for pair in pairs_of_set]
    sources, targets = [pair.source for pair in pairs], [pair.target for pair in pairs]
    ratios = np.percentile(length_ratios(store), RATIO_PERCENTILES).round(2)
    return Quality(
        counts=prepared.counts,
        source=describe_side(source_language, store.source.lengths, sources, tokenizer.source),
        target=describe_side(target_language, store.target.lengths, targets, tokenizer.target),
        length_ratios=dict(zip(RATIO_PERCENTILES, map(float, ratios), strict=True)),
        leaks=find_leaks(training, held_out),
    )


def length_ratios(store: TokenStore) -> npt.NDArray[np.float64]:
    """Return the target tokens for one of the source, EOS not counted, of up to a million pairs."""
    stride = 1 + len(store.source.lengths) // _MOST_RATIOS
    source, target = (
        np.maximum(1, side.lengths[::stride] - 1) for side in (store.source, store.target)
    )
    ratios: npt.NDArray[np.float64] = target / source
    return ratios


def describe_side(
    language: str,
    lengths: Lengths,
    held_out: Sequence[str] = (),
    model: SubwordModel | None = None,
) -> LanguageStatistics:
    """Return statistics of a language; `lengths` are the token counts of its training sentences.

    `tokens_per_word`, `unknown_rate` and `unknown` are those of the texts `held_out` as `model`
    encodes them; without both, they are 0 and empty. Lengths include EOS.
    """
    text_lengths = lengths - 1  # without EOS
    held_out_words = sum(len(text.split()) for text in held_out)
    ids = Sentences.of(model.encode(held_out) if model else [])
    held_out_tokens = int(ids.lengths.sum()) - len(ids.lengths)
    unknown_tokens = int(np.count_nonzero(ids.ids == UNK))
    lacking = unknown_of_texts(model, ids, held_out) if model else {}
    unknown = Counter(part for parts in lacking.values() for part in parts)
    values = np.percentile(text_lengths, PERCENTILES, method="nearest")
    histogram, _edges = np.histogram(text_lengths, [*BINS, np.inf])
    return LanguageStatistics(
        language=language,
        tokens=int(text_lengths.sum()),
        percentiles=dict(zip(PERCENTILES, map(int, values), strict=True)),
        histogram=histogram.tolist(),
        tokens_per_word=held_out_tokens / max(held_out_words, 1),
        unknown_rate=unknown_tokens / max(held_out_tokens, 1),
        unknown=dict(unknown.most_common()),
    )


def find_leaks(
    training: Iterable[SentencePair], held_out: dict[str, list[SentencePair]]
) -> list[Leak]:
    """Count the pairs and sources of each held-out set that occur in the training pairs.

    `held_out` has the pairs of each set, "validation" and "test". Only training pairs with a
    held-out source (normalised, not empty) are kept in memory.
    """
    held_out_pairs = [pair for pairs in held_out.values() for pair in pairs]
    held_out_sources = {normalize(pair.source) for pair in held_out_pairs} - {""}
    # the training pairs that may have leaked
    matches = {pair for pair in training if normalize(pair.source) in held_out_sources}
    sources = {pair.source for pair in matches}
    normalized = {_normalize(pair) for pair in matches}
    normalized_sources = {pair.source for pair in normalized}
    leaks = []
    for split, pairs in held_out.items():
        leaked_sources = [pair.source for pair in pairs if pair.source in sources]
        normalized_pairs = [_normalize(pair) for pair in pairs]
        leaks.append(
            Leak(
                split=split,
                sentences=len(pairs),
                pairs=sum(pair in matches for pair in pairs),
                sources=len(leaked_sources),
                pairs_normalized=sum(pair in normalized for pair in normalized_pairs),
                sources_normalized=sum(p.source in normalized_sources for p in normalized_pairs),
                examples=list(dict.fromkeys(leaked_sources))[:EXAMPLES],  # each once
            )
        )
    return leaks


def _normalize(pair: SentencePair) -> SentencePair:
    """Return a pair without differences of case, Unicode form, punctuation and spaces."""
    return SentencePair(normalize(pair.source), normalize(pair.target))
