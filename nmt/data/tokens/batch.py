"""A batch, the input of the model: sentence pairs as rows of ids with padding."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from nmt.data.tokens.token_store import Indices, Sentences, TokenStore
from nmt.data.tokens.tokenizer import BOS, PAD


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

    def to(self, device: torch.device) -> "Batch":
        """Return the batch on `device`. Python does not wait for the copy, unless it is to mps."""
        tensors = self.source, self.target_input, self.target_output
        source, target_input, target_output = (to_device(ids, device) for ids in tensors)
        return Batch(source, target_input, target_output, self.tokens)


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
