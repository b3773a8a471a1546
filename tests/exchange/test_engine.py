"""Each export has what a model computes, or says in a sentence that it lacks it."""

from collections.abc import Callable, Sequence
from pathlib import Path
from types import MethodType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

pytest.importorskip("ctranslate2")
pytest.importorskip("onnxruntime")
pytest.importorskip("transformers")

from nmt.errors import ExchangeError
from nmt.exchange.ctranslate2 import export_ctranslate2, translate_with_ctranslate2
from nmt.exchange.engine import EngineTranslation
from nmt.exchange.huggingface_export import export_huggingface, translate_with_transformers
from nmt.exchange.marian import export_marian
from nmt.exchange.marian_engine import translate_with_marian
from nmt.exchange.onnx import export_onnx, translate_with_onnxruntime
from nmt.exchange.safetensors_folder import export_safetensors
from nmt.exchange.verify import EXACT, verify_translations
from nmt.model import feed_forward
from nmt.model.attention import MultiHeadAttention
from nmt.model.norm import RMSNorm
from nmt.model.transformer import Transformer
from nmt.run.model import LoadedModel
from tests.exchange.small_runs import TEXTS, untrained_run

MARIAN = {"positions": "tensor2tensor", "start_embedding": "zero"}
EXPORTS: dict[str, tuple[Callable[[LoadedModel, Path], None], Any]] = {
    "CTranslate2": (export_ctranslate2, translate_with_ctranslate2),
    "transformers": (export_huggingface, translate_with_transformers),
    "Marian": (export_marian, translate_with_marian),
    "ONNX": (export_onnx, translate_with_onnxruntime),
}
HOLDS: dict[tuple[str, str], set[str]] = {
    ("norm_kind", "rms"): {"ONNX", "CTranslate2"},
    ("feed_forward", "gated"): {"ONNX", "CTranslate2"},
    ("positions", "rotary"): {"ONNX", "CTranslate2"},
    ("decoder", "ssru"): {"Marian"},
}
"""the programs that have a choice which not all have; the others refuse it"""


@pytest.fixture(autouse=True)
def without_originals(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runs of these tests are nowhere on disk, and were not imported."""
    for module in ("huggingface_export", "marian"):
        monkeypatch.setattr(f"nmt.exchange.{module}.original_files", lambda _: {})
        monkeypatch.setattr(
            f"nmt.exchange.{module}.find_run", lambda _: SimpleNamespace(imported=None)
        )


def small_run(**settings: Any) -> LoadedModel:
    sizes = {"d_model": 16, "heads": 2, "d_ff": 8, "encoder_layers": 1, "decoder_layers": 1}
    return untrained_run(**{**sizes, **MARIAN, **settings})


def assert_same(
    loaded: LoadedModel,
    translate: Callable[[Path, Sequence[str]], list[EngineTranslation]],
    at: Path,
) -> None:
    verify_translations(loaded, TEXTS[:3], translate(at, TEXTS[:3]), EXACT)


@pytest.mark.parametrize("program", EXPORTS)
@pytest.mark.parametrize("choice", HOLDS, ids=str)
def test_a_choice_is_computed_by_the_other_program_or_refused(
    program: str, choice: tuple[str, str], tmp_path: Path
) -> None:
    setting, value = choice
    loaded, (export, translate) = small_run(**{setting: value}), EXPORTS[program]
    if program in HOLDS[choice]:
        export(loaded, tmp_path)
        assert_same(loaded, translate, tmp_path)
        return
    with pytest.raises(
        ExchangeError, match=rf"^{program} has no model\.{setting}: {value}, .*as sa"
    ):
        export(loaded, tmp_path)
    assert not list(tmp_path.iterdir())


class HalfAttention(MultiHeadAttention):
    """Half of what attention finds."""

    def attention(self, *arguments: Any) -> Tensor:
        return super().attention(*arguments) / 2


class OtherAttention(nn.Module):
    """Attention with other names, and without a method of `MultiHeadAttention`."""

    def forward(self, x: Tensor, memory: Tensor, context: object) -> Tensor:
        return x + memory.mean(1, keepdim=True)


def another_norm(model: Transformer) -> None:
    model.decoder.layers[0].feed_forward_sublayer.norm = RMSNorm(16, 1e-6)


def a_norm_that_onnx_lacks(model: Transformer) -> None:
    model.decoder.layers[0].feed_forward_sublayer.norm = nn.RMSNorm(16)  # type: ignore[assignment]


def another_activation(model: Transformer) -> None:
    model.decoder.layers[0].feed_forward.activation = torch.tanh


def another_attention(model: Transformer) -> None:
    model.decoder.layers[0].self_attention = HalfAttention(16, 2).eval()


def attention_with_other_names(model: Transformer) -> None:
    model.decoder.layers[0].cross_attention = OtherAttention()  # type: ignore[assignment]


def a_weight_more(model: Transformer) -> None:
    network = model.decoder.layers[0].feed_forward
    network.scale = nn.Parameter(torch.full((16,), 0.5))
    network.forward = MethodType(  # type: ignore[method-assign]
        lambda self, x: feed_forward.FeedForward.forward(self, x) * self.scale, network
    )


def a_weight_that_is_not_used(model: Transformer) -> None:
    model.encoder.register_parameter("unused", nn.Parameter(torch.zeros(3)))


def an_activation_that_onnx_lacks(model: Transformer) -> None:
    model.decoder.layers[0].feed_forward.activation = torch.special.bessel_j0


BY_ONNX: dict[Callable[[Transformer], None], str] = {
    a_norm_that_onnx_lacks: "aten::rms_norm",
    an_activation_that_onnx_lacks: "bessel_j0",
    attention_with_other_names: "OtherAttention",
}
"""what PyTorch cannot trace, and what it says of it"""
CHANGES: dict[Callable[[Transformer], None], str] = {
    another_norm: "feed_forward_sublayer.norm",
    a_norm_that_onnx_lacks: "feed_forward_sublayer.norm",
    another_activation: "decoder.layers.0.feed_forward .* another activation",
    another_attention: r"decoder.layers.0.self_attention \(HalfAttention\)",
    attention_with_other_names: "decoder.layers.0.cross_attention",
    a_weight_more: "decoder.layers.0.feed_forward.scale",
    a_weight_that_is_not_used: "encoder.unused",
    an_activation_that_onnx_lacks: "decoder.layers.0.feed_forward",
}
"""what a notebook may do to a model, and what the sentence names"""


@pytest.mark.parametrize("program", EXPORTS)
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_model_that_was_changed_is_traced_or_refused(
    program: str,
    change: Callable[[Transformer], None],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    loaded, (export, translate) = small_run(), EXPORTS[program]
    change(loaded.model)
    if program == "ONNX" and change not in BY_ONNX:
        export(loaded, tmp_path)
        assert_same(loaded, translate, tmp_path)
        return
    said = rf"ONNX cannot hold .*{BY_ONNX.get(change)}" if program == "ONNX" else CHANGES[change]
    with pytest.raises(ExchangeError, match=said) as caught:
        export(loaded, tmp_path)
    assert program in str(caught.value) and "as safetensors" in str(caught.value)
    assert "\n" not in str(caught.value) and capfd.readouterr().out == ""


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_safetensors_holds_every_weight(
    change: Callable[[Transformer], None], tmp_path: Path
) -> None:
    loaded = small_run()
    change(loaded.model)
    export_safetensors(loaded, tmp_path)
    assert (tmp_path / "model.safetensors").is_file()
