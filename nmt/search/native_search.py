"""Greedy and beam search by the C library of `nmt.inference.native`, with the same results.

The library computes a whole batch in one call. For a small model, Python and PyTorch take longer
to call the hundreds of operations of a step than the processor takes to compute them.
"""

import ctypes
from collections.abc import Sequence
from typing import Self

import numpy as np

from nmt.data.tokens.tokenizer import BOS, EOS, PAD, UNK
from nmt.errors import NonFiniteScoresError
from nmt.inference.native.library import native_library
from nmt.inference.native.weights import (
    SETTINGS,
    NativeWeights,
    UnexpectedWeightsError,
    unknown_part,
)
from nmt.kernels.python_code import configured_attributes, is_code_unchanged
from nmt.recipe.config import DecodingConfig, GuidedAlignmentConfig, ModelConfig
from nmt.run.checkpoint_files import Array
from nmt.run.model import LoadedModel
from nmt.search.cancellation import check_not_cancelled, current_cancellation
from nmt.search.hypothesis import Hypothesis, length_penalty
from nmt.search.native_sources import BatchSources, NativeMemory, check_ids, pointer_to
from nmt.search.native_steps import NativeSteps

PRECISIONS = ("fp32", "int8")
MAX_EXCLUDED = 4
"""ids that no translation may have; fewer are filled up with NONE"""
NONE = -1
"""stands for an id or a length that does not exist"""


class CSearch(ctypes.Structure):
    """`Search` of search.h."""

    _fields_ = (
        ("beam_size", ctypes.c_int32),
        ("n_best", ctypes.c_int32),
        ("early_stopping", ctypes.c_int32),
        ("min_length", ctypes.c_int32),
        ("no_repeat_ngram", ctypes.c_int32),
        ("bos", ctypes.c_int32),
        ("eos", ctypes.c_int32),
        ("excluded", ctypes.c_int32 * MAX_EXCLUDED),
        ("penalties", ctypes.c_void_p),
    )


def why_pytorch_searches(loaded: LoadedModel) -> str | None:
    """Return why the C library cannot translate with a model, as a clause; None: it can.

    `why_library_cannot` knows only the configuration. This asks also what is in memory: a device,
    an ensemble or changed code, if PyTorch has made the model.
    """
    if loaded.is_in_torch:
        from nmt.search.ensemble import Ensemble  # PyTorch is imported: it has made the model

        if loaded.device_type != "cpu":
            return f"the model is on {loaded.device_type}"
        if isinstance(loaded.model, Ensemble):
            return "several models translate together"
        if not is_code_unchanged(loaded.model, configured_attributes(loaded.config.model)):
            return "the model has been changed"
    return why_library_cannot(loaded.config.model)


def why_library_cannot(config: ModelConfig) -> str | None:
    """Return why the C library is not there, or does not know such a model; None: it can compute.

    The reason is a clause that ends a sentence. A model in memory may have reasons of its own:
    `why_pytorch_searches`.
    """
    if not is_code_unchanged():
        return "the model has been changed"
    for name, known in SETTINGS.items():
        if (value := getattr(config, name)) not in known:
            return f"the C library does not know {name} {value!r}"
    if part := unknown_part(config):
        return f"the C library does not know {part.name} of the shape {part.shape}"
    library = native_library()  # not before: where there is none, a warning says what that costs
    if library is None:
        return "this machine cannot use the C library (`nmt doctor` says why)"
    panel = library.nmt_panel()  # a matrix product computes so many columns together
    lanes = library.nmt_lanes()  # a register holds so many numbers
    if config.d_model % panel or config.d_ff % panel or config.d_model // config.heads % lanes:
        return (
            f"the C library needs d_model and d_ff that {panel} divides and heads whose width "
            f"{lanes} divides"
        )
    return None


