"""Section 3.1 and Figure 1, left: the encoder."""

from collections.abc import MutableSequence

from torch import Tensor, nn

from nmt.model.attention import AttentionContext, MultiHeadAttention
from nmt.model.feed_forward import build_feed_forward
from nmt.model.sublayer import Sublayer, final_norm
from nmt.recipe.config import ModelConfig


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward network, each inside a `Sublayer`."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(
            config.d_model, config.heads, config.attention_dropout
        )
        self.feed_forward = build_feed_forward(config)
        self.self_attention_sublayer = Sublayer(config)
        self.feed_forward_sublayer = Sublayer(config)

    def forward(self, x: Tensor, context: AttentionContext) -> Tensor:
        """Transform the source: (B, S, D) -> (B, S, D); `context` has its padding mask."""
        attention = self.self_attention
        x = self.self_attention_sublayer(x, lambda states: attention(states, states, context))
        return self.feed_forward_sublayer(x, self.feed_forward)


class Encoder(nn.Module):
    """A stack of `config.encoder_layers` layers."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.encoder_layers))
        self.norm = final_norm(config)

    def forward(
        self, x: Tensor, context: AttentionContext, states: MutableSequence[Tensor] | None = None
    ) -> Tensor:
        """Return the memory, the output of all layers, for embeddings x: (B, S, D) -> (B, S, D).

        `states`, if given, gets x and the output of each layer.
        """
        if states is not None:
            states.append(x)
        for layer in self.layers:
            x = layer(x, context)
            if states is not None:
                states.append(x)
        return self.norm(x)
