"""Searches the translations of a batch: chooses the kind of search that the settings require."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from nmt.config import DecodingConfig, Sampling
from nmt.data.tokens.batch import collate_source
from nmt.device import memory_explained, memory_of
from nmt.errors import ConfigError
from nmt.inference.prepare import prepare_for_inference
from nmt.model.transformer import Transformer
from nmt.processor import available_cores
from nmt.run_directory import LoadedModel
from nmt.search.beam_search import beam_search
from nmt.search.constrained_search import constrained_search
from nmt.search.constrained_sentence import ConstrainedSentence, beam_width
from nmt.search.decoding import Hypothesis
from nmt.search.lexical_constraints import SpelledConstraints, Spelling
from nmt.search.native_search import NativeSearch
from nmt.search.sampling import draw, greedy_search
from nmt.search.shortlist import Shortlist, restrict_models
from nmt.search.source_attention import rank_by_coverage
from nmt.search.windows import SHORTEST_COUNTED, cut_into_batches


@dataclass(frozen=True)
class SearchBatch:
    """Sentences to translate at once."""

    ids: list[list[int]]
    """the source ids of each sentence, the last one EOS"""
    numbers: list[int]
    """number of each sentence; it seeds the random generator if translations are sampled"""
    constraints: list[SpelledConstraints | None]
    """of each sentence; None: it has none. Either all sentences of a batch have some, or none"""
    n_best: int
    """how many hypotheses of each sentence are returned at most"""


@dataclass(eq=False)
class Searcher:
    """Translates batches of source ids: a model, and the settings of its search."""

    run: LoadedModel
    settings: DecodingConfig
    precision: str = "fp32"
    """fp32, bf16 or int8"""
    sampling: Sampling | None = None
    """how translations are drawn at random; None: beam search or greedy search"""
    shortlist: Shortlist | None = None
    """gives the target tokens whose logits are computed; None: all. It is not used if translations
    are drawn or have constraints"""

    @cached_property
    def device(self) -> torch.device:
        """The device of the model's weights."""
        return next(self.run.model.parameters()).device

    @cached_property
    def model(self) -> Transformer:
        """A copy of the model for fast inference in this precision, made when it is first used."""
        return prepare_for_inference(self.run.model, self.precision)

    @cached_property
    def native(self) -> NativeSearch | None:
        """The C library's search with the model, packed when it is first used; None: there is none.

        It searches for one or several best translations without constraints.
        """
        if self.sampling or self.settings.no_repeat_ngram:
            return None
        return NativeSearch.of(self.run.model, self.precision)

    def prepare(self) -> None:
        """Prepare the model now, so that processes that are forked after this share it."""
        if self.native is None:
            _ = self.model

    @cached_property
    def spelling(self) -> Spelling:
        """The text of each target id, needed for constraints; built when it is first used."""
        return Spelling(self.run.tokenizer, self.run.config.data.tokenized)

    def check(self, n_best: int) -> None:
        """Raise a ConfigError if the beam is too small for `n_best` or too wide for the machine."""
        settings = self.settings
        if self.sampling:  # draws any number of translations, without a beam
            return
        if n_best > settings.beam_size:
            raise ConfigError(
                f"{n_best} translations of each line were asked for, and the beam holds "
                f"{settings.beam_size}; raise --beam-size, or use --sample"
            )
        check_beam_size(self.run, settings, memory_of(self.device))

    def batches(
        self,
        indices: Sequence[int],
        lengths: Sequence[int],
        constraints: Sequence[SpelledConstraints | None],
    ) -> Iterator[list[int]]:
        """Yield batches, lists of line indices: first lines without constraints, then the others.

        `indices` are the lines to translate; `lengths` (in tokens) and `constraints` have an entry
        for every line. A line whose constraints widen its beam n times counts as n times as long.
        """
        beam, batch_tokens = self.settings.beam_size, self.settings.batch_tokens
        unconstrained = [i for i in indices if constraints[i] is None]
        yield from cut_into_batches(unconstrained, lengths, batch_tokens)
        constrained, counted_lengths = [], list(lengths)
        for i in indices:
            if (of_line := constraints[i]) is not None:
                constrained.append(i)
                counted_lengths[i] *= math.ceil(beam_width(of_line, beam) / beam)  # n, rounded up
        yield from cut_into_batches(constrained, counted_lengths, batch_tokens)

    def search(self, batch: SearchBatch) -> list[list[Hypothesis]]:
        """Return up to `n_best` hypotheses of each sentence, best first; samples are not sorted.

        Raises:
            NmtError: the memory does not suffice.
            NonFiniteScoresError: the model's scores are NaN or infinite.
            DataError: no translation meets all constraints on a sentence.
        """
        if not batch.ids:
            return []
        settings = self.settings
        with memory_explained(
            f"for {len(batch.ids)} lines at once; give a lower --batch-tokens than "
            f"{settings.batch_tokens}, or let fewer processes share the machine"
        ):
            if self.sampling:
                source, count = self._collated(batch.ids), batch.n_best
                return draw(self.model, source, settings, self.sampling, batch.numbers, count)
            # the coverage penalty may prefer any hypothesis of the beam
            n_best = settings.beam_size if settings.coverage_penalty else batch.n_best
            hypotheses = self._search(batch, n_best)
            if not settings.coverage_penalty:
                return hypotheses
            ranked = rank_by_coverage(self.run.model, batch.ids, hypotheses, settings)
            return [best_first[: batch.n_best] for best_first in ranked]

    def _search(self, batch: SearchBatch, n_best: int) -> list[list[Hypothesis]]:
        settings = self.settings
        constraints = [c for c in batch.constraints if c]
        if constraints:  # then all sentences of the batch have some
            sentences = [ConstrainedSentence(c, self.spelling) for c in constraints]
            source = self._collated(batch.ids)
            return constrained_search(self.model, source, settings, sentences, n_best)

        def search_among(target_ids: Tensor | None) -> list[list[Hypothesis]]:
            return self._unconstrained_search(batch.ids, n_best, target_ids)

        if self.shortlist:
            return self.shortlist.search(batch.ids, search_among)
        return search_among(None)

    def _unconstrained_search(
        self, ids: list[list[int]], n_best: int, target_ids: Tensor | None
    ) -> list[list[Hypothesis]]:
        """Search for translations of source ids among these target ids; None: among all."""
        settings = self.settings
        if self.native:
            native = (
                self.native if target_ids is None else self.native.restrict_vocabulary(target_ids)
            )
            return native.search(ids, settings, n_best)
        model = self.model if target_ids is None else restrict_models(self.model, target_ids)
        if settings.beam_size == 1:
            return [[best] for best in greedy_search(model, self._collated(ids), settings)]
        return beam_search(model, self._collated(ids), settings, n_best)

    def _collated(self, ids: list[list[int]]) -> Tensor:
        return collate_source(ids).to(self.device)


