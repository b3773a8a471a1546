"""Products of 8-bit integers are nearly exact, and a traced step computes what the step does."""

import os
import subprocess
import sys

import pytest
import torch
from torch import Tensor

from nmt.inference import int8
from nmt.inference.int8 import FEW_ROWS, Int8Linear, TracedDecoder
from nmt.inference.prepare import prepare_for_inference
from nmt.model.attention import AttentionRecord
from nmt.model.transformer import Transformer
from nmt.recipe.config import DecodingConfig
from nmt.search.beam_search import beam_search
from nmt.search.sampling import greedy_search
from tests.inference.small_models import CONFIG, needs_int8, sentences, small_transformer

pytestmark = needs_int8


@pytest.mark.parametrize("features", [{"avx2"}, {"avx512_vnni"}, {"amx_int8"}])
@pytest.mark.parametrize("rows", [2, 40])
def test_integers_are_multiplied_by_what_suits_the_processor_and_the_rows(
    monkeypatch: pytest.MonkeyPatch, features: set[str], rows: int
) -> None:
    monkeypatch.setattr(int8, "processor_features", lambda: features)
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
    model, source, target = small_transformer(), sentences(6, 7), sentences(6, 5)
    ready, expected = prepare_for_inference(model, "int8"), model(source, target)
    cache = ready.start(ready.encode(source), source)
    assert cache.layers[0].key.dtype == getattr(torch, kept)
    rows = [0, 1, 2, 3, 4, 5]
    for t in range(5):
        seen = AttentionRecord() if t in (1, 4) else None  # before a step is traced, and after
        logits = ready.step(target[rows, t : t + 1], cache, seen)[:, 0]
        for weights in seen.cross if seen else []:
            assert weights.shape == (len(rows), 4, 1, 7)
            assert (weights.float().sum(-1) - 1).abs().max() < 0.01
        right = expected[rows, t]
        assert (logits - right).norm() < 0.06 * right.norm()
        if t == 2:  # few enough for a step to be traced
            rows = rows[:2]
            cache.keep_sentences(torch.tensor(rows))
    few = source[: int8.FEW_SENTENCES]
    assert ready.start(ready.encode(few), few).layers[0].key.dtype == torch.float32


PRODUCT = """
import torch
from nmt.inference.int8 import Int8Linear
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
    assert len(output.split()) == 2 and all(float(line) < 0.002 for line in output.split())


@pytest.fixture(params=["post", "pre"])
def model(request: pytest.FixtureRequest) -> Transformer:
    return prepare_for_inference(small_transformer(norm=request.param), "int8")


@pytest.fixture
def tracings(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What has been traced; the first step of few hypotheses is."""
    made: list[object] = []
    trace = int8._trace

    def noting(step: torch.nn.Module, inputs: tuple[Tensor, ...]) -> object:
        made.append(trace(step, inputs))
        return made[-1]

    monkeypatch.setattr(int8, "_trace", noting)
    monkeypatch.setattr(int8, "TRACE_AFTER", 1)
    return made


@pytest.mark.parametrize("can_trace", [True, False])
def test_what_is_traced_or_cannot_be_searches_as_what_is_not(
    model: Transformer, tracings: list[object], can_trace: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = DecodingConfig(beam_size=4, max_length_offset=4)
    batches = [sentences(1), sentences(1, 11), sentences(3), sentences(9), sentences(4)]
    batches[2][1, 4:] = model.padding

    def search() -> list[object]:
        both = (beam_search, greedy_search)
        return [function(model, batch, settings) for batch in batches for function in both]

    monkeypatch.setattr(int8, "TRACE_AFTER", 1_000_000)
    expected = search()
    monkeypatch.setattr(int8, "TRACE_AFTER", 1)
    if not can_trace:
        monkeypatch.delattr(torch.jit, "trace")
    assert search() == expected
    assert [type(one).__name__ for one in tracings] == ["ScriptMethod" if can_trace else "method"]


def test_it_is_traced_once_it_is_worth_it(
    model: Transformer, tracings: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(int8, "TRACE_AFTER", 20)
    settings = DecodingConfig(beam_size=1, min_length=9, max_length_offset=4)
    for rows in (1, FEW_ROWS + 1):
        beam_search(model, sentences(rows), settings)
        assert not tracings
    for _ in range(3):
        beam_search(model, sentences(1), settings)
    assert len(tracings) == 1


@pytest.mark.usefixtures("tracings")
def test_a_second_core_is_used_where_matrices_are_large(
    model: Transformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(int8, "ONE_CORE_BYTES", CONFIG.d_model * CONFIG.d_ff)
    threads: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", threads.append)
    decoder = model.decoder
    assert isinstance(decoder, TracedDecoder) and not decoder.is_small
    before = torch.get_num_threads()
    with torch.inference_mode():
        cache = model.start(torch.zeros(1, 2, 32), torch.ones(1, 2).long())
        threads.clear()
        decoder.step(torch.zeros(1, 1, 32), cache)
    assert set(threads) == {before}
    monkeypatch.setattr(int8, "ONE_CORE_BYTES", CONFIG.d_model * 3 * CONFIG.d_model + 1)
    del decoder.is_small
    assert decoder.is_small