class NativeSearch:
    """A model whose translations the C library searches for."""

    def __init__(self, library: ctypes.CDLL, weights: NativeWeights) -> None:
        self._library, self._weights = library, weights

    @classmethod
    def build(cls, loaded: LoadedModel, precision: str) -> Self | None:
        """Pack the weights of a run; None if the library is not there or cannot compute the model.

        Raises:
            NonFiniteScoresError: int8 of weights that hold NaN or infinity, which have no scale.
        """
        if precision not in PRECISIONS or why_pytorch_searches(loaded):
            return None
        library = native_library()
        assert library  # else there is a reason why PyTorch searches
        arrays, int8 = loaded.arrays, precision == "int8"
        try:
            return cls(library, NativeWeights(loaded.config.model, arrays, library, int8))
        except UnexpectedWeightsError:  # PyTorch will load the model, and say what is wrong
            return None

    def restrict_vocabulary(self, ids: Array) -> Self:
        """Return a search among the target ids `ids` (V'); its ids are indices into them."""
        return type(self)(self._library, self._weights.restrict_vocabulary(ids))

    def with_projection(self, weight: Array) -> Self:
        """Return a search with another output projection (V, D)."""
        return type(self)(self._library, self._weights.with_projection(weight))

    def encode(self, sources: list[list[int]], begins: Sequence[int] | None = None) -> BatchSources:
        """Encode rows of source ids; `begins` are those of `BatchSources`.

        Raises:
            IndexError: an id has no row in the source embeddings, which C would not notice.
            MemoryError: the memory does not suffice.
        """
        lengths = [len(ids) for ids in sources]
        self._weights.extend_positions(max(lengths))
        ids = np.concatenate([np.array(row, np.int32) for row in sources])
        check_ids(ids, self._weights.source_rows)
        starts = np.cumsum([0, *lengths], dtype=np.int32)  # in `ids`
        encoded = self._library.nmt_encode(
            ctypes.byref(self._weights.model), len(lengths), pointer_to(ids), pointer_to(starts)
        )
        if not encoded:
            raise MemoryError
        memory = NativeMemory(self._library, encoded)
        return BatchSources(sources, memory, range(len(lengths)), begins)

    def search(
        self, sources: BatchSources, settings: DecodingConfig, n_best: int
    ) -> list[list[Hypothesis]]:
        """Return up to `n_best` hypotheses of each source, best first, as `beam_search` does.

        Raises:
            NonFiniteScoresError: the model's scores are NaN or infinite.
            MemoryError: the memory does not suffice.
            SearchCancelled: nobody waits for the results.
        """
        # the most tokens of each translation, EOS included, and of any in the batch
        limits = [max(1, settings.max_target_length(len(ids))) for ids in sources.ids]
        max_lengths = np.array(limits, np.int32)
        row_size = int(max_lengths.max())
        self._weights.extend_positions(row_size)
        penalties = [1.0] + [length_penalty(float(t), settings) for t in range(1, row_size + 1)]
        penalty_of_length = np.array(penalties, np.float32)  # no translation has length 0
        unknown = NONE if settings.allow_unknown else UNK
        search = CSearch(
            beam_size=settings.beam_size,
            n_best=n_best,
            early_stopping=settings.early_stopping,
            min_length=settings.min_length,
            no_repeat_ngram=settings.no_repeat_ngram,
            bos=self._weights.start,
            eos=EOS,
            excluded=(ctypes.c_int32 * MAX_EXCLUDED)(PAD, BOS, unknown, NONE),
            penalties=penalty_of_length.ctypes.data,
        )
        assert sources.memory
        chosen = np.array(sources.rows, np.int32)
        begins = np.array(sources.begins or [NONE] * len(chosen), np.int32)
        # what the library writes; a length is without BOS and EOS, NONE: no such hypothesis
        tokens = np.empty((len(chosen), n_best, row_size), np.int32)
        lengths = np.empty((len(chosen), n_best), np.int32)
        scores = np.empty((len(chosen), n_best), np.float32)
        failed = self._library.nmt_translate(
            ctypes.byref(self._weights.model),
            ctypes.byref(search),
            sources.memory.address,
            len(chosen),
            *(pointer_to(array) for array in (chosen, max_lengths, begins)),
            row_size,
            *(pointer_to(array) for array in (tokens, lengths, scores)),
            ctypes.byref(current_cancellation().flag),
        )
        check_not_cancelled()
        if failed:  # the library fails only for want of memory
            raise MemoryError
        return _hypotheses(tokens, lengths, scores)

    def start(
        self,
        sources: BatchSources,
        width: int,
        max_length: int,
        word_ends: Array,
        guided: GuidedAlignmentConfig | None = None,
    ) -> NativeSteps:
        """Return a decoder of these sources, whose steps another search chooses.

        A source has `width` hypotheses at most, of up to `max_length` tokens each, EOS included.
        `word_ends` and `guided` are those of `NativeSteps`.

        Raises:
            MemoryError: the memory does not suffice.
        """
        parts = self._library, self._weights, sources
        return NativeSteps(*parts, width, max_length, word_ends, guided)


def _hypotheses(tokens: Array, lengths: Array, scores: Array) -> list[list[Hypothesis]]:
    """Return the hypotheses of each sentence, best first: tokens (N, n, T), the others (N, n)."""
    results = []
    for of_sentence in zip(tokens, lengths.tolist(), scores.tolist(), strict=True):
        found = [
            Hypothesis(tuple(row[:length].tolist()), score)
            for row, length, score in zip(*of_sentence, strict=True)
            if length != NONE
        ]
        if not found:  # scores that are NaN are not above -inf
            raise NonFiniteScoresError()
        results.append(found)
    return results
