"""What all searches share: the next token's log P, what may not follow, and which sentences leave.

A search extends the hypotheses of a batch by one token at each step. A sentence that is done leaves
the batch, at once or a few steps later (`leaving_sentences`), so that later steps compute less.
"""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from nmt.config import DecodingConfig
from nmt.model.attention import AttentionRecord
from nmt.model.cache import leaving_sentences, remaining_sentences
from nmt.model.transformer import Transformer
from nmt.search.constraints import forbid


def log_probabilities(logits: Tensor) -> Tensor:
    """Return log P of each next token: (..., V), in float32 on a GPU.

    On a CPU the result has the type of the logits and overwrites them: to fetch other memory takes
    as long as to compute the logarithms.
    """
    if logits.device.type != "cpu":
        return logits.log_softmax(-1, dtype=torch.float32)
    return torch.log_softmax(logits, -1, out=logits)


@dataclass(frozen=True)
class EncodedSource:
    """A batch of sources, what the encoder computed from them, and how long translations may be."""

    source: Tensor
    """(B, S) ids"""
    memory: Tensor
    """(B, S, D)"""
    max_lengths: Tensor
    """(B,) the most tokens of each translation, EOS included"""

    @classmethod
    def of(cls, model: Transformer, source: Tensor, settings: DecodingConfig) -> Self:
        """Encode the source ids (B, S); the limits are those of the settings."""
        limits = (source != model.padding).sum(1) + settings.max_length_offset
        return cls(source, model.encode(source), limits)


class Decoding:
    """The decoder of a search: its model, its cache, and what may not follow."""

    def __init__(
        self,
        model: Transformer,
        encoded: EncodedSource,
        settings: DecodingConfig,
        bos: int,
        eos: int,
    ) -> None:
        self.model = model
        self.settings = settings
        self.never = (model.padding, bos)
        """ids that no translation holds"""
        self.eos = eos
        self.cache = model.start(encoded.memory, encoded.source)

    def next_log_p(self, latest: Tensor, tokens: Tensor) -> Tensor:
        """Return log P of the next token of each hypothesis: (N * k, V), -inf where forbidden.

        `latest` (N, k) are the tokens to decode, `tokens` (N, k, T) all tokens so far.
        """
        log_p = log_probabilities(self.next_logits(latest))
        self.forbid(log_p, tokens.flatten(0, 1))
        return log_p

    def next_logits(self, latest: Tensor, attention: AttentionRecord | None = None) -> Tensor:
        """Decode the latest tokens (N, k) of the hypotheses: logits of the next (N * k, V)."""
        if attention is None:
            return self.model.step(latest, self.cache).flatten(0, 1)
        return self.model.step(latest, self.cache, attention).flatten(0, 1)

    def forbid(self, log_p: Tensor, history: Tensor) -> None:
        """Set log P (R, V) to -inf where a token may not follow `history` (R, T)."""
        forbid(log_p, history, self.settings, self.never, self.eos)

    def continue_hypotheses(self, parents: Tensor) -> None:
        """Let hypothesis i of a sentence continue its former hypothesis parents[i]: (N, k)."""
        self.cache.continue_hypotheses(parents)

    def keep(self, sentences: Tensor) -> None:
        """Drop all sentences but those at these places (N',)."""
        self.cache.keep_sentences(sentences)

    def drop(self, done: Tensor) -> "Departure | None":
        """Drop sentences that are done (N,) as soon as the batch shrinks to a size that is fast."""
        leaving = leaving_sentences(done)
        if not leaving.any():
            return None
        remaining = remaining_sentences(leaving)
        self.keep(remaining)
        return Departure(leaving, remaining)


@dataclass(frozen=True)
class Departure:
    """Which sentences have left a batch."""

    leaving: Tensor
    """(N,) booleans"""
    remaining: Tensor
    """(N',) the former places of the others, in their new order"""
