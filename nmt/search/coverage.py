"""The coverage penalty: translations that leave out a part of the source score lower.

Wu et al., 2016 (Google's Neural Machine Translation System), Eq. 14 and 15: s(Y, X) = log P(Y|X) /
lp(Y) + cp(X; Y), where cp = beta * sum over source positions i of log(min(sum over target positions
j of p_ij, 1)) and p_ij is the attention that target position j pays to source position i.

It chooses among the translations that beam search has ended; it does not steer the search.
"""

from collections.abc import Sequence
from dataclasses import replace

from torch import Tensor

from nmt.config import DecodingConfig
from nmt.data.tokens.tokenizer import EOS, PAD
from nmt.model.transformer import Transformer
from nmt.search.hypothesis import Hypothesis
from nmt.search.source_attention import paired, teacher_forced_attention
from nmt.search.windows import batches

UNSEEN = 1e-6
"""the smallest attention of a position: log(0) is not finite"""


def coverage(weights: Tensor, source: Tensor, target: Tensor) -> Tensor:
    """Eq. 15 without beta: attention (B, T, S), ids (B, S) and (B, T) -> (B,), at most 0.

    EOS of the source does not count.
    """
    written = (target != PAD)[:, :, None]
    seen = (weights * written).sum(1).clamp(UNSEEN, 1.0)  # (B, S)
    wanted = (source != PAD) & (source != EOS)
    return (seen.log() * wanted).sum(1)


def rank_by_coverage(
    model: Transformer,
    sources: Sequence[Sequence[int]],
    found: Sequence[Sequence[Hypothesis]],
    settings: DecodingConfig,
) -> list[list[Hypothesis]]:
    """Sort the hypotheses of each source by Eq. 14, the best first, and give them this score."""
    rows = [(i, h) for i, hypotheses in enumerate(found) for h in hypotheses]
    lengths = [max(len(sources[i]), len(h.tokens) + 1) for i, h in rows]
    ranked: list[list[Hypothesis]] = [[] for _ in sources]
    for part in batches(range(len(rows)), lengths, settings.batch_tokens):
        pairs = [rows[place] for place in part]
        batch = paired([sources[i] for i, _ in pairs], [h.tokens for _, h in pairs])
        batch = batch.to(next(model.parameters()).device)
        _, weights = teacher_forced_attention(model, batch)
        values = coverage(weights, batch.source, batch.target_output).tolist()
        for (i, h), value in zip(pairs, values, strict=True):
            ranked[i].append(replace(h, score=h.score + settings.coverage_penalty * value))
    return [sorted(hypotheses, key=lambda h: -h.score) for hypotheses in ranked]
