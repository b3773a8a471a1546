"""Single steps of the decoder by the C library, for a search in Python (`StepDecoder`)."""

import ctypes
from collections.abc import Sequence

import numpy as np

from nmt.checkpoint_files import Array
from nmt.errors import NonFiniteScoresError
from nmt.inference.native.weights import NativeWeights
from nmt.search.step_decoder import NextScores, StepRow


class NativeSteps:
    """The C library's decoder with the encoded sources of one batch."""

    def __init__(
        self,
        library: ctypes.CDLL,
        weights: NativeWeights,
        sources: Sequence[Sequence[int]],
        width: int,
        max_length: int,
    ) -> None:
        """Encode the sources; each may have up to `width` hypotheses of up to `max_length` tokens.

        Raises:
            MemoryError: the memory does not suffice.
        """
        self._library, self._weights = library, weights
        weights.extend_positions(max(max_length, *map(len, sources)))
        ids, starts = one_after_another(sources)
        start = library.nmt_start(
            ctypes.byref(weights.model),
            width,
            len(sources),
            address(ids),
            address(starts),
            max_length,
        )
        if not start:
            raise MemoryError
        self._steps = ctypes.c_void_p(start)
        self._steps_left = max_length
        projection = weights.model.projection
        self._entries: int = projection.outputs
        # rows are filled up with -inf to a multiple of what the library computes at once
        self._log_p = np.empty((len(sources) * width, projection.padded), np.float32)

    def __del__(self) -> None:
        if hasattr(self, "_steps"):
            self._library.nmt_finish(self._steps)

    def step(self, rows: Sequence[StepRow], best: int, attention: bool) -> NextScores:
        """Add a token to hypotheses, and return the scores of the next ones, see `StepDecoder`.

        Raises:
            NonFiniteScoresError: the model's scores are NaN or infinite.
        """
        if len(rows) > len(self._log_p) or not self._steps_left:
            raise AssertionError("more hypotheses or tokens than the memory was taken for")
        self._steps_left -= 1
        sentences, parents, tokens = np.array(rows, np.int32).T.copy()
        best = min(best, self._entries)
        best_tokens = np.empty((len(rows), best), np.int32)
        best_log_p = np.empty((len(rows), best), np.float32)
        attended = np.zeros(len(rows), np.int32)
        failed = self._library.nmt_step(
            self._steps,
            len(rows),
            *(address(array) for array in (sentences, parents, tokens)),
            best,
            *(address(array) for array in (self._log_p, best_tokens, best_log_p)),
            address(attended) if attention else None,
        )
        if failed:
            raise NonFiniteScoresError()
        log_p = self._log_p[: len(rows), : self._entries]
        return NextScores(log_p, best_tokens, best_log_p, attended.tolist())


def one_after_another(sources: Sequence[Sequence[int]]) -> tuple[Array, Array]:
    """Return all ids in one array; those of sentence i begin at starts[i], the second array."""
    ids = np.concatenate([np.array(row, np.int32) for row in sources])
    starts = np.cumsum([0, *map(len, sources)], dtype=np.int32)
    return ids, starts


def address(array: np.ndarray) -> ctypes.c_void_p:
    """Return the address of the first number of an array, which the caller keeps alive, for C."""
    return ctypes.c_void_p(array.ctypes.data)
