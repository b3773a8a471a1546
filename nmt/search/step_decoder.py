"""A decoder that computes one step at a time, for a search that chooses the hypotheses in Python.

The C library (`NativeSteps`) and PyTorch (`TorchSteps`) compute the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from nmt.run.checkpoint_files import Array


class StepRows(NamedTuple):
    """The R hypotheses of one step, and A tokens after them whose log P is asked for.

    All rows of a sentence are adjacent.
    """

    sentences: Array
    """(R,) index of the sentence of each in the batch"""
    parents: Array
    """(R,) which row of its sentence in the last step it continues, counted from 0; 0 at first"""
    tokens: Array
    """(R,) its last token; BOS at first"""
    asked_rows: Array
    """(A,) indices of rows"""
    asked_tokens: Array
    """(A,) the token after each of these"""


@dataclass(frozen=True)
class NextScores:
    """What the model says of the token after each of R rows."""

    best_tokens: Array
    """(R, K) the most probable tokens of each row, the best one first; K is at most V"""
    best_log_p: Array
    """(R, K) their log P"""
    end_log_p: Array
    """(R,) log P of the most probable one of the tokens before which a word is complete"""
    asked_log_p: Array
    """(A,) log P of the tokens that were asked for"""
    attended: Array
    """(R,) the source position, EOS excluded, that each row attends to most; 0 if not asked for"""


class StepDecoder(Protocol):
    """A decoder and the encoded sources of one batch."""

    def step(self, rows: StepRows, best: int, attention: bool) -> NextScores:
        """Add a token to hypotheses, and return the scores of the next ones.

        `rows` are all hypotheses that are continued; a sentence without a row is dropped for good.
        K is the smaller one of `best` and V, and `attention` says whether `attended` is needed.

        Raises:
            NonFiniteScoresError: the model's scores are NaN or infinite.
        """

    def log_p(self, rows: Sequence[int]) -> Array:
        """Return log P (N, V) of all tokens after these N rows of the last step."""
