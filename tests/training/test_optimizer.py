"""One update is Adam's or Muon's, over the mean gradient of a token; and the average of weights."""

from collections.abc import Sequence
from copy import deepcopy
from functools import partial
from typing import Any, get_args

import pytest
import torch
from torch import Tensor, nn

from nmt.model.transformer import Transformer
from nmt.recipe.config import ModelConfig, TrainingConfig
from nmt.training.optimizer import (
    MovingAverage,
    Muon,
    build_optimizers,
    orthogonalize,
    update_weights,
)

TOKENS, RATES = 7, (0.1, 0.02, 0.3, 0.05)
MATRICES = [(16, 16), (16, 16), (24, 16), (16, 24), (16, 24), (3, 1)]


def parameters(shapes: Sequence[tuple[int, ...]]) -> list[nn.Parameter]:
    torch.manual_seed(1)
    return [nn.Parameter(torch.randn(shape)) for shape in shapes]


def gradients(step: int) -> list[Tensor]:
    """Sums over the tokens of a step, smaller from step to step."""
    torch.manual_seed(100 + step)
    scale = TOKENS * 0.5**step
    return [scale * torch.randn(4, 3), scale * torch.randn(5)]


assert_same = partial(torch.testing.assert_close, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("settings", "clipped"),
    [
        ({"adam_beta1": 0.8, "adam_beta2": 0.97, "adam_epsilon": 1e-3}, 0),
        ({"weight_decay": 0.3}, 0),
        ({"clip_norm": 1.5}, 2),
    ],
)
def test_updates_are_adam_over_gradients_divided_once_by_the_tokens(
    settings: dict[str, Any], clipped: int
) -> None:
    """Adam by its own equations (Kingma and Ba, algorithm 1), in float64.

    Weight decay is decoupled, and gradients are clipped after the division.
    """
    config = TrainingConfig(**settings)
    ours = parameters([(4, 3), (5,)])
    optimizers = build_optimizers(nn.ParameterList(ours), config, "fp32")
    expected = [parameter.detach().double() for parameter in ours]
    first, second = ([torch.zeros_like(x) for x in expected] for _ in range(2))
    beta1, beta2, found = config.adam_beta1, config.adam_beta2, 0
    for step, rate in enumerate(RATES):
        scaled = [gradient.double() / TOKENS for gradient in gradients(step)]
        norm = torch.cat([gradient.flatten() for gradient in scaled]).norm().item()
        clip = min(1.0, (config.clip_norm or norm) / norm)
        found += clip < 1
        for i, gradient in enumerate(scaled):
            g = gradient * clip
            first[i] = beta1 * first[i] + (1 - beta1) * g
            second[i] = beta2 * second[i] + (1 - beta2) * g * g
            unbiased = first[i] / (1 - beta1 ** (step + 1)), second[i] / (1 - beta2 ** (step + 1))
            decay = rate * config.weight_decay * expected[i]
            expected[i] -= rate * unbiased[0] / (unbiased[1].sqrt() + config.adam_epsilon) + decay
        for parameter, gradient in zip(ours, gradients(step), strict=True):
            parameter.grad = gradient
        update_weights(optimizers, TOKENS, rate, config.clip_norm)
        assert all(parameter.grad is None for parameter in ours)
    assert_same(ours, [x.float() for x in expected])
    assert found == clipped


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_a_parameter_without_gradient_stays_as_it_is(optimizer: Any) -> None:
    model = nn.ModuleList([nn.Linear(3, 4), nn.Linear(3, 4)])
    before = deepcopy(model)
    optimizers = build_optimizers(model, TrainingConfig(optimizer=optimizer), "fp32")
    for parameter in model[0].parameters():
        parameter.grad = torch.ones_like(parameter)
    update_weights(optimizers, TOKENS, 0.05, clip_norm=1.0)
    assert all(each.param_groups[0]["lr"] == 0.05 for each in optimizers)
    kept = list(map(torch.equal, model.parameters(), before.parameters()))
    assert kept == [False, False, True, True]


@pytest.mark.parametrize(("precision", "dtype"), [("bf16", "bfloat16"), ("fp32", "float32")])
def test_muon_takes_the_linear_maps_and_adam_the_rest(precision: str, dtype: str) -> None:
    sizes = ModelConfig(d_model=8, heads=2, d_ff=12, encoder_layers=1, decoder_layers=1)
    model = Transformer(sizes, 20, 20)
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


