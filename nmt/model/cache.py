"""The decoder's cache: keys and values of earlier steps, so that they are computed only once.

The hypotheses of a sentence share most of their past. Each step appends the new positions of all
hypotheses to one buffer per sentence. The ancestor mask says which of these positions belong to the
past of each hypothesis. When a search continues some hypotheses and drops others, only the rows of
this mask change; no key and no value is copied. From time to time the cache is compacted: positions
that are in the past of no hypothesis any more are removed.

The buffer of a sentence has a `capacity` of C positions. C and S', the source length with padding,
are multiples of `LENGTHS_MULTIPLE`: so attention has few different shapes, each of which needs a
kernel to be compiled. Positions that are not used yet are masked.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

# Minimum of steps between two compactions. With more, attention reads more unused positions.
STEPS_PER_COMPACTION = 4
LENGTHS_MULTIPLE = 16  # not less: softmax is slow on fewer numbers than a register holds


class KeyValueView(Protocol):
    """Keys and values that one decoder layer attends to in one step."""

    @property
    def cross_key(self) -> Tensor:
        """Return the keys of the source: (N, H, S', K)."""

    @property
    def cross_value(self) -> Tensor:
        """Return the values of the source: (N, H, S', K)."""

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Store keys and values (N, H, k, K) of new positions; return both, now (N, H, C, K)."""


class CachedKeyValues(NamedTuple):
    """A `KeyValueView` of the tensors of a `LayerCache`; `append` writes into them."""

    key: Tensor
    """(N, H, C, K)"""
    value: Tensor
    new_key: Tensor
    """view of `key` at the new positions: (N, H, k, K)"""
    new_value: Tensor
    cross_key: Tensor
    """(N, H, S', K)"""
    cross_value: Tensor

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Copy keys and values (N, H, k, K) to the new positions; return both, now (N, H, C, K)."""
        self.new_key.copy_(key)
        self.new_value.copy_(value)
        return self.key, self.value


class LayerCache:
    """The keys and values of one decoder layer.

    Self-attention: (N, H, C, K), of which the first `DecoderCache.used` positions are used.
    Cross-attention: (N, H, S', K), one entry per sentence, shared by its hypotheses; S' is S
    rounded up to a multiple of `multiple`. C is `multiple` at first.
    """

    def __init__(
        self, cross_key: Tensor, cross_value: Tensor, multiple: int = LENGTHS_MULTIPLE
    ) -> None:
        self.cross_key = with_padding(cross_key, 2, multiple)
        self.cross_value = with_padding(cross_value, 2, multiple)
        sentences, heads, _, width = cross_key.shape
        self.key = cross_key.new_zeros(sentences, heads, multiple, width)
        self.value = cross_value.new_zeros(sentences, heads, multiple, width)

    def continue_hypotheses(self, parents: Tensor) -> None:
        """Do nothing: the ancestor mask says what belongs to the past of a hypothesis."""

    def at_step(self, new: slice) -> CachedKeyValues:
        """Return views of keys and values for one step, which writes to the positions `new`."""
        return CachedKeyValues(
            key=self.key,
            value=self.value,
            new_key=self.key[:, :, new],
            new_value=self.value[:, :, new],
            cross_key=self.cross_key,
            cross_value=self.cross_value,
        )

    def keep_positions(self, positions: Tensor, capacity: int) -> None:
        """Keep P positions per sentence, those with these indices (N, P); C becomes `capacity`."""
        sentences, heads, size, width = self.key.shape
        # index of each head's first row, once sentences, heads and positions are flattened
        first_rows = torch.arange(sentences * heads, device=positions.device) * size
        rows = first_rows.view(sentences, heads, 1) + positions[:, None]  # (N, H, P)
        # The unused positions are masked, but must be finite: they become copies of row 0.
        unused = capacity - positions.shape[1]
        rows = F.pad(rows, (0, unused)).flatten()
        shape = (sentences, heads, capacity, width)
        self.key = self.key.flatten(0, 2).index_select(0, rows).view(shape)
        self.value = self.value.flatten(0, 2).index_select(0, rows).view(shape)

    def keep_sentences(self, sentences: Tensor, changed: Tensor) -> None:
        """Keep the sentences with these indices (N',), in this order.

        `changed` holds the new indices i at which another sentence stands: sentences[i] != i.
        """
        self.cross_key = _select_rows(self.cross_key, sentences, changed)
        self.cross_value = _select_rows(self.cross_value, sentences, changed)
        self.key = _select_rows(self.key, sentences, changed)
        self.value = _select_rows(self.value, sentences, changed)


class RecurrentCache:
    """The state of one recurrent layer after the last step, and its keys and values of the source.

    It is the view of each step, too: `state` (N, k, D) is that of the k hypotheses of the last
    step, or once they are continued that of their parents. The step stores the new one.
    """

    def __init__(self, cross_key: Tensor, cross_value: Tensor, state: Tensor) -> None:
        self.cross_key = with_padding(cross_key, 2, LENGTHS_MULTIPLE)
        self.cross_value = with_padding(cross_value, 2, LENGTHS_MULTIPLE)
        self.state = state

    def continue_hypotheses(self, parents: Tensor) -> None:
        """Give hypothesis i of sentence n the state of hypothesis parents[n, i]."""
        self.state = self.state.gather(1, parents[:, :, None].expand(-1, -1, self.state.shape[2]))

    def at_step(self, new: slice) -> "RecurrentCache":
        """Return what one step reads and writes, which is the cache itself."""
        return self

    def keep_positions(self, positions: Tensor, capacity: int) -> None:
        """Do nothing: there are no positions."""

    def keep_sentences(self, sentences: Tensor, changed: Tensor) -> None:
        """Keep the sentences with these indices (N',), see `LayerCache.keep_sentences`."""
        self.cross_key = _select_rows(self.cross_key, sentences, changed)
        self.cross_value = _select_rows(self.cross_value, sentences, changed)
        self.state = _select_rows(self.state, sentences, changed)


def with_padding(x: Tensor, dim: int, multiple: int) -> Tensor:
    """Return x padded with zeros in dimension `dim` to a multiple of `multiple`, contiguous."""
    # `F.pad` takes the padding before and after each dimension, from the last one back to `dim`
    sides = [0] * (2 * (x.dim() - dim))
    sides[-1] = -x.shape[dim] % multiple  # after `dim`: what is missing to the next multiple
    return F.pad(x, sides).contiguous()


def _select_rows(stored: Tensor, sentences: Tensor, changed: Tensor) -> Tensor:
    """Return the rows `sentences` of a tensor, computed in place if few of them change."""
    if 2 * len(changed) > len(sentences):
        return stored.index_select(0, sentences)
    stored[changed] = stored[sentences[changed]]
    return stored[: len(sentences)]


class DecoderCache:
    """The state of incremental decoding of N sentences, passed explicitly from step to step.

    C (the capacity) and S' (the padded source length) are multiples of `multiple`. At least
    `steps_per_compaction` steps lie between two compactions.
    """

    def __init__(
        self,
        layers: Sequence[LayerCache | RecurrentCache],
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
        self.used = 0
        """number of positions in use per sentence, those of all its hypotheses together"""
        self.ancestor_mask = source_mask.new_zeros(len(source_mask), 1, multiple)
        """(N, k, C): True = the position is in the past of the hypothesis, or its latest"""

    def advance(self, hypotheses: int) -> tuple[Tensor, list[CachedKeyValues | RecurrentCache]]:
        """Begin a step of k = `hypotheses` per sentence: reserve a new position for each of them.

        Returns a mask (N, 1, k, C), True = the hypothesis may attend to this cached position; and
        each layer's keys and values, into which the step writes. Compacts the cache if it is full.
        """
        if self.used + hypotheses > self.ancestor_mask.shape[2]:
            self._compact(self.steps_per_compaction * hypotheses)
        new = slice(self.used, self.used + hypotheses)
        # each hypothesis attends to its own new position
        own = torch.eye(hypotheses, dtype=torch.bool, device=self.ancestor_mask.device)
        self.ancestor_mask[:, :, new] = own
        self.used += hypotheses
        self.length += 1
        return self.ancestor_mask[:, None], [layer.at_step(new) for layer in self.layers]

    def continue_hypotheses(self, parents: Tensor) -> None:
        """Let hypothesis i of sentence n continue hypothesis parents[n, i] of the step before."""
        # one parent for all C positions: (N, k, C)
        index = parents[:, :, None].expand(-1, -1, self.ancestor_mask.shape[2])
        self.ancestor_mask = self.ancestor_mask.gather(1, index)
        for layer in self.layers:
            layer.continue_hypotheses(parents)

    def keep_sentences(self, sentences: Tensor) -> None:
        """Keep only the sentences with these indices (N',), in this order."""
        self.source_mask = self.source_mask.index_select(0, sentences)
        self.ancestor_mask = self.ancestor_mask.index_select(0, sentences)
        unchanged = torch.arange(len(sentences), device=sentences.device)
        changed = (sentences != unchanged).nonzero()[:, 0]
        for layer in self.layers:
            layer.keep_sentences(sentences, changed)

    def _compact(self, new: int) -> None:
        """Remove positions in the past of no hypothesis; set C so that `new` more positions fit."""
        needed = self.ancestor_mask.any(1)  # (N, C)
        count = int(needed.sum(1).max())
        # needed positions first, in order; a sentence with fewer of them keeps masked ones as well
        positions = (~needed).to(torch.uint8).argsort(dim=1, stable=True)[:, :count]
        capacity = count + new
        capacity += -capacity % self.multiple  # rounded up
        index = positions[:, None].expand(-1, self.ancestor_mask.shape[1], -1)
        self.ancestor_mask = F.pad(self.ancestor_mask.gather(2, index), (0, capacity - count))
        self.used = count
        for layer in self.layers:
            layer.keep_positions(positions, capacity)
