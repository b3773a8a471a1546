"""Students go back to browsers: int8, shortlist, settings and registry entry."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nmt.errors import ExchangeError
from nmt.exchange.bergamot import export_bergamot, find_alphas, verify_bergamot
from nmt.exchange.imported import write_run
from nmt.exchange.marian import import_marian, marian_contents
from nmt.exchange.marian_binary import read_model
from nmt.recipe.config import GuidedAlignmentConfig, TrainingConfig
from nmt.run.model import LoadedModel, load_model
from tests.exchange.bergamot_packages import write_student
from tests.exchange.marian_packages import TEXT
from tests.exchange.test_marian import tiny_run


@pytest.fixture
def imported(tmp_path: Path) -> LoadedModel:
    (tmp_path / "student").mkdir()
    write_student(tmp_path / "student", "bergamot")
    (model,) = import_marian(tmp_path / "student")
    write_run(model, tmp_path / "run")
    return load_model(tmp_path / "run", torch.device("cpu"))


def english_german(loaded: LoadedModel) -> LoadedModel:
    data = loaded.config.data.model_copy(update={"source_language": "en", "target_language": "de"})
    return replace(loaded, config=loaded.config.model_copy(update={"data": data}))


def lists_of(loaded: LoadedModel) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rows, size = loaded.tokenizer.source.size, loaded.tokenizer.target.size
    candidates = np.random.default_rng(1).integers(4, size, (rows, 3))
    return candidates, np.array([0, 1, 2, 3])


def test_an_unchanged_student_goes_back_to_the_same_file(
    imported: LoadedModel, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    export_bergamot(imported, out, [], None)
    name = "model.ende.intgemm.alphas.bin"
    assert (out / name).read_bytes() == (tmp_path / "student" / name).read_bytes()
    (again,) = import_marian(out)
    assert again.decoding == imported.config.decoding


@pytest.mark.parametrize("embeddings", ["shared", "target"])
def test_a_student_of_our_own_is_written_for_firefox_and_translates_in_marian(
    tmp_path: Path, embeddings: str
) -> None:
    student = {"decoder": "ssru", "activation": "relu", "embeddings": embeddings}
    loaded = english_german(tiny_run(tmp_path / "run", **student))
    guided = GuidedAlignmentConfig(layer=1, position="predicts")
    training = TrainingConfig(guided_alignment=guided)
    loaded = replace(loaded, config=loaded.config.model_copy(update={"training": training}))
    out = tmp_path / "out"
    out.mkdir()
    export_bergamot(loaded, out, TEXT[:3], lists_of(loaded))
    model = read_model(out / "model.ende.intgemm.alphas.bin")
    for name in model.multipliers:
        assert 0 < model.alphas[f"{name}_QuantMultA"] < 1000, name
    (again,) = import_marian(out)
    assert again.config.decoder == "ssru" and again.shortlist
    assert again.guided_alignment == guided
    entry = json.loads((out / "registry.json").read_text("utf-8"))["ende"]
    vocabularies = {"vocab"} if embeddings == "shared" else {"srcvocab", "trgvocab"}
    assert entry.keys() == {"model", "lex", *vocabularies}
    for file in entry.values():
        content = (out / file["name"]).read_bytes()
        assert file["size"] == len(content)
        assert file["expectedSha256Hash"] == hashlib.sha256(content).hexdigest()
    pytest.importorskip("pymarian")
    summary = verify_bergamot(loaded, out, TEXT[:3])
    assert summary.startswith("3 of 3 greedy translations are equal token by token")
    assert "beside the weights before they were rounded: with rounded weights" in summary


def test_an_alpha_is_the_range_of_what_a_matrix_is_multiplied_by(tmp_path: Path) -> None:
    loaded = tiny_run(tmp_path / "run", decoder="ssru")
    alphas = find_alphas(loaded, marian_contents(loaded), TEXT[:1])
    source = torch.tensor(loaded.tokenizer.source.encode(TEXT[:1]))
    embedded = loaded.model.positions(loaded.model.source_embedding(source))
    expected = 127 / embedded.abs().max().item()
    assert alphas["encoder_l1_self_Wq_QuantMultA"] == pytest.approx(expected, rel=1e-6)
    assert alphas["none_QuantMultA"] == alphas["Wemb_QuantMultA"]
    assert not loaded.model.decoder._forward_hooks


@pytest.mark.parametrize(
    ("changes", "texts", "message"),
    [
        ({}, [], "needs sentences, with which the range of the activations is found"),
        ({"embeddings": "separate"}, TEXT, "needs model.embeddings: shared or target"),
    ],
)
def test_what_the_format_needs_is_named(
    tmp_path: Path, changes: dict[str, Any], texts: list[str], message: str
) -> None:
    loaded = english_german(tiny_run(tmp_path / "run", **changes))
    with pytest.raises(ExchangeError, match=message):
        export_bergamot(loaded, tmp_path, texts, None)


def test_files_are_named_by_languages(tmp_path: Path) -> None:
    loaded = tiny_run(tmp_path / "run")
    und = {"source_language": "und", "target_language": "de"}
    data = loaded.config.data.model_copy(update=und)
    loaded = replace(loaded, config=loaded.config.model_copy(update={"data": data}))
    with pytest.raises(ExchangeError, match="named by the languages, and the run says und and de"):
        export_bergamot(loaded, tmp_path, TEXT, None)
