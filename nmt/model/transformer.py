"""Figure 1: the whole Transformer."""

import torch
from torch import Tensor, nn

from nmt.config import ModelConfig
from nmt.model.attention import AttentionRecord
from nmt.model.cache import DecoderCache
from nmt.model.decoder import Decoder
from nmt.model.dropout import Dropout
from nmt.model.embedding import TokenEmbedding
from nmt.model.encoder import Encoder
from nmt.model.layout import PADDED, Layout
from nmt.model.masks import padding_mask
from nmt.model.positional_encoding import PositionalEncoding


class Transformer(nn.Module):
    """Encoder and decoder between embeddings and the pre-softmax linear transformation.

    >>> model = Transformer(ModelConfig(), 37_000, 37_000)
    >>> logits = model(source, target_input)  # (B, S), (B, T) -> (B, T, V)
    """

    def __init__(
        self,
        config: ModelConfig,
        source_vocabulary_size: int,
        target_vocabulary_size: int,
        padding: int = 0,
    ) -> None:
        super().__init__()
        self.padding = padding
        self.target_embedding = TokenEmbedding(target_vocabulary_size, config.d_model)
        self.source_embedding = (
            self.target_embedding
            if config.embeddings == "shared"
            else TokenEmbedding(source_vocabulary_size, config.d_model)
        )
        self.output_embedding = (
            TokenEmbedding(target_vocabulary_size, config.d_model)
            if config.embeddings == "separate"
            else self.target_embedding
        )
        self.positions = PositionalEncoding(config.d_model)
        self.dropout = Dropout(config.dropout)
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)
        self._initialize(config.initialization_gain)

    def forward(
        self,
        source: Tensor,
        target_input: Tensor,
        attention: AttentionRecord | None = None,
    ) -> Tensor:
        """Source (B, S) and shifted target (B, T) -> logits (B, T, V).

        Position t of the logits predicts target token t + 1. `attention` collects the weights.
        """
        return self.output_embedding.logits(self.outputs(source, target_input, attention))

    def outputs(
        self,
        source: Tensor,
        target_input: Tensor,
        attention: AttentionRecord | None = None,
        layouts: tuple[Layout, Layout] = (PADDED, PADDED),
    ) -> Tensor:
        """The decoder's output (B, T, D), of which `forward` makes logits.

        `layouts` are those of target and source. An `UnpaddedLayout` leaves padding out: the output
        is (N, D), and attention from places of padding means nothing. No side may be padding alone.
        """
        memory = self.encode(source, attention, layouts[1])
        return self._decoded(target_input, memory, source, attention, layouts)

    def encode(
        self, source: Tensor, attention: AttentionRecord | None = None, layout: Layout = PADDED
    ) -> Tensor:
        """Source ids (B, S) -> memory (B, S, D)."""
        x = self._embed(self.source_embedding, source, layout=layout)
        return self.encoder(x, padding_mask(source, self.padding), attention, layout)

    def decode(
        self,
        target_input: Tensor,
        memory: Tensor,
        source: Tensor,
        attention: AttentionRecord | None = None,
    ) -> Tensor:
        """Shifted target (B, T), memory (B, S, D) of the source (B, S) -> logits (B, T, V)."""
        x = self._decoded(target_input, memory, source, attention)
        return self.output_embedding.logits(x)

    def start(self, memory: Tensor, source: Tensor) -> DecoderCache:
        """Begin to decode step by step from the memory (B, S, D) of the source ids (B, S).

        This and the steps go together, inside or outside of `torch.inference_mode`; no gradient
        flows through them, since each writes where the next reads.
        """
        return self.decoder.start(memory, padding_mask(source, self.padding))

    def step(
        self, latest: Tensor, cache: DecoderCache, attention: AttentionRecord | None = None
    ) -> Tensor:
        """The latest token of k hypotheses a sentence (N, k) -> logits of the next (N, k, V).

        `attention` collects what they attend to in the source, (N, H, k, S) a layer.
        """
        rows = latest.reshape(-1, 1)  # all stand at the same position of their sentence
        x = self._embed(self.target_embedding, rows, start=cache.length)  # (N * k, 1, D)
        x = self.decoder.step(x.view(*latest.shape, -1), cache, attention)
        return self.output_embedding.logits(x)

    def _decoded(
        self,
        target_input: Tensor,
        memory: Tensor,
        source: Tensor,
        attention: AttentionRecord | None,
        layouts: tuple[Layout, Layout] = (PADDED, PADDED),
    ) -> Tensor:
        x = self._embed(self.target_embedding, target_input, layout=layouts[0])  # (B, T, D)
        return self.decoder(x, memory, padding_mask(source, self.padding), attention, layouts)

    def _embed(
        self, embedding: TokenEmbedding, ids: Tensor, start: int = 0, layout: Layout = PADDED
    ) -> Tensor:
        """(B, T) -> (B, T, D).

        Under autocast on a CPU the result is in bfloat16, and with it the sums and norms of all
        layers: cores that compute side by side wait for memory, of which float32 takes twice.
        """
        x = self.positions(embedding(layout.tokens(ids)), start, layout)
        if x.device.type == "cpu" and torch.is_autocast_enabled("cpu"):
            x = x.to(torch.get_autocast_dtype("cpu"))
        return self.dropout(x)

    def _initialize(self, gain: float) -> None:
        """Glorot-uniform matrices and zero biases; embeddings draw N(0, 1 / d_model) themselves."""
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight, gain)
                nn.init.zeros_(module.bias)
