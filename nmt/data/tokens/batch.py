"""A batch, the input of the model: sentence pairs as rows of ids, padded to equal lengths."""

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
        """Return the batch on `device`; a copy to a GPU is asynchronous."""
        is_gpu = device.type == "cuda"
        source, target_input, target_output = (
            (ids.pin_memory() if is_gpu else ids).to(device, non_blocking=is_gpu)
            for ids in (self.source, self.target_input, self.target_output)
        )
        return Batch(source, target_input, target_output, self.tokens)


def collate(store: TokenStore, indices: Indices, pad_multiple: int = 1) -> Batch:
    """Build a batch of the pairs at `indices` of `store`, S and T multiples of `pad_multiple`."""
    source, target = store.source.gather(indices), store.target.gather(indices)
    output, is_real = _padded(target, pad_multiple)
    shifted = np.roll(output, 1, axis=1)  # the token before each position
    shifted[:, 0] = BOS
    return Batch(
        source=torch.from_numpy(_padded(source, pad_multiple)[0]),
        target_input=torch.from_numpy(np.where(is_real, shifted, PAD)),
        target_output=torch.from_numpy(output),
        tokens=len(target.ids),
    )


def collate_source(rows: Sequence[Sequence[int]]) -> torch.Tensor:
    """Return the ids of source sentences as one tensor (B, S) int64, padded with PAD."""
    return torch.from_numpy(_padded(Sentences.of(rows), 1)[0])


def _padded(
    sentences: Sentences, multiple: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return rows of ids padded with PAD, and True where an id is not padding: both (B, L)."""
    longest = int(sentences.lengths.max())
    width = -(-longest // multiple) * multiple
    is_real = np.arange(width) < sentences.lengths[:, None]
    padded = np.full(is_real.shape, PAD, np.int64)
    padded[is_real] = sentences.ids
    return padded, is_real
