"""A model prepared for inference computes the same function; its original does not change."""

import os
import subprocess
import sys
import weakref
from typing import Any, get_args

import pytest
import torch
from torch import Tensor

from nmt.config import Activation, DecodingConfig, ModelConfig
from nmt.errors import ConfigError, NonFiniteScoresError, UnknownModuleError
from nmt.inference import int8
from nmt.inference import prepare as module
from nmt.inference.int8 import Int8Linear
from nmt.inference.prepare import (
    LinearKind,
    PrepackedLinear,
    is_supported,
    prepare_for_inference,
    restrict_vocabulary,
)
from nmt.model.attention import AttentionRecord, MultiHeadAttention
from nmt.model.transformer import Transformer
from nmt.search.beam_search import beam_search
from nmt.search.ensemble import Ensemble

CONFIG = ModelConfig(d_model=32, heads=4, d_ff=48, encoder_layers=2, decoder_layers=2)
IDS = torch.tensor([0, 1, 2, 3, 7, 11, 12, 30, 49])


def inputs() -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(3)
    source, target = (torch.randint(1, 50, (3, n), generator=random) for n in (7, 5))
    source[1, 4:] = 0
    return source, target


@pytest.mark.parametrize("precision, tolerance", [("fp32", 1e-6), ("bf16", 0.02), ("int8", 0.04)])
@pytest.mark.parametrize("activation", get_args(Activation))
@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("embeddings", ["shared", "target", "separate"])
def test_a_prepared_model_computes_the_same_logits(
    embeddings: str, norm: str, activation: str, precision: str, tolerance: float
) -> None:
    torch.manual_seed(1)
    changes = {"embeddings": embeddings, "norm": norm, "activation": activation}
    model = Transformer(CONFIG.model_copy(update=changes), 50, 50).eval()
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    expected = model(*inputs())
    difference = prepare_for_inference(model, precision)(*inputs()) - expected
    assert difference.norm() < tolerance * expected.norm()
    after = model.state_dict()
    assert all(torch.equal(after[name], weight) for name, weight in before.items())


class OtherNorm(torch.nn.LayerNorm):
    """What an engineer might put in the place of a known module."""


class OtherAttention(MultiHeadAttention):
    """A subclass may compute something else with the same matrices."""


def test_an_unknown_module_is_named() -> None:
    model = Transformer(CONFIG, 50, 50)
    model.get_submodule("encoder.layers.1.feed_forward_sublayer").norm = OtherNorm(32)
    with pytest.raises(UnknownModuleError, match=r"encoder.layers.1.*unknown module OtherNorm"):
        prepare_for_inference(model, "fp32")
    model = Transformer(CONFIG, 50, 50)
    model.decoder.layers[0].cross_attention = OtherAttention(32, 4)
    ensemble: Any = Ensemble([Transformer(CONFIG, 50, 50), model])
    with pytest.raises(UnknownModuleError, match=r"cross_attention: unknown module OtherAttention"):
        prepare_for_inference(ensemble, "int8")


def test_an_unknown_activation_is_named() -> None:
    model = Transformer(CONFIG, 50, 50)
    model.decoder.layers[1].feed_forward.activation = torch.tanh
    with pytest.raises(UnknownModuleError, match=r"layers.1.feed_forward: .*activation.*tanh"):
        prepare_for_inference(model, "fp32")


@pytest.mark.parametrize("precision, kind", [("fp32", PrepackedLinear), ("int8", Int8Linear)])
def test_every_matrix_of_a_prepared_model_is_prepacked(precision: str, kind: LinearKind) -> None:
    if not is_supported(kind, torch.float32):
        pytest.skip("this PyTorch cannot pack matrices in this way")
    ready = prepare_for_inference(Transformer(CONFIG, 50, 50), precision)
    assert not [m for m in ready.modules() if isinstance(m, torch.nn.Linear)]
    products = 2 * 4 + 2 * 8 + 1 if kind is Int8Linear else 2 * 6 + 2 * 10 + 1
    assert sum(isinstance(m, kind) for m in ready.modules()) == products


