"""Single steps of the decoder by the C library, for a search in Python (`StepDecoder`)."""

import ctypes
from collections.abc import Sequence

import numpy as np

from nmt.data.tokens.tokenizer import BOS
from nmt.errors import NonFiniteScoresError
from nmt.inference.native.weights import CModel, NativeWeights
from nmt.recipe.config import GuidedAlignmentConfig
from nmt.run.checkpoint_files import Array
from nmt.search.native_sources import BatchSources, check_ids, pointer_to
from nmt.search.step_decoder import NextScores, StepRows


class NativeSteps:
    """The C library's decoder of encoded sources."""

    def __init__(
        self,
        library: ctypes.CDLL,
        weights: NativeWeights,
        sources: BatchSources,
        width: int,
        max_length: int,
        word_ends: Array,
        guided: GuidedAlignmentConfig | None = None,
    ) -> None:
        """Begin; each source may have up to `width` hypotheses of up to `max_length` tokens.

        `word_ends` is a mask (V,), see `NextScores.end_log_p`. With `guided`,
        `NextScores.attended` is by the head that learnt alignments.

        Raises:
            MemoryError: the memory does not suffice.
        """
        assert sources.memory
        self._library, self._weights, self._memory = library, weights, sources.memory
        weights.extend_positions(max_length)
        self._projection = weights.model.projection
        self._model = CModel.from_buffer_copy(weights.model)
        if guided:
            self._model.alignment_layer = guided.layer_index(self._model.decoder_layers)
            self._model.alignment_head = 0
        self._word_ends = np.full(self._projection.padded, -np.inf, np.float32)
        self._word_ends[: len(word_ends)][word_ends] = 0.0
        chosen = np.array(sources.rows, np.int32)
        start = library.nmt_start(
            ctypes.byref(self._model),
            pointer_to(self._word_ends),
            width,
            sources.memory.address,
            len(chosen),
            pointer_to(chosen),
            max_length,
        )
        if not start:
            raise MemoryError
        self._steps = ctypes.c_void_p(start)
        self._steps_left, self._most_rows = max_length, len(chosen) * width
        self._sentences, self._width = len(chosen), width
        self._rows = 0  # of the last step

    def __del__(self) -> None:
        if hasattr(self, "_steps"):
            self._library.nmt_finish(self._steps)

    def step(self, rows: StepRows, best: int, attention: bool) -> NextScores:
        """Add a token to hypotheses, and return the scores of the next ones, see `StepDecoder`.

        Raises:
            IndexError: an id, row or sentence does not exist, which C would not notice.
            NonFiniteScoresError: the model's scores are NaN or infinite.
        """
        self._rows = count = len(rows.tokens)
        if count > self._most_rows or not self._steps_left:
            raise AssertionError("more hypotheses or tokens than the memory was taken for")
        self._steps_left -= 1
        sentences, parents, tokens, asked_rows, asked_tokens = (
            np.ascontiguousarray(array, np.int32) for array in rows
        )
        tokens = np.where(tokens == BOS, np.int32(self._weights.start), tokens)
        check_ids(sentences, self._sentences)
        check_ids(parents, self._width)
        check_ids(tokens, self._weights.target_rows)
        check_ids(asked_rows, count)
        check_ids(asked_tokens, self._weights.target_rows)
        best = min(best, self._projection.outputs)
        best_tokens = np.empty((count, best), np.int32)
        best_log_p = np.empty((count, best), np.float32)
        end_log_p = np.empty(count, np.float32)
        asked_log_p = np.empty(len(asked_rows), np.float32)
        attended = np.zeros(count, np.int32)
        failed = self._library.nmt_step(
            self._steps,
            count,
            *(pointer_to(array) for array in (sentences, parents, tokens)),
            best,
            *(pointer_to(array) for array in (best_tokens, best_log_p, end_log_p)),
            len(asked_rows),
            *(pointer_to(array) for array in (asked_rows, asked_tokens, asked_log_p)),
            pointer_to(attended) if attention else None,
        )
        if failed:
            raise NonFiniteScoresError()
        return NextScores(best_tokens, best_log_p, end_log_p, asked_log_p, attended)

    def log_p(self, rows: Sequence[int]) -> Array:
        """Return log P (N, V) of all tokens after these N rows of the last step."""
        # rows are filled up with -inf to a multiple of what the library computes at once
        log_p = np.empty((len(rows), self._projection.padded), np.float32)
        indices = np.array(rows, np.int32)
        check_ids(indices, self._rows)  # of the last step, so that their copies fit, too
        self._library.nmt_log_p(self._steps, len(rows), pointer_to(indices), pointer_to(log_p))
        return log_p[:, : self._projection.outputs]
