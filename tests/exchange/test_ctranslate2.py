"""CTranslate2 translates an exported model as we do, whatever its architecture."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from nmt.data.tokens.tokenizer import PAD, UNK
from nmt.errors import ExchangeError, MissingExtraError
from nmt.exchange.ctranslate2 import (
    ACTIVATIONS,
    POSITIONS,
    USAGE,
    export_ctranslate2,
    translate_with_ctranslate2,
)
from nmt.exchange.engine import MAX_TRANSLATION, EngineTranslation, Quantization
from nmt.exchange.verify import EXACT, ROUNDED, verify_translations
from nmt.run.checkpoint import weights_digest
from nmt.run.model import LoadedModel
from tests.exchange.small_runs import TEXTS, greedy_translations, small_run

pytest.importorskip("ctranslate2")
MARIAN = {"output_bias": True, "positions": "sines_first", "start_embedding": "zero"}


def translate_exported(
    loaded: LoadedModel, folder: Path, *quantization: Any
) -> list[EngineTranslation]:
    folder.mkdir()
    export_ctranslate2(loaded, folder, *quantization)
    return translate_with_ctranslate2(folder, TEXTS)


@pytest.mark.parametrize(
    "settings",
    [
        *({"activation": activation} for activation in ACTIVATIONS),
        {"norm": "pre", "activation": "gelu"},
        {"norm": "pre", "activation": "swish", "embeddings": "target"},
        {"activation": "swish", "embeddings": "separate", "layer_norm_epsilon": 0.03},
        {"activation": "gelu", "embeddings": "target", "encoder_layers": 3, "decoder_layers": 1},
        {"activation": "swish", **MARIAN},
        {"norm": "pre", "embeddings": "separate", **MARIAN, "positions": "tensor2tensor"},
    ],
    ids=str,
)
def test_the_translations_of_every_architecture_are_ours(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    loaded = small_run(**settings)
    theirs = translate_exported(loaded, tmp_path / "model")
    verify_translations(loaded, TEXTS, theirs, EXACT)
    ended = [len(each.pieces) < MAX_TRANSLATION - 1 for each in theirs]
    ours = [each.pieces for each in greedy_translations(loaded, TEXTS)]
    assert [t.pieces for t, e in zip(theirs, ended, strict=True) if e] == [
        pieces for pieces, e in zip(ours, ended, strict=True) if e
    ]
    assert sum(ended) > len(TEXTS) / 2
    assert len({tuple(pieces) for pieces in ours}) > 10


@pytest.fixture(scope="module")
def loaded() -> LoadedModel:
    return small_run()


@pytest.fixture(scope="module")
def exported(loaded: LoadedModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported")
    export_ctranslate2(loaded, folder)
    return folder


@pytest.mark.parametrize("quantization", sorted(set(get_args(Quantization)) - {"float32"}))
def test_rounded_weights_translate_almost_alike_and_leave_the_model_as_it_was(
    tmp_path: Path, quantization: str, loaded: LoadedModel, exported: Path
) -> None:
    before = weights_digest(loaded.model)
    theirs = translate_exported(loaded, tmp_path / "small", quantization)
    assert weights_digest(loaded.model) == before
    verify_translations(loaded, TEXTS, theirs, ROUNDED)
    small, large = ((f / "model.bin").stat().st_size for f in (tmp_path / "small", exported))
    assert small < 0.9 * large


@pytest.mark.parametrize("setting", [{"layer_norm_epsilon": 1e-2}, {"activation": "gelu"}])
def test_an_export_of_another_model_is_noticed(
    tmp_path: Path, loaded: LoadedModel, setting: dict[str, Any]
) -> None:
    model = loaded.config.model.model_copy(update=setting)
    config = loaded.config.model_copy(update={"model": model})
    wrong = replace(loaded, config=config, weights=loaded.arrays)  # in another model of PyTorch
    theirs = translate_exported(wrong, tmp_path / "model")
    with pytest.raises(ExchangeError, match="the exported model is not the same: .* becomes"):
        verify_translations(loaded, TEXTS, theirs, EXACT)


def test_an_activation_that_it_lacks_is_refused(tmp_path: Path, loaded: LoadedModel) -> None:
    model = loaded.config.model.model_copy(update={"activation": "mish"})
    config = loaded.config.model_copy(update={"model": model})
    with pytest.raises(ExchangeError, match="no model.activation: mish, .* has relu, gelu, swish"):
        export_ctranslate2(replace(loaded, config=config), tmp_path)


def test_tied_matrices_are_stored_once(loaded: LoadedModel, exported: Path) -> None:
    parameters = sum(4 * parameter.numel() for parameter in loaded.model.parameters())
    table = 4 * POSITIONS * loaded.config.model.d_model
    size = (exported / "model.bin").stat().st_size
    assert parameters + table < size < parameters + table + 20_000


def test_the_table_has_positions_for_the_longest_source(exported: Path) -> None:
    assert translate_with_ctranslate2(exported, ["a b " * 600])[0].pieces


def test_the_lines_of_the_model_card_translate(tmp_path: Path) -> None:
    loaded = small_run(embeddings="separate")
    translate_exported(loaded, tmp_path / "model")
    program = USAGE.replace("A dog sleeps.", TEXTS[0]).replace("beam_size=4", "beam_size=1")
    printed = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path / "model",
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    (pieces,) = (each.pieces for each in greedy_translations(loaded, TEXTS[:1]))
    index = {piece: i for i, piece in enumerate(loaded.tokenizer.target.pieces)}
    assert printed == loaded.tokenizer.target.decode([[index[p] for p in pieces]])[0] + "\n"


def test_the_other_program_needs_no_option_to_leave_out_excluded_tokens(tmp_path: Path) -> None:
    loaded = small_run(embeddings="separate")
    loaded.model.output_embedding.weight.data[[PAD, UNK]] *= -100  # now the most probable ones
    decoding = loaded.config.decoding.model_copy(update={"allow_unknown": False})
    loaded = replace(loaded, config=loaded.config.model_copy(update={"decoding": decoding}))
    theirs = translate_exported(loaded, tmp_path / "model")
    excluded = {loaded.tokenizer.target.pieces[i] for i in (PAD, UNK)}
    assert not any(excluded & set(each.pieces) for each in theirs)
    verify_translations(loaded, TEXTS, theirs, EXACT)
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    assert config["add_source_eos"] and config["decoder_start_token"] == "<s>"


def test_the_missing_program_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loaded: LoadedModel, exported: Path
) -> None:
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    message = r"the format ctranslate2 needs the extra 'exchange': pip install 'nmt\[exchange\]'"
    with pytest.raises(MissingExtraError, match=message):
        export_ctranslate2(loaded, tmp_path)
    with pytest.raises(MissingExtraError, match=message):
        translate_with_ctranslate2(exported, ["a"])
