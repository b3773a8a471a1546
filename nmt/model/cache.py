"""What the decoder remembers between steps: keys and values, so that nothing is computed twice.

The hypotheses of a sentence share most of their past. Each step therefore stores the new positions
of all of them side by side, where they stay, and a mask tells from which positions a hypothesis
descends. To continue other hypotheses is to take other rows of that mask: no key and no value is
copied. Now and then the positions from which nobody descends any more are left out.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

# Steps between two clearings: longer, and attention reads more positions that nobody descends from.
STEPS_OF_ROOM = 4


class Stored(NamedTuple):
    """What one decoder layer attends to in one step: (N, stored, H, K) and (N, H, S, K)."""

    key: Tensor
    """the places of the new positions are the last"""
    value: Tensor
    cross_key: Tensor
    cross_value: Tensor

    def with_new(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Fill in keys and values (N, H, k, K) of the new positions; all (N, H, stored, K)."""
        new = key.shape[2]
        self.key[:, -new:] = key.transpose(1, 2)
        self.value[:, -new:] = value.transpose(1, 2)
        return self.key.transpose(1, 2), self.value.transpose(1, 2)


class LayerCache:
    """One decoder layer's keys and values.

    Self-attention: (N, room, H, K), of which the first `stored` positions are taken.
    Cross-attention: (N, H, S, K), one entry a sentence, shared by all its hypotheses.
    """

    def __init__(self, cross_key: Tensor, cross_value: Tensor) -> None:
        # a sentence's head by head, as they are read at every step
        self.cross_key = cross_key.contiguous()
        self.cross_value = cross_value.contiguous()
        sentences, heads, _, width = cross_key.shape
        self.key = cross_key.new_empty(sentences, 1, heads, width)
        self.value = cross_value.new_empty(sentences, 1, heads, width)
        self.stored = 0

    def claim(self, count: int) -> Stored:
        """Take the next places for `count` new positions; all that is then to be attended to."""
        self.stored += count
        key, value = self.key[:, : self.stored], self.value[:, : self.stored]
        return Stored(key, value, self.cross_key, self.cross_value)

    def keep_positions(self, positions: Tensor, room: int) -> None:
        """Keep of each sentence the positions (N, stored'), and make room for `room` more."""
        sentences, size, *shape = self.key.shape
        self.stored = positions.shape[1]
        # sentence n begins at row n * size once all stand below each other
        first = torch.arange(sentences, device=positions.device)[:, None] * size
        rows = F.pad(first + positions, (0, room)).flatten()  # what stands in the room is not read
        self.key, self.value = (
            stored.flatten(0, 1).index_select(0, rows).view(sentences, -1, *shape)
            for stored in (self.key, self.value)
        )

    def keep_sentences(self, sentences: Tensor, moved: Tensor) -> None:
        """Keep the sentences (N',) alone, of which only those in the places `moved` move."""
        self.cross_key = _kept(self.cross_key, sentences, moved)
        self.cross_value = _kept(self.cross_value, sentences, moved)
        self.key = _kept(self.key, sentences, moved)
        self.value = _kept(self.value, sentences, moved)


def _kept(stored: Tensor, sentences: Tensor, moved: Tensor) -> Tensor:
    """Rows `sentences` of what is stored: in its own memory where few of them move."""
    if 2 * len(moved) > len(sentences):
        return stored.index_select(0, sentences)
    stored[moved] = stored[sentences[moved]]
    return stored[: len(sentences)]


def leaving_sentences(done: Tensor) -> Tensor:
    """Which of the sentences that are done leave the batch: (N,) -> (N,) booleans.

    A CPU's kernels are compiled for each number of rows that they are asked for. There a batch
    takes few sizes, up to a quarter apart, and until it falls to the next some stay that are done.
    """
    if done.device.type != "cpu":
        return done
    going_on = int((~done).sum())
    step = 1 << max(0, going_on.bit_length() - 3)
    filling = -going_on % step
    return done & (done.cumsum(0) > filling)


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
    """The state of incremental decoding of N sentences, passed explicitly from step to step."""

    def __init__(self, layers: list[LayerCache], source_mask: Tensor) -> None:
        self.layers = layers
        self.source_mask = source_mask
        """(N, 1, 1, S)"""
        self.length = 0
        """target positions decoded so far"""
        self.descent = source_mask.new_zeros(len(source_mask), 1, 0)
        """(N, k, stored): True = hypothesis k descends from the position, or is at it"""

    def advance(self, hypotheses: int) -> Tensor | None:
        """Begin a step of `hypotheses` a sentence; where each may attend to: (N, 1, k, stored).

        None: everywhere, because no sentence ever had more than one hypothesis.
        """
        stored = self.descent.shape[2]
        if stored + hypotheses > self.layers[0].key.shape[1]:
            self._make_room(STEPS_OF_ROOM * hypotheses)
        own = torch.eye(hypotheses, dtype=torch.bool, device=self.descent.device)
        own = own.expand(len(self.descent), -1, -1)
        self.descent = torch.cat((self.descent, own), dim=2)
        self.length += 1
        # one position a step: else several hypotheses would each have stored its own
        only_one = self.descent.shape[2] == self.length
        return None if only_one else self.descent[:, None]

    def continue_hypotheses(self, parents: Tensor) -> None:
        """Let hypothesis i of a sentence continue what was its hypothesis parents[i]: (N, k)."""
        index = parents[:, :, None].expand(-1, -1, self.descent.shape[2])
        self.descent = self.descent.gather(1, index)

    def keep_sentences(self, sentences: Tensor) -> None:
        """Drop the other sentences: (N',) indices of those to keep."""
        self.source_mask = self.source_mask.index_select(0, sentences)
        self.descent = self.descent.index_select(0, sentences)
        places = torch.arange(len(sentences), device=sentences.device)
        moved = (sentences != places).nonzero()[:, 0]
        for layer in self.layers:
            layer.keep_sentences(sentences, moved)

    def _make_room(self, room: int) -> None:
        """Leave out the positions from which nobody descends; then there is room for `room`."""
        living = self.descent.any(1)  # (N, stored)
        count = int(living.sum(1).max())
        # the living first, in their order; sentences with fewer keep others that stay masked
        kept = (~living).to(torch.uint8).argsort(dim=1, stable=True)[:, :count]
        self.descent = self.descent.gather(2, kept[:, None].expand(-1, self.descent.shape[1], -1))
        for layer in self.layers:
            layer.keep_positions(kept, room)
