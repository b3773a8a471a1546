"""The C library finds what `beam_search` finds, with the same scores, and fails in the same way."""

import copy
import os
import statistics
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt.data.tokens.batch import collate_source
from nmt.data.tokens.tokenizer import BOS, EOS, PAD
from nmt.errors import NonFiniteScoresError
from nmt.inference.native.library import SOURCE, native_library
from nmt.inference.native.weights import ACTIVATIONS, POSITIONS, SETTINGS
from nmt.inference.prepare import restrict_vocabulary
from nmt.machine import compilation
from nmt.machine.levels import LEVELS, Level
from nmt.machine.processor import processor_features
from nmt.model.transformer import Transformer
from nmt.recipe.config import (
    Activation,
    DecodingConfig,
    Embeddings,
    ModelConfig,
    Norm,
    Positions,
)
from nmt.run.model import LoadedModel
from nmt.search import native_search
from nmt.search.beam_search import beam_search
from nmt.search.hypothesis import Hypothesis
from nmt.search.native_search import NativeSearch, why_pytorch_searches
from nmt.search.sampling import greedy_search
from tests import emulated_arm
from tests.emulated_arm import needs_emulator
from tests.search.plain_search import assert_same

VOCABULARY = 90
needs_library = pytest.mark.skipif(
    native_library() is None, reason="needs a C compiler, and AVX2 or 64-bit ARM"
)
PLAIN = DecodingConfig(beam_size=4, max_length_offset=8)


def random_run(seed: int = 1, vocabulary: int = VOCABULARY, **changes: Any) -> LoadedModel:
    """Random weights, large enough that sentences end at different steps."""
    torch.manual_seed(seed)
    sizes = ModelConfig(
        d_model=64, heads=4, d_ff=128, encoder_layers=2, decoder_layers=2, embeddings="separate"
    ).model_copy(update=changes)
    model = Transformer(sizes, vocabulary, vocabulary, PAD, BOS).eval()
    for name, weight in model.named_parameters():
        if weight.dim() == 1:  # biases and norms too must have an effect
            nn.init.normal_(weight, mean=float("norm.weight" in name), std=0.1)
    nn.init.normal_(model.output_embedding.weight, std=0.25)
    config: Any = SimpleNamespace(model=sizes)
    return LoadedModel(config, None, model, Path())  # type: ignore[arg-type]


def sentences(count: int = 12, longest: int = 11, vocabulary: int = VOCABULARY) -> list[list[int]]:
    random = torch.Generator().manual_seed(count)
    lengths = [i % longest for i in range(count)]
    rows = [torch.randint(EOS + 1, vocabulary, (n,), generator=random).tolist() for n in lengths]
    return [[*row, EOS] for row in rows]


def native(loaded: LoadedModel, precision: str = "fp32") -> NativeSearch:
    search = NativeSearch.build(loaded, precision)
    assert search is not None
    return search


def translated(
    search: NativeSearch, rows: list[list[int]], settings: DecodingConfig, n_best: int
) -> list[list[Hypothesis]]:
    return search.search(search.encode(rows), settings, n_best)


def assert_same_results(
    found: list[list[Hypothesis]], expected: list[list[Hypothesis]], tolerance: float = 1e-4
) -> None:
    for of_sentence, expected_of_it in zip(found, expected, strict=True):
        assert_same(of_sentence, expected_of_it, tolerance)


@needs_library
@pytest.mark.parametrize("beam_size", [1, 2, 4, 32])
@pytest.mark.parametrize(
    "others",
    [
        {},
        {"early_stopping": True},
        {"length_normalization": "average", "min_length": 3},
        {"length_normalization": "none", "allow_unknown": True, "max_length_factor": 1.5},
        {"no_repeat_ngram": 1},
        {"no_repeat_ngram": 2, "max_length_factor": 3.0},
        {"length_penalty": 10.0, "min_length": 1_000_000, "no_repeat_ngram": 1_000_000},
    ],
    ids=["plain", "early", "average", "none", "no token twice", "no bigram twice", "largest"],
)
def test_it_finds_what_beam_search_finds(beam_size: int, others: dict[str, Any]) -> None:
    loaded, rows = random_run(), sentences()
    settings = PLAIN.model_copy(update={"beam_size": beam_size, **others})
    n_best = min(beam_size, 5)
    found = translated(native(loaded), rows, settings, n_best)
    assert len({len(best.tokens) for best, *_ in found}) > 3
    expected = beam_search(loaded.model, collate_source(rows), settings, n_best)
    assert_same_results(found, expected)
    if beam_size == 1:
        greedy = greedy_search(loaded.model, collate_source(rows), settings)
        assert_same_results(found, [[best] for best in greedy])