@pytest.mark.parametrize("shape", [(2, 16, 16), (1, 40, 16), (3, 16, 40)])
@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_singular_values_come_near_one_and_directions_stay(
    shape: tuple[int, ...], scale: float
) -> None:
    torch.manual_seed(1)
    matrices = scale * torch.randn(shape)
    made = orthogonalize(matrices)
    assert made.shape == matrices.shape
    values = torch.linalg.svdvals(made)
    # the smallest directions of a square matrix take more iterations than it is worth
    assert values.max() < 1.3 and values.quantile(0.2) > 0.6
    u, _, v = torch.linalg.svd(matrices, full_matrices=False)
    turned = u.transpose(1, 2) @ made @ v.transpose(1, 2)
    diagonal = torch.diag_embed(turned.diagonal(dim1=1, dim2=2))
    torch.testing.assert_close(turned, diagonal, rtol=0, atol=1e-3)
    # each matrix by itself, and none of zeros alone
    assert_same([orthogonalize(matrix[None])[0] for matrix in matrices], list(made))
    assert (orthogonalize(torch.zeros(shape)) == 0).all()


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_updates_of_muon_are_those_of_pytorch_and_its_state_can_be_saved(
    weight_decay: float,
) -> None:
    ours, theirs = parameters(MATRICES), parameters(MATRICES)
    expected = torch.optim.Muon(
        theirs, lr=0.03, weight_decay=weight_decay, adjust_lr_fn="match_rms_adamw"
    )
    saved: dict[str, Any] = {}
    for _ in range(4):
        muon = Muon(ours, weight_decay, torch.bfloat16)
        if saved:
            muon.load_state_dict(saved)
        muon.param_groups[0]["lr"] = 0.03
        for one, other in zip(ours, theirs, strict=True):
            one.grad = torch.randn_like(one)
            other.grad = one.grad.clone()
        muon.step()
        expected.step()
        saved = deepcopy(muon.state_dict())
    assert_same(ours, theirs)


def test_the_moving_average_is_its_equation_and_a_loaded_one_continues() -> None:
    torch.manual_seed(1)
    model = nn.Linear(3, 2)
    average = MovingAverage(model, decay=0.9)
    expected = model.weight.detach().double()
    for step in range(1, 200):
        with torch.no_grad():
            model.weight.normal_()
        average.update(step)
        if step == 100:
            saved = average.weights
            average = MovingAverage(model, decay=0.9)
            average.load(saved)
        decay = min(0.9, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * model.weight.detach().double()
        torch.testing.assert_close(average.weights["weight"].double(), expected, rtol=0, atol=1e-5)
    torch.testing.assert_close(average.weights["bias"], model.bias.detach())  # it did not change


def build_own(model: nn.Module, config: TrainingConfig, precision: str) -> Any:
    """An optimiser that does not know `found_inf`."""
    return [torch.optim.SGD(model.parameters(), lr=0.0, momentum=0.9)]


OPTIMIZERS = get_args(TrainingConfig.model_fields["optimizer"].annotation)


@pytest.mark.parametrize("name", [*OPTIMIZERS, "own"])
def test_a_rejected_step_changes_nothing(name: str) -> None:
    """With any optimiser of the configuration: one that ignored it would write NaN everywhere."""
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(4, 6), nn.LayerNorm(6))
    build = build_own if name == "own" else build_optimizers
    settings: dict[str, Any] = {} if name == "own" else {"optimizer": name}
    optimizers = build(model, TrainingConfig(weight_decay=0.1, **settings), "fp32")

    def step(scale: float, rejected: float) -> list[Tensor]:
        model(scale * torch.randn(3, 4)).square().sum().backward()
        update_weights(optimizers, TOKENS, 0.1, None, torch.tensor(rejected))
        states = [s for each in optimizers for s in each.state.values()]
        moments = [value for s in states for value in s.values() if isinstance(value, Tensor)]
        return [tensor.detach().clone() for tensor in (*model.parameters(), *moments)]

    before = step(1.0, rejected=0.0)
    assert all(weight.grad is None for weight in model.parameters())
    assert_same(step(float("nan"), rejected=1.0), before, rtol=0, atol=0)
    changed = [not torch.equal(a, b) for a, b in zip(step(1.0, 0.0), before, strict=True)]
    assert any(changed)
