"""The size of an epoch: from prepared data, a sample of the text, known figures, or unknown."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from nmt.data.corpora.registry import find_splits
from nmt.data.prepared import Prepared, find_prepared
from nmt.data.rehearsal import rehearse
from nmt.data.terms import LEXICON
from nmt.data.text.parallel_text import ParallelText
from nmt.data.tokens.batches import StagedPlan
from nmt.data.tokens.token_store import Ids, Sentences, TokenStore
from nmt.data.tokens.tokenizer import EOS
from nmt.data.tokens.vocabulary import adopt_vocabulary
from nmt.errors import DataError, NmtError
from nmt.planning.resources import known_figures
from nmt.recipe.config import Config

_DEFAULT_LENGTH = 25.0
"""tokens per sentence that are assumed if nothing is known about the text"""
_CHARACTERS_PER_SUBWORD = 4.3  # the mean in Tatoeba's French
_GAMMA_SHAPE, _RATIO_NOISE = 8.0, 0.15
"""random sentence lengths: shape of their gamma distribution, noise of the target's length"""
_FIRST_WORD = 4  # smaller ids are special symbols
_RANDOM_STEPS = 128
"""steps of training that a sample of random pairs suffices for"""
_MAX_SAMPLE = 200_000
"""pairs of prepared data that a sample holds at most"""
_TOKENS_OF_TERMS = 8  # in a source with terms: 1.8 terms of 4.6 tokens in Multi30k, en-de
_SAMPLED_STEPS = 50  # at least so many steps, maybe smaller ones, are made of a sample


@dataclass(frozen=True)
class Workload:
    """The size of an epoch; a number is None if it is unknown."""

    origin: str
    """where the figures come from"""
    pairs: int | None
    """sentence pairs of an epoch: the sum over all texts of their pairs times their weight; with
    several stages, of the average epoch"""
    source_length: float
    """average tokens of a sentence, including EOS"""
    target_length: float
    steps_per_epoch: int | None
    source_vocabulary: int
    target_vocabulary: int
    validation_pairs: int | None
    stages: int = 1
    """parts of the training in which other texts are learnt"""
    preparation: float | None = None
    """seconds that preparing the text takes on this machine; 0 if it is prepared"""

    @property
    def vocabularies(self) -> tuple[int, int]:
        """Sizes of the source and the target vocabulary."""
        return self.source_vocabulary, self.target_vocabulary

    def tokens_per_step(self, config: Config) -> tuple[float, float]:
        """Return the mean number of source and of target tokens in a step, without padding."""
        longer_length = max(self.source_length, self.target_length)
        pairs = config.training.batch_tokens / longer_length
        if self.pairs and self.steps_per_epoch:  # with padding, fewer pairs fit into a batch
            pairs = min(pairs, self.pairs / self.steps_per_epoch)
        return pairs * self.source_length, pairs * self.target_length


def find_workload(config: Config) -> tuple[Workload, Prepared | None]:
    """Return the size of an epoch, and the prepared data or a prepared sample of the text.

    A text that is not prepared is read, and a sample of it is prepared in memory. Of a text that is
    not here, or cannot be prepared, the size is an estimate, and the second value None.
    """
    try:
        if prepared := find_prepared(config):
            origin = f"prepared data in {prepared.directory}"
            return _workload_of(config, prepared, origin), prepared
        if rehearsal := rehearse(config):
            prepared, counts = rehearsal.prepared, rehearsal.prepared.counts
            origin = f"estimated from {counts['read']:,} pairs of the text, which is not prepared"
            workload = _workload_of(config, prepared, origin, rehearsal.scale)
            workload = replace(workload, preparation=rehearsal.seconds)
            if config.tokenizer.kind != "char" and not config.tokenizer.models:
                size = config.tokenizer.vocabulary_size  # a sample may have too few words for it
                workload = replace(workload, source_vocabulary=size, target_vocabulary=size)
            return workload, prepared
    except DataError as error:  # a file may be missing
        return _assumed_workload(config, f"the text cannot be used: {error}"), None
    return _assumed_workload(config, "nothing is known before `nmt prepare`"), None


