"""A traced step computes what the step does, for any number of sentences and hypotheses."""

import pytest
import torch
from torch import Tensor

from nmt.config import DecodingConfig, ModelConfig
from nmt.inference import int8
from nmt.inference.int8 import FEW_ROWS, Int8Linear, TracedDecoder
from nmt.inference.prepare import is_supported, prepare_for_inference
from nmt.model.attention import AttentionRecord
from nmt.model.transformer import Transformer
from nmt.search.beam_search import beam_search
from nmt.search.sampling import greedy_search

CONFIG = ModelConfig(d_model=32, heads=4, d_ff=48, encoder_layers=2, decoder_layers=2)
BOS = 2


@pytest.fixture(params=["post", "pre"])
def model(request: pytest.FixtureRequest) -> Transformer:
    if not is_supported(Int8Linear, torch.float32):
        pytest.skip("this PyTorch multiplies no 8-bit integers")
    torch.manual_seed(1)
    config = CONFIG.model_copy(update={"norm": request.param})
    return prepare_for_inference(Transformer(config, 50, 50), "int8")


def sentences(count: int, length: int = 6) -> Tensor:
    random = torch.Generator().manual_seed(count)
    return torch.randint(4, 50, (count, length), generator=random)


def tracings(model: Transformer, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What is traced from now on; the first step of few hypotheses is."""
    made: list[object] = []
    trace = int8._traced

    def noting(step: torch.nn.Module, inputs: tuple[Tensor, ...]) -> object:
        made.append(trace(step, inputs))
        return made[-1]

    monkeypatch.setattr(int8, "_traced", noting)
    monkeypatch.setattr(int8, "TRACE_AFTER", 1)
    return made


def test_what_is_traced_searches_as_what_is_not(
    model: Transformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = DecodingConfig(beam_size=4, max_length_offset=4)
    batches = [sentences(1), sentences(1, 11), sentences(3), sentences(9), sentences(4)]
    batches[2][1, 4:] = model.padding

    def search() -> list[object]:
        return [
            (
                beam_search(model, batch, settings),
                greedy_search(model, batch, settings),
            )
            for batch in batches
        ]

    monkeypatch.setattr(int8, "TRACE_AFTER", 1_000_000)
    expected = search()
    made = tracings(model, monkeypatch)
    decoder = model.decoder
    assert isinstance(decoder, TracedDecoder)
    decoder._steps_of_few = 0
    assert search() == expected
    assert [type(program).__name__ for program in made] == ["ScriptMethod"]


def test_it_is_traced_once_it_is_worth_it(
    model: Transformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tracings(model, monkeypatch)
    monkeypatch.setattr(int8, "TRACE_AFTER", 20)
    settings = DecodingConfig(beam_size=1, min_length=9, max_length_offset=4)
    beam_search(model, sentences(1), settings)
    assert not made
    beam_search(model, sentences(FEW_ROWS + 1), settings)
    assert not made
    for _ in range(3):
        beam_search(model, sentences(1), settings)
    assert len(made) == 1


def test_attention_that_is_asked_for_is_collected_all_the_same(
    model: Transformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracings(model, monkeypatch)
    source = sentences(1)
    with torch.inference_mode():
        cache = model.start(model.encode(source), source)
        for _ in range(3):
            model.step(torch.tensor([[BOS]]), cache)
        seen = AttentionRecord()
        model.step(torch.tensor([[BOS]]), cache, seen)
    assert [weights.shape for weights in seen.cross] == [(1, 4, 1, 6)] * 2
    for weights in seen.cross:
        torch.testing.assert_close(weights.sum(-1), torch.ones(1, 4, 1))


def test_a_pytorch_that_cannot_trace_translates_all_the_same(
    model: Transformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = DecodingConfig(beam_size=4, max_length_offset=4)
    expected = beam_search(model, sentences(2), settings)
    made = tracings(model, monkeypatch)

    def gone(*arguments: object, **options: object) -> None:
        raise AttributeError("module 'torch.jit' has no attribute 'trace'")

    monkeypatch.setattr(torch.jit, "trace", gone)
    model.decoder._steps_of_few = 0  # type: ignore[assignment]
    assert beam_search(model, sentences(2), settings) == expected
    assert [type(program).__name__ for program in made] == ["method"]


def test_a_second_core_is_used_where_matrices_are_large(
    model: Transformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracings(model, monkeypatch)
    monkeypatch.setattr(int8, "ONE_CORE", CONFIG.d_model * CONFIG.d_ff)
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
    monkeypatch.setattr(int8, "ONE_CORE", CONFIG.d_model * 3 * CONFIG.d_model + 1)
    del decoder.is_small
    assert decoder.is_small