def test_without_the_operators_a_model_is_copied_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "is_supported", lambda kind, dtype: False)
    model = Transformer(CONFIG, 50, 50).eval()
    ready = prepare_for_inference(model, "fp32")
    assert ready is not model
    torch.testing.assert_close(ready(*inputs()), model(*inputs()))


def test_int8_is_refused_where_it_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "is_supported", lambda kind, dtype: False)
    with pytest.raises(ConfigError, match="int8 was asked for.*this is cpu with.*use bf16"):
        prepare_for_inference(Transformer(CONFIG, 50, 50), "int8")


def test_weights_that_are_no_numbers_are_named_before_they_are_packed_as_integers() -> None:
    model = Transformer(CONFIG, 50, 50)
    model.state_dict()["encoder.layers.1.feed_forward.inner.weight"][3, 4] = float("nan")
    with pytest.raises(NonFiniteScoresError, match="not numbers .NaN.*--checkpoint"):
        prepare_for_inference(model, "int8")


def test_a_matrix_is_freed_before_the_next_is_prepacked(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[weakref.ref[Tensor]] = []
    alive: list[int] = []

    class Packing(torch.nn.Module):
        def __init__(self, weight: Tensor, bias: Tensor | None, relu: bool = False) -> None:
            super().__init__()
            alive.append(sum(matrix() is not None for matrix in seen))
            seen.append(weakref.ref(weight))

    monkeypatch.setattr(module, "is_supported", lambda kind, dtype: True)
    monkeypatch.setattr(module, "PrepackedLinear", Packing)
    prepare_for_inference(Transformer(CONFIG, 50, 50), "fp32")
    assert len(seen) == 2 * 6 + 2 * 10 + 1
    assert max(alive) <= 4  # those of one attention


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_what_was_one_matrix_stays_one_in_the_copy(precision: str) -> None:
    model = Transformer(CONFIG, 50, 50).eval()
    ready = prepare_for_inference(model, precision)
    assert ready.source_embedding.weight is ready.target_embedding.weight
    assert ready.target_embedding.weight is not model.target_embedding.weight
    expected = torch.bfloat16 if precision == "bf16" else torch.float32
    assert {x.dtype for x in (*ready.parameters(), *ready.buffers())} == {expected}
    assert not any(weight.requires_grad for weight in ready.parameters())
    assert all(weight.requires_grad for weight in model.parameters())


@pytest.mark.parametrize("features", [{"avx2"}, {"avx512_vnni"}, {"amx_int8"}])
@pytest.mark.parametrize("rows", [2, 40])
def test_integers_are_multiplied_by_what_suits_the_processor_and_the_rows(
    monkeypatch: pytest.MonkeyPatch, features: set[str], rows: int
) -> None:
    monkeypatch.setattr(int8, "processor_features", lambda: features)
    if not is_supported(Int8Linear, torch.float32):
        pytest.skip("this PyTorch multiplies no 8-bit integers")
    x, weight = torch.ones(rows, 64), torch.full((32, 64), 0.5)
    product = Int8Linear(weight, None)
    torch.testing.assert_close(product(x), x @ weight.T, rtol=0.01, atol=0.0)
    torch.testing.assert_close(Int8Linear(weight, None, relu=True)(x), product(x))
    assert not Int8Linear(-weight, None, relu=True)(x).any()
    assert (product.for_many is product.for_few) == (features == {"avx2"})


@pytest.mark.parametrize("features, kept", [({"avx2"}, "float32"), ({"avx512_bf16"}, "bfloat16")])
def test_many_sentences_are_remembered_in_what_the_processor_computes_with(
    monkeypatch: pytest.MonkeyPatch, features: set[str], kept: str
) -> None:
    monkeypatch.setattr(int8, "processor_features", lambda: features)
    monkeypatch.setattr(int8, "TRACE_AFTER", 1)
    if not is_supported(Int8Linear, torch.float32):
        pytest.skip("this PyTorch multiplies no 8-bit integers")
    torch.manual_seed(1)
    model = Transformer(CONFIG, 50, 50).eval()
    source, target = torch.randint(1, 50, (6, 7)), torch.randint(1, 50, (6, 5))
    ready, expected = prepare_for_inference(model, "int8"), model(source, target)
    cache = ready.start(ready.encode(source), source)
    assert cache.layers[0].key.dtype == getattr(torch, kept)
    sentences = [0, 1, 2, 3, 4, 5]
    for t in range(5):
        seen = AttentionRecord()
        logits = ready.step(target[sentences, t : t + 1], cache, seen if t == 1 else None)[:, 0]
        assert all(weights.shape[:3] == (6, 4, 1) for weights in seen.cross)
        right = expected[sentences, t]
        assert (logits - right).norm() < 0.06 * right.norm()
        if t == 2:  # few enough for a step to be traced
            sentences = sentences[:2]
            cache.keep_sentences(torch.tensor(sentences))
    few = source[: int8.FEW_SENTENCES]
    assert ready.start(ready.encode(few), few).layers[0].key.dtype == torch.float32


PRODUCT = """
import torch
from nmt.inference.int8 import Int8Linear
from nmt.inference.prepare import is_supported
if is_supported(Int8Linear, torch.float32):
    draw = torch.Generator().manual_seed(1)
    few, many, weight = (torch.rand(n, 64, generator=draw) + 0.5 for n in (9, 40, 32))
    for x in (few, many):
        expected = x @ weight.T
        print(float((Int8Linear(weight, None)(x) - expected).norm() / expected.norm()))
"""


@pytest.mark.parametrize("instructions", ["AVX2", "DEFAULT"])
def test_products_of_8_bits_do_not_overflow_on_any_processor(instructions: str) -> None:
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": instructions}
    command = [sys.executable, "-c", PRODUCT]
    output = subprocess.run(command, env=environment, capture_output=True, check=True).stdout
    if not output:
        pytest.skip("this PyTorch multiplies no 8-bit integers")
    assert all(float(line) < 0.002 for line in output.split())


@pytest.mark.parametrize("embeddings", ["shared", "target", "separate"])
@pytest.mark.parametrize("precision", [None, "fp32", "bf16", "int8"])
def test_logits_are_those_of_the_whole_vocabulary(embeddings: str, precision: str | None) -> None:
    if precision == "int8" and not is_supported(Int8Linear, torch.float32):
        pytest.skip("this PyTorch multiplies no 8-bit integers")
    torch.manual_seed(1)
    model = Transformer(CONFIG.model_copy(update={"embeddings": embeddings}), 50, 50).eval()
    if precision:
        model = prepare_for_inference(model, precision)
    narrow = restrict_vocabulary(model, IDS)
    source, places = torch.randint(4, 50, (3, 6)), torch.tensor([[2], [5], [8]])
    with torch.inference_mode():
        caches = [each.start(each.encode(source), source) for each in (model, narrow)]
        whole = model.step(IDS[places], caches[0])
        part = narrow.step(places, caches[1])
    tolerance = 0.05 if precision == "bf16" else 1e-4
    torch.testing.assert_close(part, whole[:, :, IDS], atol=tolerance, rtol=tolerance)


def test_a_search_with_shortlist_finds_the_same_where_nothing_that_it_needs_is_left_out() -> None:
    torch.manual_seed(2)
    model, settings = Transformer(CONFIG, 50, 50).eval(), DecodingConfig(max_length_offset=8)
    source = torch.randint(4, 50, (5, 6))
    expected = beam_search(model, source, settings)
    needed = {token for (best,) in expected for token in best.tokens}
    ids = torch.tensor(sorted({0, 1, 2, 3, *needed, *range(20, 50)}))
    found = beam_search(restrict_vocabulary(model, ids), source, settings)
    same = sum(
        ids[list(one.tokens)].tolist() == list(two.tokens)
        for (one,), (two,) in zip(found, expected, strict=True)
    )
    assert same >= 3  # log P is among fewer tokens, which the penalty may weigh otherwise