def check_beam_size(run: LoadedModel, settings: DecodingConfig, memory: float | None) -> None:
    """Raise a ConfigError if the beam exceeds vocabulary or `memory` (bytes; None: no limit)."""
    beam, vocabulary = settings.beam_size, run.tokenizer.target.size
    if beam > vocabulary:
        raise ConfigError(
            f"a beam of {beam} is wider than the vocabulary of {vocabulary:,} entries; "
            f"give a --beam-size (decoding.beam_size) of at most {widest_beam(run, memory)}"
        )
    widest = widest_beam(run, memory)
    if memory is not None and beam > widest:
        raise ConfigError(
            f"a beam of {beam} needs more memory for a single short sentence than the "
            f"{memory / 1e9:.1f} GB there are; give a --beam-size (decoding.beam_size) of "
            f"at most {widest}"
        )


def widest_beam(run: LoadedModel, memory: float | None) -> int:
    """Return the widest beam for one short sentence in `memory` bytes; None means unlimited memory.

    In T steps the k hypotheses of a sentence store k * T positions, and k queries attend to all of
    them at once. On a CPU, each core may run a search; they share the memory.
    """
    config, vocabulary = run.config, run.tokenizer.target.size
    if memory is None:
        return vocabulary
    if next(run.model.parameters()).device.type == "cpu":
        memory /= available_cores()
    steps = config.decoding.longest(SHORTEST_COUNTED)  # T
    float_bytes = 4  # of a float32; the mask has 1 byte per entry
    layers, width, heads = config.model.decoder_layers, config.model.d_model, config.model.heads
    # A beam of k needs a * k^2 + b * k bytes: a for attention weights of one layer and the mask,
    # b for keys and values of all layers, logits and log P. The k for all of `memory`:
    a = steps * (heads * float_bytes + 1)
    b = (2 * layers * steps * width + 2 * vocabulary) * float_bytes
    beam = (math.sqrt(b**2 + 4 * a * memory) - b) / (2 * a)
    return max(1, min(vocabulary, int(beam)))
