"""transformers translates an exported model as we do, and gets back what it gave."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from nmt.errors import ExchangeError
from nmt.exchange.huggingface import import_huggingface
from nmt.exchange.huggingface_export import export_huggingface, translate_with_transformers
from nmt.exchange.imported import write_run
from nmt.exchange.safetensors_folder import export_safetensors
from nmt.exchange.verify import EXACT, verify_translations
from nmt.load_run import load_run
from nmt.run_directory import LoadedModel
from tests.exchange.small_runs import TEXTS, small_run

pytest.importorskip("transformers")
CPU = torch.device("cpu")
# MarianTokenizer takes these for its own symbols
PLAIN = [text for text in TEXTS if "<" not in text]


def saved_run(folder: Path, **settings: Any) -> LoadedModel:
    """A small run with the epsilon that transformers has, on disk."""
    folder.mkdir()
    run = small_run(layer_norm_epsilon=1e-5, **settings)
    export_safetensors(run, folder)
    return replace(run, path=folder)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"norm": "pre", "activation": "gelu"},
        {"activation": "swish", "embeddings": "target"},
        {"embeddings": "separate", "output_bias": True},
        {"positions": "sines_first", "start_embedding": "zero", "output_bias": True},
        {"positions": "tensor2tensor", "encoder_layers": 3, "decoder_layers": 1},
    ],
    ids=str,
)
def test_transformers_translates_every_architecture_as_we_do(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    run, folder = saved_run(tmp_path / "run", **settings), tmp_path / "exported"
    folder.mkdir()
    export_huggingface(run, folder)
    found = verify_translations(run, PLAIN, translate_with_transformers(folder, PLAIN), EXACT)
    assert found.startswith(f"{len(PLAIN)} of {len(PLAIN)}")


def test_a_model_without_a_class_in_transformers_is_refused(tmp_path: Path) -> None:
    run = small_run(norm="pre", embeddings="target")
    with pytest.raises(ExchangeError, match=r"no class for a pre-norm .* target; export it to ct"):
        export_huggingface(run, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("embeddings", ["shared", "target", "separate"])
def test_weights_come_back_from_hugging_face_and_go_out_again_bit_for_bit(
    tmp_path: Path, embeddings: str
) -> None:
    run = saved_run(tmp_path / "run", embeddings=embeddings, positions="sines_first")
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    export_huggingface(run, first)
    write_run(import_huggingface(first), tmp_path / "imported")
    imported = load_run(tmp_path / "imported", CPU)
    assert imported.tokenizer.target.pieces == run.tokenizer.target.pieces
    assert imported.config.model.embeddings == embeddings
    export_huggingface(imported, second)
    before, after = (load_file(folder / "model.safetensors") for folder in (first, second))
    assert before.keys() == after.keys()
    assert all(torch.equal(weight, after[name]) for name, weight in before.items())
    for name in ("config.json", "vocab.json", "source.spm", "target.spm"):
        assert (first / name).read_bytes() == (second / name).read_bytes()
