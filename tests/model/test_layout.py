"""Tokens without padding are what they are with it: logits, gradients, attention."""

from typing import get_args

import pytest
import torch
from torch import Tensor

from nmt.model.attention import AttentionRecord
from nmt.model.layout import PADDED, TOKENS_MULTIPLE, Layout, UnpaddedLayout, token_positions
from nmt.recipe.config import Norm
from nmt.training.loss import label_smoothed_cross_entropy
from tests.stand_in_models import small_transformer

PAD, V = 0, 40


def batch(rows: int, longest: int, seed: int) -> Tensor:
    """Ids of sentences of 1 to `longest` tokens, one of which is that long: (rows, longest)."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, longest + 1, (rows,), generator=generator)
    lengths[rows // 2] = longest
    ids = torch.randint(1, V, (rows, longest), generator=generator)
    return ids.masked_fill(torch.arange(longest) >= lengths[:, None], PAD)


def without_padding(source: Tensor, target: Tensor) -> tuple[Layout, Layout]:
    return UnpaddedLayout(source, PAD), UnpaddedLayout(target, PAD)


@pytest.mark.parametrize(("rows", "longest"), [(1, 1), (1, 9), (4, 32), (7, 19), (40, 30)], ids=str)
def test_every_token_is_there_once_with_some_padding(rows: int, longest: int) -> None:
    ids = batch(rows, longest, seed=1)
    places = token_positions(ids, PAD)
    assert (places.diff() > 0).all()
    tokens = ids.flatten()[places]
    assert tokens[tokens != PAD].equal(ids[ids != PAD])
    assert len(places) % TOKENS_MULTIPLE == 0 or len(places) == ids.numel()
    assert len(places) - int((ids != PAD).sum()) < TOKENS_MULTIPLE


@pytest.mark.parametrize("norm", get_args(Norm))
@pytest.mark.parametrize("sizes", [((3, 5), (3, 6)), ((40, 30), (40, 23)), ((7, 300), (7, 4))])
def test_loss_and_gradients_are_those_of_padded_rows(
    norm: str, sizes: tuple[tuple[int, int], tuple[int, int]]
) -> None:
    model = small_transformer(V, norm=norm, dropout=0.0).double().train()
    source, target = batch(*sizes[0], seed=4), batch(*sizes[1], seed=5)
    gradients = []
    for layouts in ((PADDED, PADDED), without_padding(source, target)):
        x, matrix = (
            model.decoder_output(source, target, layouts=layouts),
            model.output_embedding.weight,
        )
        right = layouts[1].tokens(target)
        loss = label_smoothed_cross_entropy(x, matrix, right, PAD, 0.1).total
        gradients.append(torch.autograd.grad(loss, list(model.parameters())))
    for padded, unpadded in zip(*gradients, strict=True):
        torch.testing.assert_close(unpadded, padded, rtol=1e-5, atol=1e-5)


def test_logits_and_attention_are_those_of_padded_rows() -> None:
    model = small_transformer(V)
    source, target = batch(20, 30, seed=6), batch(20, 11, seed=7)
    records = AttentionRecord(), AttentionRecord()
    padded = model(source, target, records[0])
    outputs = model.decoder_output(source, target, records[1], without_padding(source, target))
    unpadded = model.output_embedding.logits(outputs)
    is_real = (target != PAD).flatten()
    real_of_unpadded = is_real[token_positions(target, PAD)]
    torch.testing.assert_close(unpadded[real_of_unpadded], padded.flatten(0, 1)[is_real])
    for mine, theirs in zip(records[1].cross, records[0].cross, strict=True):
        real = (target != PAD)[:, None, :, None]
        torch.testing.assert_close(mine * real, theirs * real)
