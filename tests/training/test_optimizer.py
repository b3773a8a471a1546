"""One update is Adam's, over the mean gradient of a token."""

import torch
from torch import Tensor, nn

from nmt.config import TrainingConfig
from nmt.training.optimizer import make_optimizer, update

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
    optimizer = make_optimizer(ours, config)
    for step in range(steps):
        for parameter, gradient in zip(ours, gradients(step), strict=True):
            parameter.grad = gradient
        update(optimizer, TOKENS, rates[step] if rates else RATE, config.clip_norm)
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
    update(make_optimizer(ours, TrainingConfig()), TOKENS, RATE, clip_norm=1.0)
    assert torch.equal(ours[1], before)
    assert not torch.equal(ours[0], parameters()[0])
