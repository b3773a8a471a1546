"""Section 3.1 and Figure 1, right: the decoder, in one pass or step by step."""

from collections.abc import MutableSequence, Sequence

from torch import Tensor, nn

from nmt.model.attention import AttentionContext, AttentionRecord, MultiHeadAttention
from nmt.model.cache import DecoderCache, KeyValueView, LayerCache, RecurrentCache
from nmt.model.feed_forward import build_feed_forward
from nmt.model.recurrence import SimpleRecurrence
from nmt.model.sublayer import Sublayer, final_norm
from nmt.recipe.config import ModelConfig


class DecoderLayer(nn.Module):
    """Masked self-attention, attention to the encoder's memory, then the feed-forward network.

    With `decoder: ssru`, a recurrence takes the place of self-attention.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        attention = (config.d_model, config.heads, config.attention_dropout)
        self.recurrence: SimpleRecurrence | None = None
        if config.decoder == "ssru":
            self.recurrence = SimpleRecurrence(config.d_model)
        else:
            self.self_attention = MultiHeadAttention(*attention)
        self.cross_attention = MultiHeadAttention(*attention)
        self.feed_forward = build_feed_forward(config)
        if self.recurrence:
            self.recurrence_sublayer = Sublayer(config)
        else:
            self.self_attention_sublayer = Sublayer(config)
        self.cross_attention_sublayer = Sublayer(config)
        self.feed_forward_sublayer = Sublayer(config)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        self_context: AttentionContext,
        cross_context: AttentionContext,
    ) -> Tensor:
        """Transform all target positions x at once: (B, T, D), memory (B, S, D) -> (B, T, D).

        `self_context` has the causal mask (1, 1, T, T), `cross_context` the padding mask of the
        source (B, 1, 1, S).
        """

        def read_past(x: Tensor) -> Tensor:
            if self.recurrence:
                return self.recurrence(x, self_context)
            return self.self_attention(x, x, self_context)

        def attend_to_memory(x: Tensor) -> Tensor:
            return self.cross_attention(x, memory, cross_context)

        x = self._past_sublayer()(x, read_past)
        x = self.cross_attention_sublayer(x, attend_to_memory)
        return self.feed_forward_sublayer(x, self.feed_forward)

    def start(self, memory: Tensor) -> LayerCache | RecurrentCache:
        """Return the cache of this layer for `step`; it holds the projected memory (B, S, D)."""
        key, value = self.cross_attention.project_memory(memory)
        if self.recurrence:
            return RecurrentCache(key, value, self.recurrence.start(memory))
        return LayerCache(key, value)

    def step(
        self,
        x: Tensor,
        stored: KeyValueView | RecurrentCache,
        self_context: AttentionContext,
        cross_context: AttentionContext,
    ) -> Tensor:
        """Transform the new positions of k hypotheses per sentence: (N, k, D) -> (N, k, D).

        The hypotheses of a sentence share a buffer of C positions in `stored`, into which their
        keys and values are written. The mask of `self_context` (N, 1, k, C) is True where a
        hypothesis may attend to a position: those of its own tokens.
        Keys and values of a source are stored once; the k hypotheses of a sentence are k queries.
        A recurrence reads and writes the states of the hypotheses instead.
        """

        def read_past(x: Tensor) -> Tensor:
            if isinstance(stored, RecurrentCache):
                assert self.recurrence
                stored.state = self.recurrence.step(x, stored.state)
                return stored.state.relu().to(x.dtype)
            attention, rotation = self.self_attention, self_context.rotation
            key, value = stored.append(*attention.project_memory(x, rotation))
            query = attention.project_query(x, rotation)
            return attention.attend(query, key, value, self_context)

        def attend_to_memory(x: Tensor) -> Tensor:
            query = self.cross_attention.project_query(x)
            key, value = stored.cross_key, stored.cross_value
            return self.cross_attention.attend(query, key, value, cross_context)

        x = self._past_sublayer()(x, read_past)
        x = self.cross_attention_sublayer(x, attend_to_memory)
        return self.feed_forward_sublayer(x, self.feed_forward)

    def _past_sublayer(self) -> Sublayer:
        return self.recurrence_sublayer if self.recurrence else self.self_attention_sublayer


class Decoder(nn.Module):
    """A stack of `config.decoder_layers` layers, and a last norm if they are pre-norm."""

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
        self_context: AttentionContext,
        cross_context: AttentionContext,
        states: MutableSequence[Tensor] | None = None,
    ) -> Tensor:
        """Apply all layers and the last norm to x: (B, T, D), memory (B, S, D) -> (B, T, D).

        `states`, if given, gets x and the output of each layer.
        """
        if states is not None:
            states.append(x)
        for layer in self.layers:
            x = layer(x, memory, self_context, cross_context)
            if states is not None:
                states.append(x)
        return self.norm(x)

    def start(self, memory: Tensor, source_mask: Tensor) -> DecoderCache:
        """Return an empty cache for `step`, given memory (B, S, D) and source mask (B, 1, 1, S)."""
        return DecoderCache([layer.start(memory) for layer in self.layers], source_mask)

    def step(
        self,
        x: Tensor,
        cache: DecoderCache,
        record: AttentionRecord | None = None,
        rotation: Tensor | None = None,
    ) -> Tensor:
        """Apply all layers to the next position of k hypotheses of each sentence, x (N, k, D).

        Returns (N, k, D) and extends the cache. `record` gets only the cross-attention weights.
        `rotation` (1, D) is that of the position, see `AttentionContext`.
        """
        past_mask, stored = cache.advance(x.shape[1])
        self_context = AttentionContext(past_mask, rotation=rotation)
        cross_context = AttentionContext(cache.source_mask, record=record.cross if record else None)
        x = self.through_layers(x, stored, self_context, cross_context)
        if record is not None:  # without the padding that the cache adds to the source
            for i, weights in enumerate(record.cross):
                record.cross[i] = weights[..., : cache.source_length]
        return x

    def through_layers(
        self,
        x: Tensor,
        stored: Sequence[KeyValueView | RecurrentCache],
        self_context: AttentionContext,
        cross_context: AttentionContext,
    ) -> Tensor:
        """Apply all layers, each with its entry of `stored`, and the last norm to x (N, k, D)."""
        for layer, layer_cache in zip(self.layers, stored, strict=True):
            x = layer.step(x, layer_cache, self_context, cross_context)
        normalized: Tensor = self.norm(x)
        return normalized
