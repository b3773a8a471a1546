"""Section 3.1 and Figure 1, right: the decoder, in one pass or step by step."""

from collections.abc import Sequence

from torch import Tensor, nn

from nmt.config import ModelConfig
from nmt.model.attention import AttentionRecord, MultiHeadAttention
from nmt.model.cache import DecoderCache, KeyValueView, LayerCache
from nmt.model.feed_forward import FeedForward
from nmt.model.layout import PADDED, Layout
from nmt.model.masks import causal_mask
from nmt.model.sublayer import Sublayer, final_norm


class DecoderLayer(nn.Module):
    """Masked self-attention, attention to the encoder's memory, then the feed-forward network."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        attention = (config.d_model, config.heads, config.attention_dropout)
        self.self_attention = MultiHeadAttention(*attention)
        self.cross_attention = MultiHeadAttention(*attention)
        self.feed_forward = FeedForward(
            config.d_model, config.d_ff, config.activation_dropout, config.activation
        )
        self.self_attention_sublayer = Sublayer(config)
        self.cross_attention_sublayer = Sublayer(config)
        self.feed_forward_sublayer = Sublayer(config)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        target_mask: Tensor,
        source_mask: Tensor,
        record: AttentionRecord | None = None,
        layouts: tuple[Layout, Layout] = (PADDED, PADDED),
    ) -> Tensor:
        """Transform all target positions at once: (B, T, D), memory (B, S, D) -> (B, T, D).

        `layouts` are the layouts of target and source.
        """
        to_self, to_memory = (record.decoder, record.cross) if record else (None, None)
        of_target = (layouts[0], layouts[0])
        x = self.self_attention_sublayer(
            x, lambda x: self.self_attention(x, x, target_mask, to_self, of_target)
        )
        x = self.cross_attention_sublayer(
            x, lambda x: self.cross_attention(x, memory, source_mask, to_memory, layouts)
        )
        return self.feed_forward_sublayer(x, self.feed_forward)

    def start(self, memory: Tensor) -> LayerCache:
        """Return a cache with the keys and values of the memory (B, S, D), used by all steps."""
        return LayerCache(*self.cross_attention.project_memory(memory))

    def step(
        self,
        x: Tensor,
        past_mask: Tensor,
        source_mask: Tensor,
        stored: KeyValueView,
        record: AttentionRecord | None = None,
    ) -> Tensor:
        """Transform the new positions of k hypotheses per sentence: (N, k, D) -> (N, k, D).

        `past_mask` (N, 1, k, room) says which stored positions belong to the past of each
        hypothesis. Keys and values of a source are stored once; the k hypotheses of its sentence
        are k queries.
        """

        def attend_to_past(x: Tensor) -> Tensor:
            attention = self.self_attention
            query, key, value = attention.project_all(x)
            return attention.attend(query, *stored.append(key, value), past_mask)

        def attend_to_memory(x: Tensor) -> Tensor:
            to_memory = record.cross if record else None
            query = self.cross_attention.project_query(x)
            return self.cross_attention.attend(
                query, stored.cross_key, stored.cross_value, source_mask, to_memory
            )

        x = self.self_attention_sublayer(x, attend_to_past)
        x = self.cross_attention_sublayer(x, attend_to_memory)
        return self.feed_forward_sublayer(x, self.feed_forward)


class Decoder(nn.Module):
    """A stack of N identical layers."""

    layers: Sequence[DecoderLayer]

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        layers = [DecoderLayer(config) for _ in range(config.decoder_layers)]
        self.layers = nn.ModuleList(layers)  # type: ignore[assignment]
        self.norm = final_norm(config)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        source_mask: Tensor,
        record: AttentionRecord | None = None,
        layouts: tuple[Layout, Layout] = (PADDED, PADDED),
    ) -> Tensor:
        """Decode the embedded target (B, T, D) with the memory (B, S, D) into (B, T, D).

        `source_mask` is (B, 1, 1, S); `layouts` are the layouts of target and source.
        """
        # Padding stands at the end, so the causal mask already hides it from every real position.
        target_mask = causal_mask(layouts[0].length(x), x.device)
        for layer in self.layers:
            x = layer(x, memory, target_mask, source_mask, record, layouts)
        return self.norm(x)

    def start(self, memory: Tensor, source_mask: Tensor) -> DecoderCache:
        """Return a cache without target positions for the memory (B, S, D), mask (B, 1, 1, S)."""
        return DecoderCache([layer.start(memory) for layer in self.layers], source_mask)

    def step(self, x: Tensor, cache: DecoderCache, record: AttentionRecord | None = None) -> Tensor:
        """Decode the next position of k hypotheses per sentence: (N, k, D) -> (N, k, D)."""
        past_mask, stored = cache.advance(x.shape[1])
        x = self.through_layers(x, past_mask, cache.source_mask, stored, record)
        if record is not None:  # without the padding that the cache adds to the source
            for place, weights in enumerate(record.cross):
                record.cross[place] = weights[..., : cache.source_length]
        return x

    def through_layers(
        self,
        x: Tensor,
        past_mask: Tensor,
        source_mask: Tensor,
        stored: Sequence[KeyValueView],
        record: AttentionRecord | None = None,
    ) -> Tensor:
        """Apply all layers to a step, each with its own cache: (N, k, D) -> (N, k, D)."""
        for layer, own in zip(self.layers, stored, strict=True):
            x = layer.step(x, past_mask, source_mask, own, record)
        normalized: Tensor = self.norm(x)
        return normalized
