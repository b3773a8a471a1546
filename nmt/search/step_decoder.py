"""A decoder that computes one step at a time, for a search that chooses the hypotheses in Python.

The C library (`NativeSteps`) and PyTorch (`TorchSteps`) compute the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from nmt.checkpoint_files import Array


class StepRow(NamedTuple):
    """A hypothesis of one step. All rows of a sentence are adjacent."""

    sentence: int
    """index of its sentence in the batch"""
    parent: int
    """which row of its sentence in the last step it continues, counted from 0; 0 at first"""
    token: int
    """its last token; BOS at first"""


@dataclass(frozen=True)
class NextScores:
    """What the model says of the token after each of R rows; valid until the next step."""

    log_p: Array
    """(R, V) log P of each token"""
    best_tokens: Array
    """(R, K) the most probable tokens of each row, the best one first; K is at most V"""
    best_log_p: Array
    """(R, K) their log P"""
    attended: list[int]
    """of each row the source position, EOS excluded, that it attends to most; 0 if not asked for"""


class StepDecoder(Protocol):
    """A decoder and the encoded sources of one batch."""

    def step(self, rows: Sequence[StepRow], best: int, attention: bool) -> NextScores:
        """Add a token to hypotheses, and return the scores of the next ones.

        `rows` are all hypotheses that are continued; a sentence without a row is dropped for good.
        K is the smaller one of `best` and V, and `attention` says whether `attended` is needed.

        Raises:
            NonFiniteScoresError: the model's scores are NaN or infinite.
        """
