"""What the tests of search share: small models and sources, and a search that is easy to check."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.data.tokens.tokenizer import BOS, EOS, PAD
from nmt.model.transformer import Transformer
from nmt.recipe.config import DecodingConfig, ModelConfig
from nmt.search.hypothesis import Hypothesis, length_penalty

VOCABULARY = 12
Path = tuple[tuple[int, ...], float]
"""tokens and their log P"""


def random_transformer(seed: int = 3, d_model: int = 16) -> Transformer:
    """Random weights, large enough that every token, EOS included, is sometimes the best."""
    torch.manual_seed(seed)
    sizes = ModelConfig(
        d_model=d_model, heads=2, d_ff=32, encoder_layers=1, decoder_layers=2, embeddings="separate"
    )
    model = Transformer(sizes, VOCABULARY, VOCABULARY, PAD).eval()
    torch.nn.init.normal_(model.output_embedding.weight, std=16 / d_model)
    return model


def padded_source(rows: int = 12) -> Tensor:
    """Sentences of 2 to 9 tokens, EOS included, padded: (rows, 9)."""
    generator = torch.Generator().manual_seed(5)
    ids = torch.randint(EOS + 1, VOCABULARY, (rows, 9), generator=generator)
    for i, row in enumerate(ids):
        row[1 + i % 8] = EOS
        row[2 + i % 8 :] = PAD
    return ids


def without_padding(row: Tensor) -> list[int]:
    return row[row != PAD].tolist()


def assert_same(
    found: Sequence[Hypothesis], expected: Sequence[Hypothesis], tolerance: float = 1e-4
) -> None:
    """Tokens must be equal; scores may differ a little, as batches round differently."""
    assert [one.tokens for one in found] == [one.tokens for one in expected]
    scores = [one.score for one in expected]
    assert [one.score for one in found] == pytest.approx(scores, abs=tolerance)


def plain_search(model: Any, source: list[int], settings: DecodingConfig) -> list[Hypothesis]:
    """All hypotheses that end in the beam, best first, found without batch, cache and bound.

    Of the best continuations, as many as the beam holds, those that end are set aside. The others
    go on, and so do the next best, until the beam is full again; with `early_stopping` only until
    as many have ended as the beam holds. If the beam holds every path the search is exhaustive.
    """
    beam, limit = settings.beam_size, len(source) + settings.max_length_offset
    live: list[Path] = [((), 0.0)]
    ended: list[Hypothesis] = []
    for length in range(1, limit + 1):
        best = _continuations(model, source, live)[: 1 if beam == 1 else 2 * beam]
        penalty = length_penalty(float(length), settings)
        ended += [
            Hypothesis.from_row(list(tokens), log_p / penalty)
            for tokens, log_p in best[:beam]
            if tokens[-1] == EOS or length == limit
        ]
        live = [path for path in best if path[0][-1] != EOS][:beam]
        if not live or (settings.early_stopping and len(ended) >= beam):
            break
    return sorted(ended, key=lambda hypothesis: -hypothesis.score)


def _continuations(model: Any, source: list[int], live: Sequence[Path]) -> list[Path]:
    """All paths by one more token, the most probable first."""
    prefixes = torch.tensor([[BOS, *tokens] for tokens, _ in live])
    with torch.no_grad():
        log_p = model(torch.tensor([source] * len(live)), prefixes)[:, -1].log_softmax(1)
    totals = (log_p + torch.tensor([[path] for _, path in live])).tolist()
    paths = [
        ((*tokens, token), total)
        for (tokens, _), row in zip(live, totals, strict=True)
        for token, total in enumerate(row)
        if token not in (PAD, BOS)
    ]
    return sorted(paths, key=lambda path: -path[1])
