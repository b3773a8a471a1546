"""Steps that are replayed find what steps find; on a CPU a tape stands in for the GPU's graphs."""

import copy
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.inference import cuda_graphs as replayed
from nmt.inference.cuda_graphs import CudaGraphDecoder
from nmt.inference.prepare import use_cuda_graphs
from nmt.machine.cuda_recorder import CudaRecorder, Program
from nmt.model.attention import AttentionRecord
from nmt.model.transformer import Transformer
from nmt.recipe.config import DecodingConfig
from nmt.search.beam_search import beam_search
from nmt.search.ensemble import Ensemble
from nmt.search.hypothesis import Hypothesis
from nmt.search.sampling import greedy_search
from tests.inference.small_models import sentences, small_transformer
from tests.search.plain_search import assert_same
from tests.tape_recorder import TapeRecorder

BOS = 2


@pytest.fixture(params=[{"norm": "post"}, {"norm": "pre", "positions": "rotary"}], ids=str)
def model(request: pytest.FixtureRequest) -> Transformer:
    return small_transformer(**request.param)


@pytest.fixture
def recorder() -> TapeRecorder:
    return TapeRecorder()


@pytest.fixture
def replaying(model: Transformer, recorder: TapeRecorder) -> Transformer:
    """The same model, its steps replayed."""
    same = copy.deepcopy(model)
    use_cuda_graphs(same, recorder)
    return same


def batches() -> list[Tensor]:
    """Of one sentence and of many, growing and shrinking, longer than one room, with padding."""
    found = [sentences(*size) for size in [(1, 6), (9, 7), (5, 70), (33, 4), (3, 6), (9, 7)]]
    found[1][::2, 4:] = 0
    return found


def search(
    model: Any, source: Tensor, settings: DecodingConfig, n_best: int = 1
) -> list[Hypothesis]:
    """The hypotheses of all sentences, one sentence after the other."""
    if settings.beam_size == 1:
        return greedy_search(model, source, settings)
    return [h for found in beam_search(model, source, settings, n_best) for h in found]


@pytest.mark.parametrize("beam_size", [1, 4, 20])
def test_what_is_replayed_searches_as_what_is_not(
    model: Transformer, replaying: Transformer, recorder: TapeRecorder, beam_size: int
) -> None:
    settings = DecodingConfig(beam_size=beam_size, max_length_offset=30, length_penalty=1.0)
    for batch in batches():
        expected = search(model, batch, settings, n_best=2)
        assert_same(search(replaying, batch, settings, n_best=2), expected)
    assert recorder.replayed > 3 * recorder.recorded > 0


def test_a_shape_is_recorded_when_it_comes_again_and_then_no_more(
    replaying: Transformer, recorder: TapeRecorder
) -> None:
    settings = DecodingConfig(beam_size=1, min_length=9, max_length_offset=4)
    search(replaying, sentences(1), settings)
    assert (recorder.recorded, recorder.replayed) == (1, 9)
    search(replaying, sentences(1, 7), settings)
    assert recorder.recorded == 1
    # more rows need more memory, and what was recorded for the old addresses is dropped
    search(replaying, sentences(40), settings)
    search(replaying, sentences(1), settings)
    assert recorder.recorded == 3
    search(replaying, sentences(40), settings)
    assert recorder.recorded == 3


def test_few_graphs_are_kept(
    model: Transformer, replaying: Transformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replayed, "MAX_SHAPES", 2)
    settings = DecodingConfig(beam_size=2, max_length_offset=20)
    for batch in batches():
        found = search(replaying, batch, settings)
        assert_same(found, search(model, batch, settings))
    decoder = replaying.decoder
    assert isinstance(decoder, CudaGraphDecoder)
    assert len(decoder._programs) <= 2


