"""Figure 1: the whole Transformer."""

from torch import Tensor, nn

from nmt.model.attention import AttentionContext, AttentionRecord, StateRecord
from nmt.model.cache import DecoderCache
from nmt.model.decoder import Decoder
from nmt.model.embedding import TokenEmbedding
from nmt.model.encoder import Encoder
from nmt.model.masks import causal_mask, source_mask
from nmt.model.positional_encoding import PositionalEncoding
from nmt.recipe.config import ModelConfig


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
        bos: int = 2,
        eos: int = 3,
    ) -> None:
        super().__init__()
        self.padding = padding
        self.source_eos = config.source_eos
        self.target_embedding = TokenEmbedding(
            target_vocabulary_size,
            config.d_model,
            bias=config.output_bias and config.embeddings != "separate",
            zero=bos if config.start_embedding == "zero" else None,
            same=(bos, eos) if config.start_embedding == "eos" else None,
        )
        self.source_embedding = self.output_embedding = self.target_embedding
        if config.embeddings != "shared":  # else one matrix for source, target and output
            self.source_embedding = TokenEmbedding(source_vocabulary_size, config.d_model)
        if config.embeddings == "separate":  # three matrices
            self.output_embedding = TokenEmbedding(
                target_vocabulary_size, config.d_model, bias=config.output_bias
            )
        self.positions = PositionalEncoding(
            config.d_model, positions=config.positions, heads=config.heads
        )
        self.dropout = nn.Dropout(config.dropout)
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)
        self._initialize(config.initialization_gain)

    def forward(
        self,
        source: Tensor,
        target_input: Tensor,
        attention: AttentionRecord | None = None,
        states: StateRecord | None = None,
    ) -> Tensor:
        """Return the logits (B, T, V) of source ids (B, S) and target ids (B, T).

        The target begins with BOS; the logits at position t predict target token t + 1.
        `attention`, if given, collects the attention weights of all layers, and `states` their
        outputs.
        """
        x = self.decoder_output(source, target_input, attention, states=states)
        return self.output_embedding.logits(x)

    def decoder_output(
        self,
        source: Tensor,
        target_input: Tensor,
        attention: AttentionRecord | None = None,
        memory: Tensor | None = None,
        states: StateRecord | None = None,
    ) -> Tensor:
        """Return the output of the decoder (B, T, D), from which `forward` computes the logits.

        `memory` is the result of `encode` for this source; None: it is computed here.
        """
        if memory is None:
            memory = self.encode(source, attention, states)
        x = self.embed(self.target_embedding, target_input)  # (B, T, D)
        self_record = attention.decoder if attention else None
        cross_record = attention.cross if attention else None
        # Padding is at the end, so the causal mask already hides it from every real position.
        rotation = self.positions.rotation(target_input.shape[1])
        to_past = AttentionContext(causal_mask(target_input), self_record, True, rotation)
        to_source = AttentionContext(self.source_mask(source), cross_record)
        return self.decoder(x, memory, to_past, to_source, states.decoder if states else None)

    def source_mask(self, source: Tensor) -> Tensor:
        """Return the mask (B, 1, 1, S) of source ids (B, S): which tokens are read."""
        return source_mask(source, self.padding, self.source_eos)

    def encode(
        self,
        source: Tensor,
        attention: AttentionRecord | None = None,
        states: StateRecord | None = None,
    ) -> Tensor:
        """Embed source ids (B, S); return the memory, the output of the encoder (B, S, D)."""
        x = self.embed(self.source_embedding, source)
        record = attention.encoder if attention else None
        rotation = self.positions.rotation(source.shape[1])
        context = AttentionContext(self.source_mask(source), record, rotation=rotation)
        return self.encoder(x, context, states.encoder if states else None)

    def decode(
        self,
        target_input: Tensor,
        memory: Tensor,
        source: Tensor,
        attention: AttentionRecord | None = None,
    ) -> Tensor:
        """Return the logits (B, T, V) of target ids (B, T), given memory (B, S, D) of `source`."""
        x = self.decoder_output(source, target_input, attention, memory=memory)
        return self.output_embedding.logits(x)

    def start(self, memory: Tensor, source: Tensor) -> DecoderCache:
        """Return an empty cache for `step`, for the memory (B, S, D) of source ids (B, S).

        Call this and all steps either inside or outside of `torch.inference_mode`. Gradients are
        not supported, because each step writes into the cache in place.
        """
        return self.decoder.start(memory, self.source_mask(source))

    def step(
        self, latest: Tensor, cache: DecoderCache, attention: AttentionRecord | None = None
    ) -> Tensor:
        """Return the logits (N, k, V) after the latest ids (N, k) of k hypotheses per sentence.

        The cache is extended in place. `attention` collects the weights of the cross-attention,
        (N, H, k, S) per layer.
        """
        rows = latest.reshape(-1, 1)  # (N * k, 1), all at the same position of their sentence
        x = self.embed(self.target_embedding, rows, start=cache.length)  # (N * k, 1, D)
        rotation = self.positions.rotation(1, start=cache.length)
        x = self.decoder.step(x.view(*latest.shape, -1), cache, attention, rotation)
        return self.output_embedding.logits(x)

    def embed(self, embedding: TokenEmbedding, ids: Tensor, start: int = 0) -> Tensor:
        """Embed ids, add positions from `start` on, and apply dropout: (B, T) -> (B, T, D)."""
        x: Tensor = self.dropout(self.positions(embedding(ids), start))
        return x

    def _initialize(self, gain: float) -> None:
        """Draw Glorot-uniform matrices times `gain` and set biases to 0, in all linear maps."""
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight, gain)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
