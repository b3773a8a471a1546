"""The small modules of the model are their equations in the paper."""

import math
import random
from typing import Any, get_args

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from nmt.model.embedding import TokenEmbedding
from nmt.model.feed_forward import ACTIVATIONS, FeedForward, build_feed_forward
from nmt.model.masks import causal_mask, padding_mask
from nmt.model.norm import RMSNorm, build_norm
from nmt.model.positional_encoding import PositionalEncoding, rotate, sinusoids
from nmt.model.sublayer import Sublayer, final_norm
from nmt.recipe.config import Activation, ModelConfig, Norm, Positions

D, EPSILON = 48, 1e-3

# -- section 3.4: embeddings ----------------------------------------------------------------------


def test_embedding_is_a_row_times_the_root_of_the_width_and_logits_are_products_with_rows() -> None:
    embedding = TokenEmbedding(11, 16)
    ids, x = torch.tensor([[3, 0, 10], [3, 3, 1]]), torch.randn(2, 5, 16)
    torch.testing.assert_close(embedding(ids), embedding.weight[ids] * math.sqrt(16))
    torch.testing.assert_close(embedding.logits(x), x @ embedding.weight.T)


def test_the_begin_symbol_of_marian_is_zero_as_an_input_and_its_bias_is_in_every_logit() -> None:
    embedding = TokenEmbedding(11, 16, bias=True, zero=2)
    assert embedding.bias is not None
    torch.nn.init.normal_(embedding.bias)
    x, embedded = torch.randn(2, 5, 16), embedding(torch.tensor([[2, 0, 10]]))
    assert not embedded[0, 0].any() and embedded[0, 1:].any(1).all()
    torch.testing.assert_close(embedding.logits(x), x @ embedding.weight.T + embedding.bias)


def test_the_begin_symbol_of_fairseq_is_read_as_eos() -> None:
    embedding = TokenEmbedding(11, 16, same=(2, 3))
    embedded = embedding(torch.tensor([[2, 3, 0]]))
    assert torch.equal(embedded[0, 0], embedded[0, 1])
    assert not torch.equal(embedded[0, 0], embedded[0, 2])


def test_initial_embeddings_have_unit_variance_once_scaled() -> None:
    torch.manual_seed(1)
    embedding = TokenEmbedding(1000, 100)
    # the standard error of a standard deviation over n normal draws is 1 / sqrt(2 n)
    assert abs(embedding(torch.arange(1000)).std().item() - 1) < 5 / math.sqrt(2e5)
    assert abs(embedding.weight.mean().item()) < 5 * 0.1 / math.sqrt(1e5)


# -- section 3.2.3: masks, True = may attend ------------------------------------------------------


def test_masks_allow_exactly_the_real_tokens_and_the_past_with_the_present() -> None:
    padding = padding_mask(torch.tensor([[7, 8, 5], [9, 5, 5]]), padding=5)
    causal = causal_mask(torch.empty(1, 6))
    assert padding.shape == (2, 1, 1, 3) and causal.shape == (1, 1, 6, 6)
    assert padding.dtype == causal.dtype == torch.bool
    assert padding[:, 0, 0].tolist() == [[True, True, False], [True, False, False]]
    assert causal[0, 0].tolist() == [[s <= t for s in range(6)] for t in range(6)]


# -- section 3.5: positional encoding -------------------------------------------------------------


