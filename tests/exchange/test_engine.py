"""Each export computes the activations of the configuration, or says that it cannot."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import pytest
import torch
from torch import Tensor

pytest.importorskip("ctranslate2")
pytest.importorskip("onnxruntime")

from nmt.errors import ExchangeError
from nmt.exchange.ctranslate2 import export_ctranslate2
from nmt.exchange.huggingface_export import export_huggingface
from nmt.exchange.marian import export_marian
from nmt.exchange.onnx import export_onnx
from nmt.exchange.safetensors_folder import export_safetensors
from nmt.model import feed_forward
from nmt.recipe.config import Activation
from nmt.run.model import LoadedModel
from tests.exchange.small_runs import untrained_run

MARIAN = {"positions": "tensor2tensor", "start_embedding": "zero", "layer_norm_epsilon": 1e-6}
EXPORTED = ("relu", "gelu", "swish")  # which all programs have
EXPORTS: dict[str, Callable[[LoadedModel, Path], None]] = {
    "CTranslate2": export_ctranslate2,
    "transformers": export_huggingface,
    "Marian": export_marian,
    "ONNX": export_onnx,
}


def run_with(activation: str) -> LoadedModel:
    sizes = {"d_model": 8, "heads": 1, "d_ff": 8, "encoder_layers": 1, "decoder_layers": 1}
    loaded = untrained_run(**sizes | MARIAN)
    model = loaded.config.model.model_copy(update={"activation": activation})
    for module in loaded.model.modules():
        if isinstance(module, feed_forward.FeedForward):
            module.activation = feed_forward.ACTIVATIONS[activation]  # type: ignore[index]
    return replace(loaded, config=loaded.config.model_copy(update={"model": model}))


def without_originals(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runs of these tests are nowhere on disk, and were not imported."""
    for module in ("huggingface_export", "marian"):
        monkeypatch.setattr(f"nmt.exchange.{module}.original_files", lambda _: {})
        monkeypatch.setattr(
            f"nmt.exchange.{module}.find_run", lambda _: SimpleNamespace(imported=None)
        )


@pytest.mark.parametrize("program", EXPORTS)
@pytest.mark.parametrize("activation", get_args(Activation))
def test_each_program_has_the_activations_of_the_configuration_or_says_that_it_lacks_one(
    program: str, activation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_originals(monkeypatch)
    said = ""
    try:
        EXPORTS[program](run_with(activation), tmp_path)
    except ExchangeError as error:
        said = str(error)
    assert bool(said) != bool(list(tmp_path.iterdir()))
    assert not said or (activation not in EXPORTED and f"{program} has no " in said)


@pytest.mark.parametrize("program", EXPORTS)
def test_an_activation_that_a_program_lacks_is_a_sentence_and_nothing_is_written(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(x: Tensor) -> Tensor:
        return torch.special.bessel_j0(x)  # ONNX has no such operator

    monkeypatch.setitem(feed_forward.ACTIVATIONS, "bessel", unknown)  # type: ignore[misc]
    loaded = run_with("bessel")
    with pytest.raises(ExchangeError, match=f"{program} has no activation 'bessel'.*as safet"):
        EXPORTS[program](loaded, tmp_path)
    assert not list(tmp_path.iterdir())
    export_safetensors(loaded, tmp_path / "own")  # which holds any model of ours
