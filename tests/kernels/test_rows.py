"""Tokens without padding give the loss and the gradients that they give with it."""

from typing import get_args

import pytest
import torch
from torch import Tensor

from nmt.data.tokens.batch import Batch
from nmt.kernels.rows import TOKENS_MULTIPLE, token_positions
from nmt.recipe.config import Norm, TrainingConfig
from nmt.training.loss import Objective
from nmt.training.prepare import prepare_for_training
from tests.stand_in_models import small_transformer

PAD, V = 0, 40


def batch(rows: int, longest: int, seed: int) -> Tensor:
    """Ids of sentences of 1 to `longest` tokens, one of which is that long: (rows, longest)."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, longest + 1, (rows,), generator=generator)
    lengths[rows // 2] = longest
    ids = torch.randint(1, V, (rows, longest), generator=generator)
    return ids.masked_fill(torch.arange(longest) >= lengths[:, None], PAD)


@pytest.fixture(autouse=True)
def processor() -> None:
    """Let the tests run once: in float64 nothing is in C."""


@pytest.mark.parametrize(("rows", "longest"), [(1, 1), (1, 9), (4, 32), (7, 19), (40, 30)], ids=str)
def test_every_token_is_there_once_with_some_padding(rows: int, longest: int) -> None:
    ids = batch(rows, longest, seed=1)
    places = token_positions(ids, PAD)
    assert (places.diff() > 0).all()
    tokens = ids.flatten()[places]
    assert tokens[tokens != PAD].equal(ids[ids != PAD])
    assert len(places) % TOKENS_MULTIPLE == 0 or len(places) == ids.numel()
    assert len(places) - int((ids != PAD).sum()) < TOKENS_MULTIPLE


@pytest.mark.parametrize(
    "kind", [*({"norm": norm} for norm in get_args(Norm)), {"decoder": "ssru"}], ids=str
)
@pytest.mark.parametrize("sizes", [((3, 5), (3, 6)), ((40, 30), (40, 23)), ((7, 300), (7, 4))])
def test_loss_and_gradients_are_those_of_padded_rows(
    kind: dict[str, str], sizes: tuple[tuple[int, int], tuple[int, int]]
) -> None:
    model = small_transformer(V, **kind, dropout=0.0).double().train()
    source, target = batch(*sizes[0], seed=4), batch(*sizes[1], seed=5)
    some = Batch(source, target, target.roll(1, 1).masked_fill(target == PAD, PAD), 0)
    objective = prepare_for_training(model, TrainingConfig(), "fp32")
    assert objective.storage == "unpadded"
    losses = [each(some).total for each in (Objective(model, 0.1, "fp32"), objective)]
    padded, unpadded = (torch.autograd.grad(loss, list(model.parameters())) for loss in losses)
    torch.testing.assert_close(losses[1], losses[0])
    torch.testing.assert_close(unpadded, padded, rtol=1e-5, atol=1e-5)
