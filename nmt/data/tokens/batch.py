"""A batch, the input of the model: sentence pairs as rows with padding, or packed without any.

A GPU trains in bf16 on packed batches.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from nmt.data.tokens.token_store import Indices, Lengths, Sentences, TokenStore
from nmt.data.tokens.tokenizer import BOS, PAD
from nmt.machine.buckets import round_up_to_bucket


@dataclass(frozen=True)
class TokenLinks:
    """The L links of a batch: which tokens of its pairs translate each other."""

    pair: torch.Tensor
    """index of the pair in the batch: (L,) int64"""
    source: torch.Tensor
    """position of the source token in its sentence: (L,) int64"""
    target: torch.Tensor
    """position of the target token in its sentence: (L,) int64"""
    share: torch.Tensor
    """1 / the number of links of the target token: (L,) float32"""

    def to(self, device: torch.device) -> "TokenLinks":
        """Return the links on `device`, as `Batch.to` does."""
        tensors = self.pair, self.source, self.target, self.share
        return TokenLinks(*(to_device(each, device) for each in tensors))


def gather_links(store: TokenStore, indices: Indices) -> TokenLinks | None:
    """Return the links of the pairs at `indices` of a store; None if it has none."""
    if store.links is None:
        return None
    links = store.links.gather(indices)
    source, target = links.ids.astype(np.int64).reshape(-1, 2).T
    pair = np.repeat(np.arange(len(indices)), links.lengths // 2)
    tokens = pair * (int(target.max(initial=0)) + 1) + target  # a number for each target token
    share = 1 / np.bincount(tokens)[tokens]
    arrays = pair, source.copy(), target.copy(), share.astype(np.float32)
    return TokenLinks(*map(torch.from_numpy, arrays))


@dataclass(frozen=True)
class Batch:
    """Sentence pairs as rows of ids; shorter rows are padded with PAD."""

    source: torch.Tensor
    """(B, S) int64, each sentence ends with EOS"""
    target_input: torch.Tensor
    """(B, T) int64, each sentence begins with BOS"""
    target_output: torch.Tensor
    """(B, T) int64, each sentence ends with EOS: the token after each position of the input"""
    tokens: int
    """the number of target tokens to predict, without padding"""
    links: TokenLinks | None = None
    """which tokens translate each other, if the store knows it"""

    @property
    def source_mask(self) -> torch.Tensor:
        """(B, S), True at source tokens, EOS included, and False at padding."""
        return self.source != PAD

    @property
    def target_mask(self) -> torch.Tensor:
        """(B, T), True at target tokens to predict, EOS included, and False at padding."""
        return self.target_output != PAD

    def to(self, device: torch.device) -> "Batch":
        """Return the batch on `device`. Python does not wait for the copy, unless it is to mps."""
        tensors = self.source, self.target_input, self.target_output
        source, target_input, target_output = (to_device(ids, device) for ids in tensors)
        links = self.links and self.links.to(device)
        return Batch(source, target_input, target_output, self.tokens, links)


def to_device(x: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Return x, which is on the CPU, on `device`; Python does not wait, unless it is mps."""
    # Only a copy from pinned memory is asynchronous. To mps, such a copy is not safe.
    if device.type in ("cpu", "mps", "meta"):
        return x.to(device)
    return x.pin_memory().to(device, non_blocking=True)


def collate(store: TokenStore, indices: Indices, pad_multiple: int = 1) -> Batch:
    """Build the batch of the pairs at `indices` of `store`.

    S and T, the lengths of its rows, are rounded up to multiples of `pad_multiple`.
    """
    source, target = store.source.gather(indices), store.target.gather(indices)
    source_ids, _is_token = _pad(source, pad_multiple)
    target_output, is_token = _pad(target, pad_multiple)
    target_input = np.roll(target_output, 1, axis=1)  # the token before each position
    target_input[:, 0] = BOS
    target_input = np.where(is_token, target_input, PAD)  # without the EOS that was moved right
    return Batch(
        source=torch.from_numpy(source_ids),
        target_input=torch.from_numpy(target_input),
        target_output=torch.from_numpy(target_output),
        tokens=len(target.ids),
        links=gather_links(store, indices),
    )


def collate_source(rows: Sequence[Sequence[int]]) -> torch.Tensor:
    """Return the ids of source sentences as one tensor (B, S) int64, padded with PAD."""
    ids, _is_token = _pad(Sentences.of(rows), multiple=1)
    return torch.from_numpy(ids)


