"""One update is Adam's, over the mean gradient of a token."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nmt.config import ModelConfig, TrainingConfig
from nmt.model.transformer import Transformer
from nmt.training.muon import Muon
from nmt.training.optimizer import build_optimizers, update_weights

TOKENS, RATE = 7, 0.05


def parameters() -> list[nn.Parameter]:
    torch.manual_seed(1)
    return [nn.Parameter(torch.randn(4, 3)), nn.Parameter(torch.randn(5))]


def gradients(step: int) -> list[Tensor]:
    """Sums over the tokens of a step, smaller from step to step."""
    torch.manual_seed(100 + step)
    scale = TOKENS * 0.5**step
    return [scale * torch.randn(4, 3), scale * torch.randn(5)]


def trained(
    config: TrainingConfig, steps: int = 4, rates: tuple[float, ...] = ()
) -> list[nn.Parameter]:
    ours = parameters()
    optimizers = build_optimizers(nn.ParameterList(ours), config)
    for step in range(steps):
        for parameter, gradient in zip(ours, gradients(step), strict=True):
            parameter.grad = gradient
        update_weights(optimizers, TOKENS, rates[step] if rates else RATE, config.clip_norm)
    return ours


def assert_same(ours: list[nn.Parameter], expected: list[nn.Parameter]) -> None:
    for one, other in zip(ours, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


def test_updates_are_adam_over_gradients_divided_once_by_the_tokens() -> None:
    """Adam by its own equations (Kingma and Ba, algorithm 1), in float64."""
    config = TrainingConfig(adam_beta1=0.8, adam_beta2=0.97, adam_epsilon=1e-3)
    rates = (0.1, 0.02, 0.3, 0.05)
    expected = [parameter.detach().double() for parameter in parameters()]
    first = [torch.zeros_like(x) for x in expected]
    second = [torch.zeros_like(x) for x in expected]
    for step, rate in enumerate(rates):
        for i, gradient in enumerate(gradients(step)):
            g = gradient.double() / TOKENS
            first[i] = 0.8 * first[i] + 0.2 * g
            second[i] = 0.97 * second[i] + 0.03 * g * g
            unbiased_first = first[i] / (1 - 0.8 ** (step + 1))
            unbiased_second = second[i] / (1 - 0.97 ** (step + 1))
            expected[i] -= rate * unbiased_first / (unbiased_second.sqrt() + 1e-3)
    assert_same(trained(config, rates=rates), [nn.Parameter(x.float()) for x in expected])


def test_weight_decay_is_decoupled() -> None:
    expected = parameters()
    adamw = torch.optim.AdamW(expected, RATE, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.3)
    for step in range(4):
        for parameter, gradient in zip(expected, gradients(step), strict=True):
            parameter.grad = gradient / TOKENS
        adamw.step()
    assert_same(trained(TrainingConfig(weight_decay=0.3)), expected)


def test_gradients_are_clipped_to_the_norm_after_the_division() -> None:
    expected = parameters()
    adam = torch.optim.Adam(expected, RATE, betas=(0.9, 0.98), eps=1e-9)
    clipped_norms = []
    for step in range(4):
        scaled = [gradient / TOKENS for gradient in gradients(step)]
        norm = torch.cat([gradient.flatten() for gradient in scaled]).norm()
        clipped_norms.append(norm > 1.5)
        for parameter, gradient in zip(expected, scaled, strict=True):
            parameter.grad = gradient * min(1.0, 1.5 / norm.item())
        adam.step()
    assert any(clipped_norms) and not all(clipped_norms)
    assert_same(trained(TrainingConfig(clip_norm=1.5)), expected)


def test_no_gradient_outlives_its_step() -> None:
    assert all(parameter.grad is None for parameter in trained(TrainingConfig(), steps=1))


def test_a_parameter_without_gradient_stays_as_it_is() -> None:
    ours = parameters()
    before = ours[1].detach().clone()
    ours[0].grad = gradients(0)[0]
    optimizers = build_optimizers(nn.ParameterList(ours), TrainingConfig())
    update_weights(optimizers, TOKENS, RATE, clip_norm=1.0)
    assert torch.equal(ours[1], before)
    assert not torch.equal(ours[0], parameters()[0])


@pytest.mark.parametrize(("precision", "dtype"), [("bf16", "bfloat16"), ("fp32", "float32")])
def test_muon_takes_the_linear_maps_and_adam_the_rest(precision: str, dtype: str) -> None:
    sizes: dict[str, Any] = {
        "d_model": 8,
        "heads": 2,
        "d_ff": 12,
        "encoder_layers": 1,
        "decoder_layers": 1,
    }
    model = Transformer(ModelConfig(**sizes), 20, 20)
    config = TrainingConfig(optimizer="muon", weight_decay=0.2)
    muon, adam = build_optimizers(model, config, precision)
    assert isinstance(muon, Muon) and isinstance(adam, torch.optim.Adam)
    assert str(muon._dtype) == f"torch.{dtype}"
    matrices, rest = ([id(p) for p in o.param_groups[0]["params"]] for o in (muon, adam))
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    assert sorted(matrices + rest) == sorted(names)
    assert {names[i].split(".")[-1] for i in matrices} == {"weight"}
    assert "target_embedding.weight" in {names[i] for i in rest}
    assert all(o.param_groups[0]["weight_decay"] == 0.2 for o in (muon, adam))


def test_both_optimisers_get_the_rate_of_the_step() -> None:
    model = nn.Linear(3, 4)
    optimizers = build_optimizers(model, TrainingConfig(optimizer="muon"))
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    update_weights(optimizers, TOKENS, RATE, clip_norm=None)
    assert [o.param_groups[0]["lr"] for o in optimizers] == [RATE, RATE]
    assert model.weight.grad is None and model.bias.grad is None