@needs_library
@pytest.mark.parametrize(
    "changes",
    [
        *({"activation": activation} for activation in ACTIVATIONS),
        *({"norm": norm} for norm in get_args(Norm)),
        *({"embeddings": embeddings} for embeddings in get_args(Embeddings)),
        *({"positions": positions} for positions in POSITIONS),
        {"norm_kind": "rms"},
        {"norm_kind": "rms", "norm": "pre", "feed_forward": "gated", "activation": "swish"},
        {"positions": "rotary", "decoder_layers": 3, "norm": "pre"},
        {"decoder": "ssru"},
        {"decoder": "ssru", "norm": "pre", "decoder_layers": 3, "start_embedding": "zero"},
        {"activation": "gelu", "output_bias": True},
        {"activation": "swish", "positions": "sines_first", "start_embedding": "zero"},
        {"embeddings": "shared", "encoder_layers": 3, "decoder_layers": 1, "heads": 1},
        {"positions": "tensor2tensor", "layer_norm_epsilon": 1e-3, "d_ff": 192},
    ],
    ids=str,
)
def test_it_computes_every_kind_of_transformer(changes: dict[str, Any]) -> None:
    loaded, rows = random_run(**changes), sentences()
    expected = beam_search(loaded.model, collate_source(rows), PLAIN, n_best=2)
    assert_same_results(translated(native(loaded), rows, PLAIN, n_best=2), expected)


@needs_library
@pytest.mark.parametrize("length", [1, 2, 7, 1024])
def test_a_sentence_may_have_any_length(length: int) -> None:
    loaded = random_run()
    row = [5 + i % 80 for i in range(length - 1)] + [EOS]
    search = native(loaded)
    expected = beam_search(loaded.model, torch.tensor([row]), PLAIN)
    assert_same_results(translated(search, [row], PLAIN, 1), expected)
    short = [8, 9, EOS]
    alone = translated(search, [short], PLAIN, 1)
    assert_same_results(translated(search, [row, short], PLAIN, 1)[1:], alone)


@needs_library
@pytest.mark.parametrize("vocabulary", [6, 63, 64, 65, 129])
def test_a_vocabulary_may_have_any_size_and_a_beam_may_be_wider_than_it(vocabulary: int) -> None:
    loaded, rows = random_run(vocabulary=vocabulary), sentences(6, 5, vocabulary)
    settings = PLAIN.model_copy(update={"beam_size": 8, "max_length_offset": 2})
    expected = beam_search(loaded.model, collate_source(rows), settings, n_best=8)
    assert_same_results(translated(native(loaded), rows, settings, n_best=8), expected)


class _Rounded(nn.Module):
    """What products in 8 bits compute: both factors are rounded, each row with its own scale."""

    def __init__(self, linear: Any, most: int) -> None:
        super().__init__()
        self.weight, self.bias = rounded(linear.weight.detach(), 127), linear.bias
        self.most = most

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(rounded(x, self.most), self.weight, self.bias)

    logits = forward


def rounded(x: Tensor, most: int) -> Tensor:
    scale = x.abs().amax(-1, keepdim=True) / most
    return (x / scale).round() * scale


def assert_rounds_both_factors(loaded: LoadedModel, most: int) -> None:
    """An int8 search gives the scores of a float32 model whose products have rounded factors."""
    rows = sentences()
    rounding = copy.deepcopy(loaded.model)
    for module in list(rounding.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.Linear):
                module.add_module(name, _Rounded(child, most))
    rounding.add_module("output_embedding", _Rounded(loaded.model.output_embedding, most))
    expected = beam_search(rounding, collate_source(rows), PLAIN)
    found = translated(native(loaded, "int8"), rows, PLAIN, 1)
    pairs = [(a[0], b[0]) for a, b in zip(found, expected, strict=True)]
    differences = [abs(a.score - b.score) for a, b in pairs if a.tokens == b.tokens]
    # A sum in another order may round another way; so a few sentences differ, but not most.
    assert len(differences) >= len(rows) - 3
    assert statistics.median(differences) < 1e-4


@needs_library
def test_int8_rounds_both_factors_of_each_product_and_nothing_else() -> None:
    has_8_bits = bool(processor_features() & {"avx512_vnni", "avx_vnni", "asimd"})
    assert_rounds_both_factors(random_run(), most=127 if has_8_bits else 63)


@needs_library
def test_an_int8_translation_does_not_depend_on_its_batch() -> None:
    search, rows = native(random_run(), "int8"), sentences()
    together = translated(search, rows, PLAIN, 2)
    assert together == [translated(search, [row], PLAIN, 2)[0] for row in rows]


@needs_library
@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_a_search_can_be_restricted_to_a_part_of_the_vocabulary(precision: str) -> None:
    loaded, rows = random_run(), sentences()
    ids = np.array([0, 1, 2, 3, *range(10, VOCABULARY, 3)])
    narrow = restrict_vocabulary(loaded.model, torch.from_numpy(ids))
    found = translated(native(loaded, precision).restrict_vocabulary(ids), rows, PLAIN, 2)
    expected = beam_search(narrow, collate_source(rows), PLAIN, 2)
    if precision == "fp32":
        assert_same_results(found, expected)
    tokens = [token for best, *_ in found for token in best.tokens]
    assert tokens and max(tokens) < len(ids)


