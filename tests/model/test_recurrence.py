"""The recurrence of a decoder is its equations, in one pass and step by step."""

import torch
from torch import Tensor

from nmt.model.attention import AttentionContext
from nmt.model.recurrence import SimpleRecurrence

B, T, D = 2, 5, 3
CONTEXT = AttentionContext(None)


def recurrence(dtype: torch.dtype = torch.float64) -> SimpleRecurrence:
    torch.manual_seed(1)
    return SimpleRecurrence(D).to(dtype)


def by_hand(layer: SimpleRecurrence, x: Tensor) -> list[list[list[float]]]:
    """The equations, number by number."""
    gates = torch.sigmoid(x @ layer.forget.weight.T + layer.forget.bias).tolist()
    candidates = (x @ layer.candidate.weight.T).tolist()
    h: list[list[list[float]]] = []
    for f, w in zip(gates, candidates, strict=True):
        c = [0.0] * D
        h.append([])
        for t in range(len(f)):
            c = [f[t][i] * c[i] + (1 - f[t][i]) * w[t][i] for i in range(D)]
            h[-1].append([max(0.0, each) for each in c])
    return h


def test_all_positions_are_the_equations() -> None:
    layer, x = recurrence(), torch.randn(B, T, D, dtype=torch.float64)
    expected = torch.tensor(by_hand(layer, x), dtype=torch.float64)
    torch.testing.assert_close(layer(x, CONTEXT), expected, rtol=0, atol=1e-12)
    assert (expected == 0).any() and (expected > 0).any()


def test_each_step_is_the_equation_from_a_state_of_zeros() -> None:
    layer, x = recurrence(), torch.randn(B, T, D, dtype=torch.float64)
    state = layer.start(x)
    for t in range(T):
        state = layer.step(x[:, t : t + 1], state)
        torch.testing.assert_close(state.relu(), layer(x, CONTEXT)[:, t : t + 1])


def test_its_gradients_are_the_slopes_in_float64() -> None:
    layer = recurrence()
    x = torch.randn(B, T, D, dtype=torch.float64, requires_grad=True)
    weights = list(layer.parameters())
    assert torch.autograd.gradcheck(lambda x, *_: layer(x, CONTEXT), (x, *weights))


def test_a_state_in_bfloat16_is_kept_in_float32() -> None:
    """In bfloat16, 1 - 0.999 would be 0, and the state would never change."""
    layer = recurrence(torch.bfloat16)
    with torch.no_grad():
        layer.forget.weight.zero_()
        layer.forget.bias.fill_(7.0)  # sigmoid: 0.99909
        layer.candidate.weight.copy_(torch.eye(D))
    x = torch.ones(1, 400, D, dtype=torch.bfloat16)
    result = layer(x, CONTEXT)
    assert result.dtype == torch.bfloat16 and layer.start(x).dtype == torch.float32
    assert abs(result[0, -1, 0].item() - (1 - 0.99909**400)) < 0.01
