"""A model prepared for inference computes the same function; its original does not change."""

import weakref
from typing import get_args

import pytest
import torch
from torch import Tensor

from nmt.inference import prepare as module
from nmt.inference.prepare import (
    PrepackedLinear,
    can_prepack,
    prepare_for_inference,
    restrict_vocabulary,
)
from nmt.recipe.config import Activation, Embeddings, Norm
from tests.inference.small_models import sentences, small_transformer

IDS = torch.tensor([0, 1, 2, 3, 7, 11, 12, 30, 49])


def inputs() -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(3)
    source, target = (torch.randint(1, 50, (3, n), generator=random) for n in (7, 5))
    source[1, 4:] = 0
    return source, target


@pytest.mark.parametrize("precision, tolerance", [("fp32", 1e-6), ("bf16", 0.02)])
@pytest.mark.parametrize("activation", get_args(Activation))
@pytest.mark.parametrize("norm", get_args(Norm))
@pytest.mark.parametrize("embeddings", get_args(Embeddings))
def test_a_prepared_model_computes_the_same_logits(
    embeddings: str, norm: str, activation: str, precision: str, tolerance: float
) -> None:
    model = small_transformer(embeddings=embeddings, norm=norm, activation=activation)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    expected = model(*inputs())
    difference = prepare_for_inference(model, precision)(*inputs()) - expected
    assert difference.norm() < tolerance * expected.norm()
    after = model.state_dict()
    assert all(torch.equal(after[name], weight) for name, weight in before.items())


def test_another_activation_stays_as_it_is() -> None:
    model = small_transformer()
    model.decoder.layers[1].feed_forward.activation = torch.tanh
    torch.testing.assert_close(prepare_for_inference(model, "fp32")(*inputs()), model(*inputs()))


@pytest.mark.skipif(not can_prepack(torch.float32), reason="this PyTorch cannot pack matrices")
def test_every_matrix_of_a_prepared_model_is_prepacked() -> None:
    ready = prepare_for_inference(small_transformer(), "fp32")
    assert not [m for m in ready.modules() if isinstance(m, torch.nn.Linear)]
    products = 2 * 6 + 2 * 10 + 1
    assert sum(isinstance(m, PrepackedLinear) for m in ready.modules()) == products


def test_without_the_operators_a_model_is_copied_plainly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "can_prepack", lambda dtype: False)
    model = small_transformer()
    ready = prepare_for_inference(model, "fp32")
    assert ready is not model
    torch.testing.assert_close(ready(*inputs()), model(*inputs()))


def test_a_matrix_is_freed_before_the_next_is_prepacked(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[weakref.ref[Tensor]] = []
    alive: list[int] = []

    class Packing(torch.nn.Module):
        def __init__(self, weight: Tensor, bias: Tensor | None, relu: bool = False) -> None:
            super().__init__()
            alive.append(sum(matrix() is not None for matrix in seen))
            seen.append(weakref.ref(weight))

    monkeypatch.setattr(module, "can_prepack", lambda dtype: True)
    monkeypatch.setattr(module, "PrepackedLinear", Packing)
    prepare_for_inference(small_transformer(), "fp32")
    assert len(seen) == 2 * 6 + 2 * 10 + 1
    assert max(alive) <= 4  # those of one attention


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_what_was_one_matrix_stays_one_in_the_copy(precision: str) -> None:
    model = small_transformer()
    ready = prepare_for_inference(model, precision)
    assert ready.source_embedding.weight is ready.target_embedding.weight
    assert ready.target_embedding.weight is not model.target_embedding.weight
    expected = torch.bfloat16 if precision == "bf16" else torch.float32
    assert {x.dtype for x in (*ready.parameters(), *ready.buffers())} == {expected}
    assert not any(weight.requires_grad for weight in ready.parameters())
    assert all(weight.requires_grad for weight in model.parameters())


@pytest.mark.parametrize("embeddings", get_args(Embeddings))
@pytest.mark.parametrize("precision", [None, "fp32", "bf16"])
def test_logits_are_those_of_the_whole_vocabulary(embeddings: str, precision: str | None) -> None:
    model = small_transformer(embeddings=embeddings)
    if precision:
        model = prepare_for_inference(model, precision)
    narrow = restrict_vocabulary(model, IDS)
    source, places = sentences(3), torch.tensor([[2], [5], [8]])
    with torch.inference_mode():
        caches = [each.start(each.encode(source), source) for each in (model, narrow)]
        whole = model.step(IDS[places], caches[0])
        part = narrow.step(places, caches[1])
    tolerance = 0.05 if precision == "bf16" else 1e-4
    torch.testing.assert_close(part, whole[:, :, IDS], atol=tolerance, rtol=tolerance)
