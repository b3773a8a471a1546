"""The decoder's cache: keys and values of earlier steps, so that they are computed only once.

The hypotheses of a sentence share most of their past. Each step appends the new positions of all
hypotheses to the same memory, where they stay. The ancestor mask says which of these positions
belong to the past of each hypothesis. A search that continues other hypotheses takes other rows of
this mask; no key and no value is copied. From time to time the cache is compacted: positions that
are in the past of no hypothesis any more are removed.

The memory of a sentence has `room` positions, which is a multiple of some number, and so is S', the
source length with padding. So attention has few different shapes, and a kernel is compiled for each
shape. Positions that are not used yet are masked.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

# Steps between two compactions, at least. With more, attention reads more unused positions.
STEPS_PER_COMPACTION = 4
LENGTHS_MULTIPLE = 16  # also because softmax is slow on fewer numbers than a register holds

CPU_SIZE_BITS, GPU_SIZE_BITS = 3, 2
"""leading binary digits of a batch size that may differ from 0, see `round_up_to_bucket`"""


class KeyValueView(Protocol):
    """Keys and values that one decoder layer attends to in one step."""

    @property
    def cross_key(self) -> Tensor:
        """Return the keys of the source: (N, H, S', K)."""

    @property
    def cross_value(self) -> Tensor:
        """Return the values of the source: (N, H, S', K)."""

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Store the keys and values (N, H, k, K) of new positions; return all (N, H, room, K)."""


class CachedKeyValues(NamedTuple):
    """A `KeyValueView` of tensors of a `LayerCache`."""

    key: Tensor
    """(N, H, room, K)"""
    value: Tensor
    new_key: Tensor
    """the part of `key` for the new positions, a view: (N, H, k, K)"""
    new_value: Tensor
    cross_key: Tensor
    """(N, H, S', K)"""
    cross_value: Tensor

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Store keys and values in place, as `KeyValueView.append` says."""
        self.new_key.copy_(key)
        self.new_value.copy_(value)
        return self.key, self.value


class LayerCache:
    """The keys and values of one decoder layer.

    Self-attention: (N, H, room, K), of which the first positions are used.
    Cross-attention: (N, H, S', K), one entry per sentence, shared by all its hypotheses; S' is S
    rounded up to `multiple`.
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
        """Return views for one step: attention writes the keys and values of positions `new`."""
        new_key, new_value = self.key[:, :, new], self.value[:, :, new]
        return CachedKeyValues(
            self.key, self.value, new_key, new_value, self.cross_key, self.cross_value
        )

    def keep_positions(self, positions: Tensor, room: int) -> None:
        """Keep only the positions (N, stored') of each sentence; make memory for `room` of them."""
        sentences, heads, size, width = self.key.shape
        # the row where each head begins, once sentences, heads and positions are flattened
        first = torch.arange(sentences * heads, device=positions.device) * size
        rows = first.view(sentences, heads, 1) + positions[:, None]  # (N, H, stored')
        # Attention reads the unused positions too; masked, they must only be finite: row 0.
        rows = F.pad(rows, (0, room - positions.shape[1])).flatten()
        self.key, self.value = (
            stored.flatten(0, 2).index_select(0, rows).view(sentences, heads, room, width)
            for stored in (self.key, self.value)
        )

    def keep_sentences(self, sentences: Tensor, moved: Tensor) -> None:
        """Keep only the sentences of these rows (N',); the rows `moved` change their sentence."""
        self.cross_key = _kept(self.cross_key, sentences, moved)
        self.cross_value = _kept(self.cross_value, sentences, moved)
        self.key = _kept(self.key, sentences, moved)
        self.value = _kept(self.value, sentences, moved)


def with_padding(x: Tensor, dim: int, multiple: int) -> Tensor:
    """Return x, contiguous and padded with zeros to the next `multiple` along `dim`."""
    sides = [0] * (2 * (x.dim() - dim))
    sides[-1] = -x.shape[dim] % multiple
    return F.pad(x, sides).contiguous()


def _kept(stored: Tensor, sentences: Tensor, moved: Tensor) -> Tensor:
    """Return the rows `sentences` of a tensor, in the same memory if few of them move."""
    if 2 * len(moved) > len(sentences):
        return stored.index_select(0, sentences)
    stored[moved] = stored[sentences[moved]]
    return stored[: len(sentences)]


def leaving_sentences(done: Tensor) -> Tensor:
    """Return which of the finished sentences leave the batch: (N,) -> (N,) booleans.

    A CPU compiles kernels for each batch size, and a GPU records a graph for each. Therefore a
    batch has only the sizes of `round_up_to_bucket`, and some finished sentences stay in it until
    the next smaller size is reached.
    """
    going_on = int((~done).sum())
    bits = CPU_SIZE_BITS if done.device.type == "cpu" else GPU_SIZE_BITS
    filling = round_up_to_bucket(going_on, bits) - going_on
    return done & (done.cumsum(0) > filling)


def round_up_to_bucket(count: int, bits: int) -> int:
    """Return the smallest number >= `count` with zeros after its first `bits` binary digits.

    With 2 `bits` these numbers are 1, 2, 3, 4, 6, 8, 12, 16, 24 and so on.
    """
    step: int = 1 << max(0, count.bit_length() - bits)
    return count + -count % step


def remaining_sentences(leaving: Tensor) -> Tensor:
    """Return the places (N',) of the sentences that stay, given which ones leave (N,).

    A sentence from the end fills the place of each one that leaves; all others keep their place.
    """
    kept = (~leaving).nonzero()[:, 0]
    count = len(kept)
    places = torch.arange(count, device=leaving.device)
    places[leaving[:count]] = kept[kept >= count]
    return places


class DecoderCache:
    """The state of incremental decoding of N sentences, passed explicitly from step to step.

    `room` and S' are multiples of `multiple`. At least `steps_per_compaction` steps lie between two
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
        """S, without the padding that the cache adds"""
        self.source_mask = with_padding(source_mask, 3, multiple)
        """(N, 1, 1, S')"""
        self.length = 0
        """target positions decoded so far"""
        self.stored = 0
        """positions that are used, of all hypotheses of a sentence together"""
        self.ancestor_mask = source_mask.new_zeros(len(source_mask), 1, multiple)
        """(N, k, room): True = the position is in the past of hypothesis k, or its latest"""

    def advance(self, hypotheses: int) -> tuple[Tensor, list[CachedKeyValues]]:
        """Begin a step of k = `hypotheses` per sentence.

        Returns the mask (N, 1, k, room) of the positions that each hypothesis may attend to, and
        the keys and values of each layer.
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
        """Replace hypothesis i of each sentence n by its hypothesis parents[n, i]: (N, k)."""
        index = parents[:, :, None].expand(-1, -1, self.ancestor_mask.shape[2])
        self.ancestor_mask = self.ancestor_mask.gather(1, index)

    def keep_sentences(self, sentences: Tensor) -> None:
        """Keep only the sentences with these indices (N',)."""
        self.source_mask = self.source_mask.index_select(0, sentences)
        self.ancestor_mask = self.ancestor_mask.index_select(0, sentences)
        places = torch.arange(len(sentences), device=sentences.device)
        moved = (sentences != places).nonzero()[:, 0]
        for layer in self.layers:
            layer.keep_sentences(sentences, moved)

    def _compact(self, least: int) -> None:
        """Remove positions in the past of no hypothesis, and make room for `least` new ones."""
        living = self.ancestor_mask.any(1)  # (N, room)
        count = int(living.sum(1).max())
        # living positions first, in order; a sentence with fewer keeps masked ones as well
        kept = (~living).to(torch.uint8).argsort(dim=1, stable=True)[:, :count]
        room = count + least
        room += -room % self.multiple
        index = kept[:, None].expand(-1, self.ancestor_mask.shape[1], -1)
        self.ancestor_mask = F.pad(self.ancestor_mask.gather(2, index), (0, room - count))
        self.stored = count
        for layer in self.layers:
            layer.keep_positions(kept, room)