def _workload_of(config: Config, prepared: Prepared, origin: str, scale: float = 1.0) -> Workload:
    """Return the size of the average epoch; the steps of a large text follow from a sample.

    `prepared` has the whole text, or a sample of it: each pair then stands for `scale` pairs.
    """
    store, stages = prepared.train, prepared.stages
    sample, max_steps = _sample(store), config.training.max_steps
    of_terms = _term_tokens(config, len(sample))
    lengths = sample.source.lengths + of_terms, sample.target.lengths
    mixtures = stages if sample is store else []  # a sample has other rows than the texts
    step_tokens = config.training.batch_tokens
    if scale > 1:  # smaller steps, so that there are enough of them to be scaled up
        tokens = int(np.maximum(*lengths).sum())
        step_tokens = max(1, min(step_tokens, tokens // _SAMPLED_STEPS))
    step_scale = scale * step_tokens / config.training.batch_tokens
    plan = StagedPlan(*lengths, step_tokens, config.seed, mixtures)
    # these lists have a number for each stage
    pairs_per_epoch = [sum(text.pairs_per_epoch for text in each.corpus_weights) for each in stages]
    steps_per_epoch: list[float] = [step_scale * steps for steps in plan.steps_per_epoch]
    if sample is not store:  # one plan for the sample: its steps in proportion to the pairs
        steps_of_sample = plan.steps_per_epoch[0]
        steps_per_epoch = [steps_of_sample * pairs / len(sample) for pairs in pairs_per_epoch]
    ends = [*(stage.start for stage in stages[1:]), max_steps]
    epochs = [
        (end - stage.start) / per_epoch
        for stage, end, per_epoch in zip(stages, ends, steps_per_epoch, strict=True)
    ]
    pairs = sum(size * count for size, count in zip(pairs_per_epoch, epochs, strict=True))
    return Workload(
        origin=origin,
        pairs=round(scale * pairs / sum(epochs)),
        source_length=float(store.source.lengths.mean() + of_terms.mean()),
        target_length=float(store.target.lengths.mean()),
        steps_per_epoch=max(1, round(max_steps / sum(epochs))),
        source_vocabulary=prepared.tokenizer.source.size,
        target_vocabulary=prepared.tokenizer.target.size,
        validation_pairs=_validation_pairs(config),
        stages=len(stages),
        preparation=0.0,
    )


def _assumed_workload(config: Config, reason: str) -> Workload:
    """Return the size of an epoch by known_figures.yaml, with numbers None if it lacks the text."""
    corpus = _corpus_figures(config)
    pairs, length = corpus.get("pairs"), corpus.get("length", _DEFAULT_LENGTH)
    if config.tokenizer.kind == "char":
        length *= _CHARACTERS_PER_SUBWORD
    origin = f"what is known of the corpus {config.data.corpus}; it is not prepared here"
    if not corpus:
        origin = f"{reason}; {length:.0f} tokens a sentence assumed"
    source_size = target_size = config.tokenizer.vocabulary_size
    if config.tokenizer.models:
        tokenizer = adopt_vocabulary(config.tokenizer)
        source_size, target_size = tokenizer.source.size, tokenizer.target.size
    steps = None if pairs is None else max(1, round(pairs * length / config.training.batch_tokens))
    return Workload(
        origin,
        pairs=pairs,
        source_length=length,
        target_length=length,
        steps_per_epoch=steps,
        source_vocabulary=source_size,
        target_vocabulary=target_size,
        validation_pairs=_validation_pairs(config) or corpus.get("validation") or None,
    )


def _corpus_figures(config: Config) -> dict[str, Any]:
    """Return the row of the recipe's corpus in known_figures.yaml; empty if there is none."""
    if config.data.train:  # the corpus, if one is named, is not the training text
        return {}
    key = config.data.corpus, "-".join(sorted(config.data.languages))
    rows = known_figures("corpora")
    return next((row for row in rows if (row["name"], row["languages"]) == key), {})


def _validation_pairs(config: Config) -> int | None:
    """Count the validation pairs if they are in text files on this machine, else return None."""
    try:
        splits = find_splits(config.data)
        texts = splits.validation if splits else []
        counts = (ParallelText(text, config.data.languages).count_pairs() for text in texts)
        return sum(counts) or None
    except NmtError:
        return None


def sample_sentences(config: Config, workload: Workload, prepared: Prepared | None) -> TokenStore:
    """Return pairs of token ids, to time steps with them and to see how much padding they need.

    They are a sample of `prepared`, or random ones of the mean lengths of `workload`.
    """
    if prepared:
        sample = _sample(prepared.train)
        return replace(sample, source=_lengthened(sample.source, _term_tokens(config, len(sample))))
    random = np.random.default_rng(config.seed)
    longer_length = max(workload.source_length, workload.target_length)
    tokens = _RANDOM_STEPS * config.training.batch_tokens
    pairs = int(tokens / longer_length) + 1
    scale = workload.source_length / _GAMMA_SHAPE  # the mean of a gamma is shape * scale
    shortest = 2  # a word and EOS
    source_lengths = np.maximum(shortest, random.gamma(_GAMMA_SHAPE, scale, pairs))
    ratio = workload.target_length / workload.source_length
    noise = random.normal(1.0, _RATIO_NOISE, pairs)
    target_lengths = np.maximum(shortest, source_lengths * ratio * noise)
    return TokenStore(
        _random_sentences(source_lengths, workload.source_vocabulary, random),
        _random_sentences(target_lengths, workload.target_vocabulary, random),
    )


def _random_sentences(
    lengths: npt.NDArray[np.floating], vocabulary: int, random: np.random.Generator
) -> Sentences:
    """Return sentences of random ids; each has its length in `lengths` and ends with EOS."""
    offsets = np.concatenate(([0], np.cumsum(lengths.astype(np.int64))))
    ids = random.integers(_FIRST_WORD, vocabulary, offsets[-1], dtype=np.uint32)
    ids[offsets[1:] - 1] = EOS  # the last token of each sentence
    return Sentences(ids, offsets)


def _term_tokens(config: Config, pairs: int) -> npt.NDArray[np.int64]:
    """Return how many tokens of data.terms each source is likely to have.

    Terms are in a folder of their own, which may be missing. How many a glossary gives is not
    known, and they are counted as none.
    """
    terms = config.data.terms
    share = terms.share if terms and terms.source == LEXICON else 0.0
    return _TOKENS_OF_TERMS * (np.random.default_rng(config.seed).random(pairs) < share)


def _lengthened(side: Sentences, tokens: npt.NDArray[np.int64]) -> Sentences:
    """Return sentences of which each has so many more tokens; they repeat the first one."""
    if not tokens.any():
        return side
    counts = np.ones(len(side.ids), np.int64)
    counts[side.offsets[:-1]] += tokens
    ids: Ids = np.repeat(side.ids, counts)  # type: ignore[assignment]  # NumPy forgets the type
    return Sentences(ids, side.offsets + np.append(0, np.cumsum(tokens)))


def _sample(store: TokenStore) -> TokenStore:
    """Return the store itself, or evenly spaced pairs of a large one."""
    if len(store) <= _MAX_SAMPLE:
        return store
    indices = np.linspace(0, len(store) - 1, _MAX_SAMPLE).astype(np.int64)
    return TokenStore(store.source.gather(indices), store.target.gather(indices))
