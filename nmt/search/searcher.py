"""Searches the translations of a batch: chooses the kind of search that the settings require."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from nmt.data.language_tags import LanguageTags
from nmt.data.tokens.matches import without_matches
from nmt.errors import ConfigError
from nmt.machine.memory import memory_explained, process_memory
from nmt.machine.processor import available_cores
from nmt.recipe.config import DecodingConfig, Sampling
from nmt.run.model import LoadedModel
from nmt.search.constrained_search import constrained_search
from nmt.search.constrained_sentence import ConstrainedSentence
from nmt.search.hypothesis import Hypothesis
from nmt.search.lexical_constraints import SpelledConstraints, Spelling
from nmt.search.native_search import NativeSearch
from nmt.search.native_sources import BatchSources
from nmt.search.sentence_search import SentenceSearch, beam_width
from nmt.search.shortlist import Shortlist, in_whole_vocabulary
from nmt.search.windows import MIN_COUNTED_LENGTH, cut_into_batches

if TYPE_CHECKING:
    from nmt.run.checkpoint_files import Array
    from nmt.search.torch_search import TorchSearch

ROWS_AT_ONCE = 1024
"""hypotheses in a search under constraints: log P of all tokens of each may be stored"""


@dataclass(eq=False)
class Searcher:
    """Translates batches of source ids: a model, and the settings of its search.

    The C library searches if it can; PyTorch is not imported before something needs it.
    """

    loaded: LoadedModel
    settings: DecodingConfig
    precision: str = "fp32"
    """fp32, bf16 or int8"""
    sampling: Sampling | None = None
    """how translations are drawn at random; None: beam search or greedy search"""
    shortlist: Shortlist | None = None
    """gives the target tokens whose logits are computed; None: all. It is not used if translations
    are drawn or have constraints"""

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle what the searcher was made of, not what it has loaded."""
        parts = (self.loaded, self.settings, self.precision, self.sampling, self.shortlist)
        return Searcher, parts

    @cached_property
    def native(self) -> NativeSearch | None:
        """The C library's search, its weights packed when it is first used; None: there is none."""
        if self.sampling:
            return None
        return NativeSearch.build(self.loaded, self.precision)

    @cached_property
    def torch(self) -> "TorchSearch":
        """The searches that PyTorch computes."""
        from nmt.search.torch_search import TorchSearch

        return TorchSearch(self.loaded, self.settings, self.precision)

    @cached_property
    def languages(self) -> LanguageTags:
        """The tags of the languages of the model."""
        return LanguageTags(self.loaded.config.data, self.loaded.tokenizer)

    def with_projection(self, adapted: LoadedModel, weight: "Array") -> "Searcher":
        """Return a searcher of `adapted`: this model with another output projection (V, D)."""
        other = replace(self, loaded=adapted)
        vars(other)["native"] = self.native and self.native.with_projection(weight)
        if "spelling" in vars(self):  # it depends on the vocabulary alone
            vars(other)["spelling"] = self.spelling
        return other

    def load_now(self) -> None:
        """Load what computes the searches, so that processes that are forked after this share it.

        Otherwise the first search does.
        """
        if self.native is None:  # reading it has packed the weights for the C library, if possible
            _ = self.torch.model  # reading it makes the copy for fast inference

    @cached_property
    def spelling(self) -> Spelling:
        """The text of each target id, needed for constraints; built when it is first used."""
        return Spelling(self.loaded.tokenizer, self.loaded.config.data.tokenized)

    def check_beam(self, n_best: int) -> None:
        """Raise a ConfigError if the beam is too small for `n_best` or too wide for the machine."""
        settings = self.settings
        if self.sampling:  # draws any number of translations, without a beam
            return
        if n_best > settings.beam_size:
            raise ConfigError(
                f"{n_best} translations of each line were asked for, and the beam holds "
                f"{settings.beam_size}; raise `beam_size`, or draw samples (`sample`)"
            )
        memory = process_memory()
        if self.loaded.is_in_torch:
            from nmt.machine.device import memory_of

            memory = memory_of(next(self.loaded.model.parameters()).device)
        check_beam_size(self.loaded, settings, memory)

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
            line_constraints = constraints[i]
            if line_constraints is not None:
                constrained.append(i)
                times = math.ceil(beam_width(line_constraints, beam) / beam)
                counted_lengths[i] = times * max(lengths[i], MIN_COUNTED_LENGTH)
        yield from cut_into_batches(constrained, counted_lengths, batch_tokens)

    def search(
        self,
        ids: list[list[int]],
        numbers: list[int],
        constraints: list[SpelledConstraints | None],
        n_best: int,
        begins: Sequence[int] | None = None,
    ) -> list[list[Hypothesis]]:
        """Return up to `n_best` hypotheses of each sentence, best first; or samples, unsorted.

        `ids` are the source ids of each sentence, the last one EOS. The number of a sentence seeds
        the random generator if translations are sampled. Either all sentences have `constraints`,
        or none has (None). `begins`, if given, are the target ids that the translations begin with,
        tags of their languages; the `constraints` on a sentence begin with it, too.

        Raises:
            NmtError: the memory does not suffice.
            NonFiniteScoresError: the model's scores are NaN or infinite.
            DataError: no translation meets all constraints on a sentence.
        """
        if not ids:
            return []
        settings = self.settings
        with memory_explained(
            f"for {len(ids)} lines at once; lower `batch_tokens` (decoding.batch_tokens), "
            f"now {settings.batch_tokens}, or let fewer processes share the machine"
        ):
            if self.sampling:
                drawn_from = BatchSources(ids, begins=begins)
                return self.torch.draw(drawn_from, self.sampling, numbers, n_best)
            # the coverage penalty may prefer any hypothesis of the beam
            kept = settings.beam_size if settings.coverage_penalty else n_best
            sources = BatchSources(ids, begins=begins)
            if self.native:
                sources = self.native.encode(ids, begins)
            if given := [each for each in constraints if each]:  # then all sentences have some
                found = self._constrained_search(sources, given, kept)
            else:
                target_ids = self.shortlist.target_ids(ids, begins) if self.shortlist else None
                found = self._unconstrained_search(sources, kept, settings, target_ids)
            if settings.coverage_penalty:
                source = self.loaded.tokenizer.source
                plain = [without_matches(source, row) for row in ids]
                ranked = self.torch.rank_by_coverage(plain, found)
                return [best_first[:n_best] for best_first in ranked]
            return found

    def _constrained_search(
        self, sources: BatchSources, constraints: Sequence[SpelledConstraints], n_best: int
    ) -> list[list[Hypothesis]]:
        """Search without constraints, and with them only where what was found does not meet them.

        Most translations have no forbidden word anyway, but many lack a term. Greedy search, which
        takes a third of the time, tells in advance whether all terms are likely to be there. Where
        it misses one, and where constraints `needs_search`, only the search under them is tried.
        """
        tried = [i for i, each in enumerate(constraints) if not each.needs_search]
        if self.settings.beam_size > 1:
            greedy = self.settings.model_copy(update={"beam_size": 1})
            with_terms = [i for i in tried if constraints[i].text.terms]
            has_all = self._try_without(sources, constraints, with_terms, 1, greedy)
            tried = [i for i in tried if i in has_all or not constraints[i].text.terms]
        results = self._try_without(sources, constraints, tried, n_best, self.settings)
        unmet = [i for i in range(len(constraints)) if i not in results]
        widths = [beam_width(constraints[i], self.settings.beam_size) for i in unmet]
        size = max(1, ROWS_AT_ONCE // max(widths, default=1))  # sentences at once
        for start in range(0, len(unmet), size):
            group = unmet[start : start + size]
            own = [constraints[i] for i in group]
            found = self._search_under_constraints(own, sources.select(group), n_best)
            results |= zip(group, found, strict=True)
        return [results[i] for i in range(len(constraints))]

    def _try_without(
        self,
        sources: BatchSources,
        constraints: Sequence[SpelledConstraints],
        tried: list[int],
        n_best: int,
        settings: DecodingConfig,
    ) -> dict[int, list[Hypothesis]]:
        """Search the sentences `tried` (indices) without constraints; return those that meet them.

        The result is {index: hypotheses}.
        """
        if not tried:
            return {}

        def meets(i: int, hypothesis: Hypothesis) -> bool:
            has_ended = len(hypothesis.tokens) < settings.max_target_length(len(sources.ids[i]))
            text = self.spelling.text_of(hypothesis.tokens)
            return has_ended and constraints[i].are_met_by(text.decode("utf-8", errors="replace"))

        found = self._unconstrained_search(sources.select(tried), n_best, settings)
        pairs = zip(tried, found, strict=True)
        return {i: hypotheses for i, hypotheses in pairs if all(meets(i, h) for h in hypotheses)}

    def _search_under_constraints(
        self, constraints: list[SpelledConstraints], sources: BatchSources, n_best: int
    ) -> list[list[Hypothesis]]:
        """Search under constraints; the C library computes the steps if it can."""
        settings, searches = self.settings, []
        for i, (source_constraints, ids) in enumerate(zip(constraints, sources.ids, strict=True)):
            limit = settings.max_target_length(len(ids))
            if sources.begins:
                begin = (sources.begins[i], *source_constraints.context_ids)
                source_constraints = replace(source_constraints, context_ids=begin)
                limit -= 1  # given ids do not count
            sentence = ConstrainedSentence(source_constraints, self.spelling)
            searches.append(SentenceSearch(sentence, limit, settings, n_best))
        word_ends = self.spelling.word_ends
        if not self.native:
            return constrained_search(self.torch.start(sources.ids, word_ends), searches)
        width = max(search.beam for search in searches)
        longest = max(search.limit for search in searches)
        decoder = self.native.start(sources, width, longest, word_ends)
        return constrained_search(decoder, searches)

    def _unconstrained_search(
        self,
        sources: BatchSources,
        n_best: int,
        settings: DecodingConfig,
        target_ids: "Array | None" = None,
    ) -> list[list[Hypothesis]]:
        """Search by the C library or by PyTorch, among these target ids; None: among all."""
        if target_ids is not None and sources.begins:
            begins = np.searchsorted(target_ids, sources.begins).tolist()
            sources = replace(sources, begins=begins)
        if native := self.native:
            if target_ids is not None:
                native = native.restrict_vocabulary(target_ids)
            found = native.search(sources, settings, n_best)
        else:
            found = self.torch.search(sources, settings, n_best, target_ids)
        return found if target_ids is None else in_whole_vocabulary(found, target_ids)


def check_beam_size(loaded: LoadedModel, settings: DecodingConfig, memory: float | None) -> None:
    """Raise a ConfigError if the beam exceeds vocabulary or `memory` (bytes; None: no limit)."""
    beam, vocabulary = settings.beam_size, loaded.tokenizer.target.size
    widest = widest_beam(loaded, memory)
    if beam > vocabulary:
        problem = f"is wider than the vocabulary of {vocabulary:,} entries"
    elif memory is not None and beam > widest:
        problem = "needs more memory for a single short sentence than the "
        problem += f"{memory / 1e9:.1f} GB there are"
    else:
        return
    raise ConfigError(
        f"a beam of {beam} {problem}; give a `beam_size` (decoding.beam_size) of at most {widest}"
    )


def widest_beam(loaded: LoadedModel, memory: float | None) -> int:
    """Return the widest beam for one short sentence in `memory` bytes; None means unlimited memory.

    In T steps the k hypotheses of a sentence store k * T positions, and k queries attend to all of
    them at once. On a CPU, each core may run a search; they share the memory.
    """
    config, vocabulary = loaded.config, loaded.tokenizer.target.size
    if memory is None:
        return vocabulary
    if loaded.device_type == "cpu":
        memory /= available_cores()
    steps = config.decoding.max_target_length(MIN_COUNTED_LENGTH)  # T
    float_bytes = 4  # of a float32; the mask has 1 byte per entry
    layers, width, heads = config.model.decoder_layers, config.model.d_model, config.model.heads
    # A beam of k needs a * k^2 + b * k bytes: a for attention weights of one layer and the mask,
    # b for keys and values of all layers, logits and log P. The k for all of `memory`:
    a = steps * (heads * float_bytes + 1)
    b = (2 * layers * steps * width + 2 * vocabulary) * float_bytes
    beam = (math.sqrt(b**2 + 4 * a * memory) - b) / (2 * a)
    return max(1, min(vocabulary, int(beam)))