def _pad(
    sentences: Sentences, multiple: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return one row of ids for each sentence, padded with PAD, and a mask of the real tokens.

    Both are (B, L); L is the longest length, rounded up to a multiple of `multiple`.
    """
    longest = int(sentences.lengths.max())
    width = -(-longest // multiple) * multiple  # rounded up
    is_token = np.arange(width) < sentences.lengths[:, None]
    padded = np.full(is_token.shape, PAD, np.int64)
    padded[is_token] = sentences.ids  # the flat ids fill the mask row by row
    return padded, is_token


@dataclass(frozen=True)
class PackedSide:
    """Where the sentences of one side of a `PackedBatch` stand, among U tokens."""

    positions: torch.Tensor
    """position of each token in its sentence: (U,) int64"""
    offsets: torch.Tensor
    """index of the first token of each sentence, and at the end U: (B + 1,) int32, as
    kernels of a GPU need it; int64 in an `UnpaddedSide`"""
    longest: int
    """no sentence has more tokens than this"""


@dataclass(frozen=True)
class PackedBatch:
    """Sentence pairs without padding, one behind the other: U source and W target tokens.

    An unpadded batch is one too, with sides that also know where the tokens stood in rows
    (`nmt.kernels.rows.UnpaddedSide`).
    """

    source: torch.Tensor
    """(U,) int64, each sentence ends with EOS"""
    target_input: torch.Tensor
    """(W,) int64, each sentence begins with BOS"""
    target_output: torch.Tensor
    """(W,) int64, each sentence ends with EOS: the token after each position of the input"""
    source_side: PackedSide
    target_side: PackedSide
    links: TokenLinks | None = None
    """which tokens translate each other, if the store knows it"""

    @property
    def shape(self) -> tuple[int, ...]:
        """All sizes of the batch: U, W, B and the limits of the lengths."""
        sides = self.source_side, self.target_side
        sizes = len(self.source), len(self.target_input), len(self.source_side.offsets) - 1
        return (*sizes, *(side.longest for side in sides))

    def tensors(self) -> list[torch.Tensor]:
        """Return all tensors of the batch but its links, always in the same order."""
        ids = [self.source, self.target_input, self.target_output]
        sides = self.source_side, self.target_side
        return [*ids, *(tensor for side in sides for tensor in (side.positions, side.offsets))]


def pack(
    store: TokenStore, indices: Indices, device: torch.device, multiple: int = 1
) -> PackedBatch:
    """Build the packed batch of the pairs at `indices` of `store`, on `device`.

    With a `multiple` above 1, U and W become multiples of it, and B and `longest` powers of two, so
    that batches have few shapes: sentences of PAD, which add nothing to the loss, and empty ones
    fill the batch.
    """
    source, target = store.source.gather(indices), store.target.gather(indices)
    links = gather_links(store, indices)
    limits = int(source.lengths.max()), int(target.lengths.max())
    if multiple > 1:
        limits = (round_up_to_bucket(max(limits), bits=1),) * 2
        source, target = _fill(source, target, multiple, limits[0])
    target_output = target.ids.astype(np.int64)
    target_input = np.roll(target_output, 1)  # the token before each position
    target_input[target.offsets[:-1][target.lengths > 0]] = BOS
    arrays = [source.ids.astype(np.int64), target_input, target_output]
    for side in (source, target):
        positions = np.arange(len(side.ids)) - np.repeat(side.offsets[:-1], side.lengths)
        arrays += [positions, side.offsets]
    together = to_device(torch.from_numpy(np.concatenate(arrays)), device)  # one copy, not seven
    ids, inputs, outputs, *rest = together.split([len(each) for each in arrays])
    source_positions, source_offsets, target_positions, target_offsets = rest
    return PackedBatch(
        ids,
        inputs,
        outputs,
        PackedSide(source_positions, source_offsets.int(), limits[0]),
        PackedSide(target_positions, target_offsets.int(), limits[1]),
        links and links.to(device),
    )


def _fill(
    source: Sentences, target: Sentences, multiple: int, longest: int
) -> tuple[Sentences, Sentences]:
    """Append sentences until the tokens of a side are a multiple, and the pairs a power of two.

    The appended sentences have up to `longest` tokens PAD, or none. Each that has target tokens
    has source tokens too, because attention needs a key for each query.
    """
    target_filling = -len(target.ids) % multiple
    fewest = -(-target_filling // longest)  # sentences, and so source tokens, that these need
    source_filling = fewest + -(len(source.ids) + fewest) % multiple
    count = max(fewest, -(-source_filling // longest))
    pairs = round_up_to_bucket(len(source.lengths) + count, bits=1)
    empty = pairs - len(source.lengths) - count
    filled_source = _append(source, source_filling, count, empty)
    return filled_source, _append(target, target_filling, count, empty)


def _append(side: Sentences, tokens: int, sentences: int, empty: int) -> Sentences:
    """Append `tokens` times PAD as so many even sentences, and empty sentences behind them."""
    ends: Lengths = len(side.ids) + np.arange(1, sentences + 1) * tokens // max(1, sentences)
    end = len(side.ids) + tokens
    offsets = np.concatenate((side.offsets, ends, np.full(empty, end)))
    return Sentences(np.concatenate((side.ids, np.full(tokens, PAD, side.ids.dtype))), offsets)
