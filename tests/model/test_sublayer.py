"""Section 3.1: where the layer norm stands."""

from typing import Literal

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt.config import ModelConfig
from nmt.model.sublayer import Sublayer, final_norm

D, EPSILON = 12, 1e-3


def sublayer(norm: Literal["post", "pre"], dropout: float = 0.0) -> Sublayer:
    torch.manual_seed(1)
    made = Sublayer(
        ModelConfig(d_model=D, heads=2, norm=norm, dropout=dropout, layer_norm_epsilon=EPSILON)
    )
    nn.init.normal_(made.norm.weight)
    nn.init.normal_(made.norm.bias)
    return made


def layer_norm(x: Tensor, norm: nn.LayerNorm) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) * gain + bias."""
    centred = x - x.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    return centred / (variance + EPSILON).sqrt() * norm.weight + norm.bias


def f(x: Tensor) -> Tensor:
    return x.sin() + 2 * x


def test_post_norm_is_layer_norm_of_the_residual_sum() -> None:
    post, x = sublayer("post"), torch.randn(2, 3, D)
    torch.testing.assert_close(post(x, f), layer_norm(x + f(x), post.norm))


def test_pre_norm_is_the_residual_sum_of_the_normed() -> None:
    pre, x = sublayer("pre"), torch.randn(2, 3, D)
    torch.testing.assert_close(pre(x, f), x + f(layer_norm(x, pre.norm)))


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_dropout_acts_on_the_output_of_the_sublayer_alone(norm: Literal["post", "pre"]) -> None:
    wet, dry = sublayer(norm, dropout=0.5), sublayer(norm)
    x = torch.randn(2, 3, D)
    with torch.no_grad():
        torch.manual_seed(2)
        dropped = wet(x, lambda _: torch.ones_like(x))
        torch.manual_seed(2)
        mask = wet.dropout(torch.ones_like(x))
    assert set(mask.unique().tolist()) == {0.0, 2.0}
    torch.testing.assert_close(dropped, dry(x, lambda _: mask))


def test_only_pre_norm_closes_a_stack_with_a_norm() -> None:
    x = torch.randn(2, 3, D)
    assert final_norm(ModelConfig(d_model=D, heads=2, norm="post"))(x) is x
    closing = final_norm(ModelConfig(d_model=D, heads=2, norm="pre", layer_norm_epsilon=EPSILON))
    torch.testing.assert_close(closing(x), F.layer_norm(x, (D,), eps=EPSILON))
