"""What the decoder remembers between steps: keys and values, so that nothing is computed twice.

The hypotheses of a sentence share most of their past. Each step therefore stores the new positions
of all of them side by side, where they stay, and a mask tells from which positions a hypothesis
descends. To continue other hypotheses is to take other rows of that mask: no key and no value is
copied. Now and then the positions from which nobody descends any more are left out.

Attention reads more than is there: the room for the next steps, which no hypothesis descends from,
and a few places of padding behind the source. Lengths are so multiples of some number, and kernels,
which are compiled for each, few.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

# Steps between two clearings, at least: with more, attention reads more that nobody descends from.
STEPS_PER_COMPACTION = 4
LENGTHS_MULTIPLE = 16  # also because the softmax of fewer numbers than registers hold is slow

CPU_SIZE_BITS, GPU_SIZE_BITS = 3, 2
"""binary digits of the numbers of sentences in a batch, see `round_up_to_bucket`"""


class KeyValueView(Protocol):
    """What one decoder layer attends to in one step."""

    @property
    def cross_key(self) -> Tensor:
        """(N, H, S', K)."""

    @property
    def cross_value(self) -> Tensor:
        """(N, H, S', K)."""

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Fill in keys and values (N, H, k, K) of the new positions; all (N, H, room, K)."""


class CachedKeyValues(NamedTuple):
    """What a layer attends to, the places of what is new among it, as so many tensors."""

    key: Tensor
    """(N, H, room, K)"""
    value: Tensor
    new_key: Tensor
    """the places in `key` of the new positions: (N, H, k, K)"""
    new_value: Tensor
    cross_key: Tensor
    """(N, H, S', K)"""
    cross_value: Tensor

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """As `KeyValueView`, in place."""
        self.new_key.copy_(key)
        self.new_value.copy_(value)
        return self.key, self.value


class LayerCache:
    """One decoder layer's keys and values, a sentence's head by head, as they are read.

    Self-attention: (N, H, room, K), of which the first positions are taken.
    Cross-attention: (N, H, S', K), one entry a sentence, shared by all its hypotheses; S' is S and
    padding, a `multiple`.
    """

    def __init__(
        self, cross_key: Tensor, cross_value: Tensor, multiple: int = LENGTHS_MULTIPLE
    ) -> None:
        self.cross_key = with_padding(cross_key, 2, multiple)
        self.cross_value = with_padding(cross_value, 2, multiple)
        sentences, heads, _, width = cross_key.shape
        self.key = cross_key.new_zeros(sentences, heads, multiple, width)
        self.value = cross_value.new_zeros(sentences, heads, multiple, width)

    def at_step(self, new: slice) -> CachedKeyValues:
        """All that is to be attended to in a step, with the places of its new positions."""
        new_key, new_value = self.key[:, :, new], self.value[:, :, new]
        return CachedKeyValues(
            self.key, self.value, new_key, new_value, self.cross_key, self.cross_value
        )

    def keep_positions(self, positions: Tensor, room: int) -> None:
        """Keep of each sentence the positions (N, stored'), in `room` for so many in all."""
        sentences, heads, size, width = self.key.shape
        # the first row of each head, once the positions of all stand below each other
        first = torch.arange(sentences * heads, device=positions.device) * size
        rows = first.view(sentences, heads, 1) + positions[:, None]  # (N, H, stored')
        # What stands in the room is read and counts nothing, but must be numbers: the first row.
        rows = F.pad(rows, (0, room - positions.shape[1])).flatten()
        self.key, self.value = (
            stored.flatten(0, 2).index_select(0, rows).view(sentences, heads, room, width)
            for stored in (self.key, self.value)
        )

    def keep_sentences(self, sentences: Tensor, moved: Tensor) -> None:
        """Keep the sentences (N',) alone, of which only those in the places `moved` move."""
        self.cross_key = _kept(self.cross_key, sentences, moved)
        self.cross_value = _kept(self.cross_value, sentences, moved)
        self.key = _kept(self.key, sentences, moved)
        self.value = _kept(self.value, sentences, moved)


def with_padding(x: Tensor, dim: int, multiple: int) -> Tensor:
    """x, contiguous, with zeros behind it up to the next `multiple` along `dim`."""
    sides = [0] * (2 * (x.dim() - dim))
    sides[-1] = -x.shape[dim] % multiple
    return F.pad(x, sides).contiguous()


def _kept(stored: Tensor, sentences: Tensor, moved: Tensor) -> Tensor:
    """Rows `sentences` of what is stored: in its own memory where few of them move."""
    if 2 * len(moved) > len(sentences):
        return stored.index_select(0, sentences)
    stored[moved] = stored[sentences[moved]]
    return stored[: len(sentences)]


def leaving_sentences(done: Tensor) -> Tensor:
    """Which of the sentences that are done leave the batch: (N,) -> (N,) booleans.

    A CPU's kernels are compiled for each number of rows that they are asked for, and a GPU's graphs
    recorded. Therefore a batch takes few sizes, up to a quarter apart or to a half, and until it
    falls to the next some stay that are done.
    """
    going_on = int((~done).sum())
    bits = CPU_SIZE_BITS if done.device.type == "cpu" else GPU_SIZE_BITS
    filling = round_up_to_bucket(going_on, bits) - going_on
    return done & (done.cumsum(0) > filling)


def round_up_to_bucket(count: int, bits: int) -> int:
    """The next number, from `count` upwards, with nothing but zeros behind its first binary digits.

    With two `bits` these are 1, 2, 3, 4, 6, 8, 12, 16, 24 and so on.
    """
    step: int = 1 << max(0, count.bit_length() - bits)
    return count + -count % step


def remaining_sentences(leaving: Tensor) -> Tensor:
    """The places of the sentences that do not leave (N,), in an order in which most stay: (N',).

    What leaves makes holes, and these are filled from the end.
    """
    kept = (~leaving).nonzero()[:, 0]
    count = len(kept)
    places = torch.arange(count, device=leaving.device)
    places[leaving[:count]] = kept[kept >= count]
    return places


class DecoderCache:
    """The state of incremental decoding of N sentences, passed explicitly from step to step.

    Room and S' are multiples of `multiple`. At least `steps_per_compaction` steps lie between two
    compactions.
    """

    def __init__(
        self,
        layers: Sequence[LayerCache],
        source_mask: Tensor,
        multiple: int = LENGTHS_MULTIPLE,
        steps_per_compaction: int = STEPS_PER_COMPACTION,
    ) -> None:
        self.layers = layers
        self.multiple, self.steps_per_compaction = multiple, steps_per_compaction
        self.source_length = source_mask.shape[3]
        """S, without the padding that is added here"""
        self.source_mask = with_padding(source_mask, 3, multiple)
        """(N, 1, 1, S')"""
        self.length = 0
        """target positions decoded so far"""
        self.stored = 0
        """positions that are taken, of all hypotheses of a sentence"""
        self.ancestor_mask = source_mask.new_zeros(len(source_mask), 1, multiple)
        """(N, k, room): True = hypothesis k descends from the position, or is at it"""

    def advance(self, hypotheses: int) -> tuple[Tensor, list[CachedKeyValues]]:
        """Begin a step of `hypotheses` a sentence.

        Returns where each may attend to (N, 1, k, room), and what each layer has there.
        """
        if self.stored + hypotheses > self.ancestor_mask.shape[2]:
            self._compact(self.steps_per_compaction * hypotheses)
        own = torch.eye(hypotheses, dtype=torch.bool, device=self.ancestor_mask.device)
        new = slice(self.stored, self.stored + hypotheses)
        self.ancestor_mask[:, :, new] = own
        self.stored += hypotheses
        self.length += 1
        return self.ancestor_mask[:, None], [layer.at_step(new) for layer in self.layers]

    def continue_hypotheses(self, parents: Tensor) -> None:
        """Let hypothesis i of a sentence continue what was its hypothesis parents[i]: (N, k)."""
        index = parents[:, :, None].expand(-1, -1, self.ancestor_mask.shape[2])
        self.ancestor_mask = self.ancestor_mask.gather(1, index)

    def keep_sentences(self, sentences: Tensor) -> None:
        """Drop the other sentences: (N',) indices of those to keep."""
        self.source_mask = self.source_mask.index_select(0, sentences)
        self.ancestor_mask = self.ancestor_mask.index_select(0, sentences)
        places = torch.arange(len(sentences), device=sentences.device)
        moved = (sentences != places).nonzero()[:, 0]
        for layer in self.layers:
            layer.keep_sentences(sentences, moved)

    def _compact(self, least: int) -> None:
        """Leave out the positions from which nobody descends; then there is room for `least`."""
        living = self.ancestor_mask.any(1)  # (N, room)
        count = int(living.sum(1).max())
        # the living first, in their order; sentences with fewer keep others that stay masked
        kept = (~living).to(torch.uint8).argsort(dim=1, stable=True)[:, :count]
        room = count + least
        room += -room % self.multiple
        index = kept[:, None].expand(-1, self.ancestor_mask.shape[1], -1)
        self.ancestor_mask = F.pad(self.ancestor_mask.gather(2, index), (0, room - count))
        self.stored = count
        for layer in self.layers:
            layer.keep_positions(kept, room)