def test_table_is_the_formula_of_the_paper() -> None:
    table = sinusoids(2000, D)
    assert table.dtype == torch.float32
    draw = random.Random(1)
    for _ in range(500):
        position, i = draw.randrange(2000), draw.randrange(D // 2)
        angle = position / 10000 ** (2 * i / D)
        assert abs(table[position, 2 * i].item() - math.sin(angle)) < 1e-7
        assert abs(table[position, 2 * i + 1].item() - math.cos(angle)) < 1e-7


INTERVALS: dict[Positions, int] = {"sines_first": 24, "tensor2tensor": 23, "fairseq": 23}


def test_every_kind_of_positions_is_tried() -> None:
    assert {"interleaved", *INTERVALS, "rotary"} == {*get_args(Positions)}


@pytest.mark.parametrize(("positions", "intervals"), INTERVALS.items())
def test_positions_of_marian_are_all_sines_and_then_all_cosines(
    positions: Positions, intervals: int
) -> None:
    table = sinusoids(300, D, positions)
    for position, i in ((0, 5), (299, 0), (120, 23), (7, 11)):
        shift = 2 if positions == "fairseq" else 0  # there padding has the position 1
        angle = (position + shift) / 10000 ** (i / intervals)
        assert abs(table[position, i].item() - math.sin(angle)) < 1e-7
        assert abs(table[position, D // 2 + i].item() - math.cos(angle)) < 1e-7


def test_encoding_is_added_in_one_pass_or_step_by_step_and_never_saved() -> None:
    x, encoding = torch.randn(1, 12, D), PositionalEncoding(D)
    steps = [encoding(x[:, t : t + 1], start=t) for t in range(12)]
    torch.testing.assert_close(encoding(x), x + sinusoids(12, D))
    assert torch.equal(torch.cat(steps, dim=1), encoding(x))
    assert not encoding.state_dict() and not list(encoding.parameters())


def test_table_grows_for_longer_text_keeps_its_values_and_can_still_be_trained_with() -> None:
    short, long = PositionalEncoding(D, initial_length=4), PositionalEncoding(D, 100)
    x = torch.randn(1, 33, D)
    with torch.inference_mode():
        assert torch.equal(short(x), long(x))
    assert not short.table.is_inference()
    assert torch.equal(short(x[:, :1], start=70), long(x[:, :1], start=70))
    assert len(short.table) > 70


def test_rotary_positions_turn_each_pair_of_a_head_by_its_angle() -> None:
    heads, width, start = 3, D // 3, 700
    encoding = PositionalEncoding(D, 4, "rotary", heads)
    rotation = encoding.rotation(5, start)
    assert rotation is not None and not list(encoding.parameters())
    x = torch.randn(2, 5, D, dtype=torch.float64)
    assert encoding(x, start) is x  # nothing is added
    turned = rotate(x, rotation).numpy()
    for t, head, i in ((0, 0, 0), (4, 2, width // 2 - 1), (3, 1, 5)):
        angle = (start + t) * 10000 ** (-2 * i / width)
        first = head * width + 2 * i
        pair = x.numpy()[:, t, first] + 1j * x.numpy()[:, t, first + 1]
        expected = pair * np.exp(1j * angle)  # turned in the complex plane
        found = turned[:, t, first] + 1j * turned[:, t, first + 1]
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_attention_to_rotated_keys_depends_on_the_distance_alone() -> None:
    encoding, one = PositionalEncoding(D, 64, "rotary", heads=1), torch.ones(1, 60, D)
    query, key = one * torch.randn(D), one * torch.randn(D)
    rotation = encoding.rotation(60)
    scores = rotate(query, rotation) @ rotate(key, rotation).mT  # (1, T, T)
    for distance in (-20, 0, 7):
        same = scores[0].diagonal(distance)
        torch.testing.assert_close(same, same[:1].expand_as(same), rtol=1e-3, atol=1e-3)
    assert rotate(query, PositionalEncoding(D).rotation(60)) is query


# -- Eq. 2: the feed-forward network --------------------------------------------------------------


FORMULAS: dict[Activation, Any] = {
    "relu": lambda x: np.maximum(0, x),
    "gelu": lambda x: x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2,
    "swish": lambda x: x / (1 + np.exp(-x)),
}


@pytest.mark.parametrize("activation", get_args(Activation))
def test_feed_forward_is_equation_2_at_each_position(activation: Activation) -> None:
    torch.manual_seed(1)
    network = FeedForward(6, 10, activation=activation).double()
    x = torch.randn(2, 3, 6, dtype=torch.float64)
    w1, b1 = network.inner.weight.detach().numpy().T, network.inner.bias.detach().numpy()
    w2, b2 = network.outer.weight.detach().numpy().T, network.outer.bias.detach().numpy()
    expected = FORMULAS[activation](x.numpy() @ w1 + b1) @ w2 + b2
    np.testing.assert_allclose(network(x).detach().numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("activation", get_args(Activation))
def test_a_gate_multiplies_what_the_activation_lets_through(activation: Activation) -> None:
    torch.manual_seed(1)
    sizes: dict[str, Any] = {"d_model": 6, "heads": 1, "d_ff": 10, "activation": activation}
    network = build_feed_forward(ModelConfig(**sizes, feed_forward="gated")).double()
    x = torch.randn(2, 3, 6, dtype=torch.float64)
    w = {name: p.detach().numpy().T for name, p in network.named_parameters()}
    open_gate = x.numpy() @ w["gate.weight"] + w["gate.bias"]
    inner = FORMULAS[activation](x.numpy() @ w["inner.weight"] + w["inner.bias"])
    expected = (inner * open_gate) @ w["outer.weight"] + w["outer.bias"]
    np.testing.assert_allclose(network(x).detach().numpy(), expected, rtol=1e-12)


def test_every_activation_of_the_configuration_has_its_function() -> None:
    assert ACTIVATIONS.keys() == set(get_args(Activation))


# -- section 3.1: residual connections and layer normalisation ------------------------------------


def sublayer(norm: Norm, dropout: float = 0.0) -> Sublayer:
    torch.manual_seed(1)
    made = Sublayer(
        ModelConfig(d_model=D, heads=2, norm=norm, dropout=dropout, layer_norm_epsilon=EPSILON)
    )
    for weight in made.norm.parameters():
        nn.init.normal_(weight)
    return made


def layer_norm(x: Tensor, norm: Any) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) * gain + bias."""
    centred = x - x.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    return centred / (variance + EPSILON).sqrt() * norm.weight + norm.bias


def test_post_norm_normalises_the_residual_sum_and_pre_norm_the_input() -> None:
    post, pre, x = sublayer("post"), sublayer("pre"), torch.randn(2, 3, D)

    def f(x: Tensor) -> Tensor:
        return x.sin() + 2 * x

    torch.testing.assert_close(post(x, f), layer_norm(x + f(x), post.norm))
    torch.testing.assert_close(pre(x, f), x + f(layer_norm(x, pre.norm)))


@pytest.mark.parametrize("norm", get_args(Norm))
def test_dropout_acts_on_the_output_of_the_sublayer_alone(norm: Norm) -> None:
    wet, dry = sublayer(norm, dropout=0.5), sublayer(norm)
    x = torch.randn(2, 3, D)
    with torch.no_grad():
        torch.manual_seed(2)
        dropped = wet(x, lambda _: torch.ones_like(x))
        torch.manual_seed(2)
        mask = wet.dropout(torch.ones_like(x))
    assert set(mask.unique().tolist()) == {0.0, 2.0}
    torch.testing.assert_close(dropped, dry(x, lambda _: mask))


def test_rms_norm_divides_by_the_root_of_the_mean_square_alone() -> None:
    torch.manual_seed(1)
    norm = build_norm(ModelConfig(d_model=D, heads=2, norm_kind="rms", layer_norm_epsilon=EPSILON))
    assert isinstance(norm, RMSNorm) and [*dict(norm.named_parameters())] == ["weight"]
    nn.init.normal_(norm.weight)
    x = torch.randn(2, 3, D, dtype=torch.float64)
    gain = norm.weight.detach().double().numpy()
    rms = np.sqrt((x.numpy() ** 2).mean(-1, keepdims=True) + EPSILON)
    np.testing.assert_allclose(norm(x).detach().numpy(), x.numpy() / rms * gain, rtol=1e-12)
    low = norm(x.bfloat16())  # computed in float32, and rounded once
    torch.testing.assert_close(low, norm(x.bfloat16().float()).bfloat16(), rtol=0, atol=0)


def test_only_pre_norm_closes_a_stack_with_a_norm() -> None:
    x = torch.randn(2, 3, D)
    assert final_norm(ModelConfig(d_model=D, heads=2, norm="post"))(x) is x
    closing = final_norm(ModelConfig(d_model=D, heads=2, norm="pre", layer_norm_epsilon=EPSILON))
    assert isinstance(closing, nn.LayerNorm)
    torch.testing.assert_close(closing(x), layer_norm(x, closing))
