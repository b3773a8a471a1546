"""transformers translates an exported model as we do, and gets back what it gave."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
from safetensors.torch import load_file, save_file

from nmt.data.tokens.tokenizer import EOS, UNK
from nmt.errors import DataError, ExchangeError
from nmt.exchange.huggingface import import_huggingface
from nmt.exchange.huggingface_export import export_huggingface, translate_with_transformers
from nmt.exchange.huggingface_names import ACTIVATIONS
from nmt.exchange.imported import write_run
from nmt.exchange.safetensors_folder import export_safetensors
from nmt.exchange.verify import EXACT, verify_translations
from nmt.files import read_json
from nmt.recipe.config import Embeddings
from nmt.run.model import LoadedModel, build_model, load_model
from tests.exchange.small_runs import TEXTS, small_run, untrained_run

pytest.importorskip("transformers")
from tests.exchange.huggingface_models import sentences, write_model  # noqa: E402

CPU = torch.device("cpu")
THEIRS = {"layer_norm_epsilon": 1e-5}  # that of transformers
# MarianTokenizer takes these for its own symbols
PLAIN = [text for text in TEXTS if "<" not in text]


def saved(loaded: LoadedModel, folder: Path) -> LoadedModel:
    """The same run, on disk."""
    folder.mkdir()
    export_safetensors(loaded, folder)
    return replace(loaded, path=folder)


@pytest.mark.parametrize(
    "settings",
    [
        *({"activation": activation} for activation in sorted({*ACTIVATIONS.values()})),
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
    loaded = saved(small_run(**THEIRS, **settings), tmp_path / "run")
    folder = tmp_path / "exported"
    folder.mkdir()
    export_huggingface(loaded, folder)
    found = verify_translations(loaded, PLAIN, translate_with_transformers(folder, PLAIN), EXACT)
    assert found.startswith(f"{len(PLAIN)} of {len(PLAIN)}")


def test_a_model_without_a_class_in_transformers_is_refused(tmp_path: Path) -> None:
    loaded = untrained_run(norm="pre", embeddings="target")
    with pytest.raises(ExchangeError, match=r"no class for a pre-norm .* target; export it to ct"):
        export_huggingface(loaded, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("embeddings", get_args(Embeddings))
def test_weights_come_back_from_hugging_face_and_go_out_again_bit_for_bit(
    tmp_path: Path, embeddings: str
) -> None:
    untrained = untrained_run(**THEIRS, embeddings=embeddings, positions="sines_first")
    loaded = saved(untrained, tmp_path / "run")
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    export_huggingface(loaded, first)
    write_run(import_huggingface(first), tmp_path / "imported")
    imported = load_model(tmp_path / "imported", CPU)
    assert imported.tokenizer.target.pieces == loaded.tokenizer.target.pieces
    assert imported.config.model.embeddings == embeddings
    export_huggingface(imported, second)
    before, after = (load_file(folder / "model.safetensors") for folder in (first, second))
    assert before.keys() == after.keys()
    assert all(torch.equal(weight, after[name]) for name, weight in before.items())
    for name in ("config.json", "vocab.json", "source.spm", "target.spm"):
        assert (first / name).read_bytes() == (second / name).read_bytes()


def change_json(path: Path, **changes: Any) -> None:
    """Change settings in a file of JSON."""
    path.write_text(json.dumps(read_json(path) | changes))


def imported_run(theirs: Path, run: Path) -> LoadedModel:
    """Import a folder of Hugging Face, and load the run."""
    write_run(import_huggingface(theirs), run)
    return load_model(run, CPU)


def export_and_verify(loaded: LoadedModel, folder: Path) -> None:
    """Export to Hugging Face, and compare the translations."""
    folder.mkdir()
    export_huggingface(loaded, folder)
    texts = sentences(20, seed=5)
    verify_translations(loaded, texts, translate_with_transformers(folder, texts), EXACT)


@pytest.mark.parametrize("name", ["dtype", "torch_dtype"])
def test_a_model_in_half_precision_comes_back_in_the_float32_of_its_weights(
    tmp_path: Path, name: str
) -> None:
    theirs = tmp_path / "theirs"
    write_model(theirs)
    weights = load_file(theirs / "model.safetensors")
    halves = {key: weight.half() for key, weight in weights.items()}
    save_file(halves, theirs / "model.safetensors", {"format": "pt"})
    settings = read_json(theirs / "config.json")
    settings.pop("dtype")
    (theirs / "config.json").write_text(json.dumps(settings | {name: "float16"}))
    loaded = imported_run(theirs, tmp_path / "run")
    export_and_verify(loaded, tmp_path / "exported")
    assert read_json(tmp_path / "exported" / "config.json") == settings | {name: "float32"}


def test_a_changed_original_vocabulary_is_one_sentence(tmp_path: Path) -> None:
    write_model(tmp_path / "theirs")
    loaded = imported_run(tmp_path / "theirs", tmp_path / "run")
    change_json(tmp_path / "run" / "imported" / "vocab.json", extra=10**6)
    with pytest.raises(DataError, match="has the row 1,000,000 for 'extra', but the model has"):
        export_huggingface(loaded, tmp_path)


def test_rules_of_the_search_that_nmt_lacks_are_a_warning_and_do_not_disturb_verification(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs = tmp_path / "theirs"
    write_model(theirs)
    rules = {"forced_bos_token_id": 5, "suppress_tokens": [9], "repetition_penalty": 1.5}
    obeyed = {"no_repeat_ngram_size": 2, "min_length": 4}
    change_json(theirs / "generation_config.json", **rules, **obeyed)
    loaded = imported_run(theirs, tmp_path / "run")
    warnings = capsys.readouterr().err
    assert all(f"{name}: {value} is left out" in warnings for name, value in rules.items())
    assert (loaded.config.decoding.no_repeat_ngram, loaded.config.decoding.min_length) == (2, 3)
    export_and_verify(loaded, tmp_path / "exported")
    name = "generation_config.json"
    assert (tmp_path / "exported" / name).read_bytes() == (theirs / name).read_bytes()


def test_changed_settings_of_the_search_are_exported_in_their_rows(tmp_path: Path) -> None:
    theirs, exported = tmp_path / "theirs", tmp_path / "exported"
    write_model(theirs)
    loaded = imported_run(theirs, tmp_path / "run")
    changes = {"beam_size": 7, "allow_unknown": False, "no_repeat_ngram": 3, "min_length": 6}
    decoding = loaded.config.decoding.model_copy(update=changes)
    loaded = replace(loaded, config=loaded.config.model_copy(update={"decoding": decoding}))
    with torch.no_grad():  # so that the rule matters
        loaded.model.get_parameter("target_embedding.bias")[UNK] += 20
    export_and_verify(loaded, exported)
    pad, unknown = (read_json(theirs / "vocab.json")[piece] for piece in ("<pad>", "<unk>"))
    settings = read_json(exported / "generation_config.json")
    assert settings["num_beams"] == 7 and settings["no_repeat_ngram_size"] == 3
    assert sorted(settings["bad_words_ids"]) == sorted([[pad], [unknown]])
    assert settings["decoder_start_token_id"] == pad
    assert import_huggingface(exported).decoding == decoding


@pytest.mark.parametrize("changes", [{"encoder_layers": 3}, {"activation": "gelu"}, {"heads": 4}])
def test_an_imported_model_whose_architecture_has_changed_gets_files_that_describe_it(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    write_model(tmp_path / "theirs")
    loaded = imported_run(tmp_path / "theirs", tmp_path / "run")
    model = loaded.config.model.model_copy(update=changes)
    config = loaded.config.model_copy(update={"model": model})
    torch.manual_seed(1)
    changed = replace(loaded, config=config, weights=build_model(config, loaded.tokenizer).eval())
    with torch.no_grad():  # so that translations end soon
        changed.model.get_parameter("target_embedding.bias")[EOS] += 5
    export_and_verify(changed, tmp_path / "exported")