def test_only_one_of_two_searches_at_the_same_time_is_replayed(
    model: Transformer, replaying: Transformer, recorder: TapeRecorder
) -> None:
    sources = [sentences(3), sentences(3, 8)]
    latest = torch.full((3, 1), BOS)

    def steps(transformer: Transformer) -> list[Tensor]:
        with torch.inference_mode():
            caches = [transformer.start(transformer.encode(x), x) for x in sources]
            return [transformer.step(latest, cache).clone() for _ in range(5) for cache in caches]

    for searches in (1, 2):  # the second time the first cache is gone
        torch.testing.assert_close(steps(replaying), steps(model))
        assert (recorder.recorded, recorder.replayed) == (1, 5 * searches - 1)


def test_searches_in_several_threads_do_not_disturb_each_other(
    model: Transformer, replaying: Transformer
) -> None:
    settings = DecodingConfig(beam_size=3, max_length_offset=10)
    sources = [sentences(3, length) for length in (5, 6, 7, 8)]
    expected = [search(model, source, settings) for source in sources]

    def repeated(source: Tensor) -> list[Hypothesis]:
        return [search(replaying, source, settings) for _ in range(3)][-1]

    with ThreadPoolExecutor(4) as threads:
        for found, rows in zip(threads.map(repeated, sources), expected, strict=True):
            assert_same(found, rows)


def test_memory_that_runs_out_while_recording_is_told(model: Transformer) -> None:
    def failing(program: Program) -> Program:
        raise torch.OutOfMemoryError("CUDA out of memory")

    use_cuda_graphs(model, failing)
    with pytest.raises(torch.OutOfMemoryError):
        search(model, sentences(3), DecodingConfig(max_length_offset=8))


def test_attention_is_recorded_as_without(model: Transformer, replaying: Transformer) -> None:
    source, latest = sentences(3), torch.full((3, 1), BOS)

    def steps(transformer: Transformer) -> list[Tensor]:
        seen: list[Tensor] = []
        with torch.no_grad():
            cache = transformer.start(transformer.encode(source), source)
            for _ in range(4):
                record = AttentionRecord()
                transformer.step(latest, cache)
                transformer.step(latest, cache, record)
                seen += [weights.clone() for weights in record.cross]
        return seen

    torch.testing.assert_close(steps(replaying), steps(model))


def test_every_member_of_an_ensemble_is_replayed(
    model: Transformer, replaying: Transformer, recorder: TapeRecorder
) -> None:
    other = small_transformer(seed=2)
    settings = DecodingConfig(beam_size=3, max_length_offset=10)
    expected = search(Ensemble([model, other]), sentences(5), settings)
    ensemble = Ensemble([replaying, other])
    use_cuda_graphs(ensemble, recorder)
    assert_same(search(ensemble, sentences(5), settings), expected)
    assert recorder.replayed > 10


def test_where_nothing_can_be_recorded_it_goes_on_after_one_warning(model: Transformer) -> None:
    tried = []

    def failing(program: Program) -> Program:
        tried.append(program)
        raise RuntimeError("CUDA error: operation not permitted\nand much more")

    settings = DecodingConfig(beam_size=3, max_length_offset=10)
    expected = [search(model, batch, settings) for batch in batches()]
    use_cuda_graphs(model, failing)
    with pytest.warns(UserWarning, match="graphs, slower: CUDA error: operation not permitted$"):
        found = [search(model, batch, settings) for batch in batches()]
    for one, two in zip(found, expected, strict=True):
        assert_same(one, two)
    assert len(tried) == 1


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_replays_its_steps(model: Transformer) -> None:
    model = model.cuda()
    settings = DecodingConfig(beam_size=4, max_length_offset=30, length_penalty=1.0)
    sources = [batch.cuda() for batch in batches()]
    expected = [search(model, source, settings) for source in sources]
    counted = []
    record: Callable[[Program], Program] = CudaRecorder(torch.device("cuda"))

    def counting(program: Program) -> Program:
        counted.append(program)
        return record(program)

    use_cuda_graphs(model, counting)
    for source, found in zip(sources, expected, strict=True):
        assert_same(search(model, source, settings), found)
    assert counted
