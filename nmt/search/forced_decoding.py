"""Target tokens that are given, decoded by the C library: the attention and log P of each."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nmt.data.tokens.tokenizer import BOS
from nmt.recipe.config import GuidedAlignmentConfig
from nmt.search.cancellation import check_not_cancelled
from nmt.search.native_search import NativeSearch
from nmt.search.step_decoder import StepRows
from nmt.search.windows import cut_into_batches


class ForcedTarget(NamedTuple):
    """What a model says of a target that is given, whose last token is EOS."""

    attended: list[int]
    """the source position, from 0, that each token but EOS attends to most"""
    log_p: list[float]
    """log P of each token, in nats"""


def force_decode_in_c(
    native: NativeSearch,
    sources: Sequence[list[int]],
    targets: Sequence[list[int]],
    batch_tokens: int,
    guided: GuidedAlignmentConfig | None,
) -> list[ForcedTarget]:
    """Decode targets, given with their sources as ids, each with EOS, in batches.

    Attention is that of the mean head at the step that predicts a token; with `guided`, that of
    the head that learnt alignments, at the step at which it learnt them.
    """
    lengths = [max(len(s), len(t)) for s, t in zip(sources, targets, strict=True)]
    found: list[ForcedTarget] = [ForcedTarget([], [])] * len(targets)
    for indices in cut_into_batches(range(len(targets)), lengths, batch_tokens):
        pairs = [sources[i] for i in indices], [targets[i] for i in indices]
        for i, target in zip(indices, _decode_batch(native, *pairs, guided), strict=True):
            found[i] = target
    return found


def _decode_batch(
    native: NativeSearch,
    sources: list[list[int]],
    targets: list[list[int]],
    guided: GuidedAlignmentConfig | None,
) -> list[ForcedTarget]:
    """Decode some targets, a step for a token of all of them."""
    lengths = np.array([len(target) for target in targets])
    longest = int(lengths.max())
    inputs = np.zeros((len(targets), longest + 1), np.int32)  # BOS and the tokens of each target
    inputs[:, 0] = BOS
    for row, target in zip(inputs, targets, strict=True):
        row[1 : len(target) + 1] = target
    attended, log_p = np.zeros(inputs.shape, np.int64), np.zeros(inputs.shape)
    word_ends = np.zeros(0, np.bool_)  # nothing asks for the ends of words
    steps = native.start(native.encode(sources), 1, longest, word_ends, guided)
    for step in range(longest):
        check_not_cancelled()
        rows = np.flatnonzero(lengths > step)
        none, number = np.zeros(len(rows), np.int32), np.arange(len(rows))
        asked = StepRows(rows, none, inputs[rows, step], number, inputs[rows, step + 1])
        scores = steps.step(asked, best=1, attention=True)
        attended[rows, step], log_p[rows, step] = scores.attended, scores.asked_log_p
    later = guided.steps_later if guided else 0
    return [
        ForcedTarget(places[later : later + n - 1].tolist(), of_tokens[:n].tolist())
        for places, of_tokens, n in zip(attended, log_p, lengths.tolist(), strict=True)
    ]