@needs_library
@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize(
    "name",
    [
        "output_embedding.weight",
        "decoder.layers.1.feed_forward.inner.weight",
        "decoder.layers.1.feed_forward.inner.bias",  # its NaN reaches a product as an activation
    ],
)
def test_weights_that_are_no_numbers_are_an_error(precision: str, name: str) -> None:
    loaded = random_run()
    parameter = loaded.model.get_parameter(name).data
    parameter[(7, 3)[: parameter.dim()]] = float("nan")
    with pytest.raises(NonFiniteScoresError):
        translated(native(loaded, precision), sentences(), PLAIN, 1)


@needs_library
@needs_library
@pytest.mark.parametrize(
    ("setting", "value"),
    [
        *(("activation", each) for each in get_args(Activation)),
        *(("positions", each) for each in get_args(Positions)),
    ],
)
def test_it_knows_a_function_or_pytorch_searches(setting: str, value: str) -> None:
    is_known = value in {"activation": ACTIVATIONS, "positions": POSITIONS}[setting]
    changes: dict[str, Any] = {setting: value}
    reason = why_pytorch_searches(random_run(**changes))
    assert reason == (None if is_known else f"the C library does not know {setting} {value!r}")


@pytest.mark.parametrize(
    "changes", [{"d_model": 36, "heads": 4}, {"d_ff": 100}, {"heads": 32}], ids=str
)
def test_other_widths_are_left_to_pytorch(changes: dict[str, Any]) -> None:
    loaded = random_run(**changes)
    assert NativeSearch.build(loaded, "fp32") is None
    assert "needs d_model and d_ff that" in str(why_pytorch_searches(loaded))


@needs_library
def test_what_the_library_does_not_know_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert why_pytorch_searches(random_run()) is None
    for key in ("activation", "positions"):
        with monkeypatch.context() as patched:
            patched.setitem(SETTINGS, key, ())
            assert f"does not know {key} '" in str(why_pytorch_searches(random_run()))
    elsewhere = random_run()
    elsewhere.model.to("meta")
    assert why_pytorch_searches(elsewhere) == "the model is on meta"


@pytest.fixture
def uncached(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let the library be looked for again, and forget what was found after the test."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr(native_search, "native_library", native_library.__wrapped__)


@pytest.mark.parametrize("obstacle", ["no compiler", "compiler fails", "switched off", "folder"])
def test_without_the_library_pytorch_searches(
    obstacle: str, uncached: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    if obstacle == "switched off":
        monkeypatch.setenv(compilation.SWITCH, "0")
    elif obstacle == "folder":
        for path in (cache, tmp_path / "temporary" / f"nmt-{os.geteuid()}"):
            path.write_text("a file, where a folder is expected")
    elif obstacle == "no compiler":
        monkeypatch.setenv("PATH", "")
    else:
        monkeypatch.setenv("CC", "false")
    assert NativeSearch.build(random_run(), "fp32") is None
    assert not list(tmp_path.rglob("*.so"))


@needs_library
def test_it_is_compiled_once_for_each_processor(
    uncached: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    compile_library = compilation.compile_library

    def compile_quickly(
        source: Path, target: Path, flags: Sequence[str], compiler: Sequence[str]
    ) -> None:
        compile_library(source, target, [*flags, "-O0"], compiler)

    monkeypatch.setattr(compilation, "compile_library", compile_quickly)
    assert NativeSearch.build(random_run(), "fp32")
    (compiled,) = tmp_path.rglob("*.so")
    written = compiled.stat().st_mtime_ns
    assert NativeSearch.build(random_run(), "fp32")
    assert compiled.stat().st_mtime_ns == written
    older = processor_features() - {"sse4_1"}
    monkeypatch.setattr(compilation, "processor_features", lambda: older)
    assert NativeSearch.build(random_run(), "fp32")
    assert len(list(tmp_path.rglob("*.so"))) == 2


@needs_library
@pytest.mark.parametrize("level", LEVELS, ids=[level.name for level in LEVELS])
def test_every_level_of_this_processor_computes_the_same(
    level: Level, uncached: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if missing := level.features - processor_features():
        pytest.skip(f"this processor has no {min(missing)}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv(compilation.SWITCH, level.name)
    # without VNNI, sums of two products have 16 bits, which only 7 bits do not overflow
    most = 63 if level.name in ("x86-64-v3", "x86-64-v4") else 127
    loaded, rows = random_run(), sentences()
    expected = beam_search(loaded.model, collate_source(rows), PLAIN)
    assert_same_results(translated(native(loaded), rows, PLAIN, 1), expected)
    assert_rounds_both_factors(loaded, most)


@needs_emulator
def test_every_generation_of_arm_computes_the_same(
    emulated: emulated_arm.Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded, rows = random_run(), sentences()
    expected = beam_search(loaded.model, collate_source(rows), PLAIN, 4)
    integers = []
    for level in emulated_arm.PROCESSORS:
        monkeypatch.setattr(native_search, "native_library", partial(emulated, SOURCE, level))
        assert_same_results(translated(native(loaded), rows, PLAIN, 4), expected)
        integers.append(translated(native(loaded, "int8"), rows, PLAIN, 4))
    assert_rounds_both_factors(loaded, most=127)
    assert integers[0] == integers[1] == integers[2]  # the sums of integers are exact
