"""A step whose gradient was computed: its loss, its pairs, and the micro-batches that it had."""

from dataclasses import dataclass

from torch import Tensor

from nmt.data.tokens.token_store import Indices, TokenStore


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """Pairs whose gradient was computed at once."""

    rows: Indices
    """the pairs: row indices of a token store"""
    loss: Tensor
    """summed over their target tokens, in nats: scalar"""


@dataclass(frozen=True)
class ComputedStep:
    """A step whose gradient was computed into `Parameter.grad`; tensors are on the device."""

    step: int
    """number of the step, from 1"""
    loss: Tensor
    """summed over the tokens of all processes, in nats: scalar float64"""
    norm: Tensor
    """L2 norm of the whole gradient: scalar"""
    tokens: int
    """target tokens of all processes"""
    pairs: Indices
    """the pairs of the step, of all processes: row indices of the training store"""
    store: TokenStore
    """the ids that this process computed: the training store, or sampled segmentations of it"""
    micro_batches: list[MicroBatch]
    """the micro-batches of this process; their `rows` are those of `store`"""
