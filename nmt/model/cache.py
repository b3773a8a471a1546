"""What the decoder remembers between steps: keys and values, so that nothing is computed twice."""

import torch
from torch import Tensor


class LayerCache:
    """One decoder layer's keys and values.

    Self-attention: (R, H, T, K), one entry a hypothesis and target position, growing by steps.
    Cross-attention: (B, H, S, K), one entry a sentence, shared by all hypotheses of the sentence.
    """

    def __init__(self, cross_key: Tensor, cross_value: Tensor) -> None:
        self.cross_key = cross_key
        self.cross_value = cross_value
        self.key: Tensor | None = None
        self.value: Tensor | None = None

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Remember the keys and values (R, H, 1, K) of a new position; return all so far."""
        if self.key is not None and self.value is not None:
            key = torch.cat((self.key, key), dim=2)
            value = torch.cat((self.value, value), dim=2)
        self.key, self.value = key, value
        return key, value


class DecoderCache:
    """The state of incremental decoding, passed explicitly from step to step."""

    def __init__(self, layers: list[LayerCache], source_mask: Tensor) -> None:
        self.layers = layers
        self.source_mask = source_mask  # (B, 1, 1, S)
        self.length = 0

    def reorder(self, rows: Tensor) -> None:
        """Let hypothesis i continue what hypothesis rows[i] was: rows (R,) ids of current rows."""
        for layer in self.layers:
            if layer.key is not None and layer.value is not None:
                layer.key = layer.key.index_select(0, rows)
                layer.value = layer.value.index_select(0, rows)

    def keep_sentences(self, sentences: Tensor) -> None:
        """Drop the finished sentences' encoder side: sentences (N,) ids of those to keep."""
        self.source_mask = self.source_mask.index_select(0, sentences)
        for layer in self.layers:
            layer.cross_key = layer.cross_key.index_select(0, sentences)
            layer.cross_value = layer.cross_value.index_select(0, sentences)
