"""Our models in Marian, and Marian's in ours."""

import re
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.tokenizer import BOS, EOS, PAD, Tokenizer
from nmt.data.tokens.vocabulary import learn_vocabulary
from nmt.errors import ExchangeError
from nmt.exchange.engine import MAX_TRANSLATION
from nmt.exchange.imported import write_run
from nmt.exchange.marian import export_marian, import_marian
from nmt.exchange.marian_engine import translate_with_marian
from nmt.exchange.marian_files import parse_yaml
from nmt.recipe.config import Config, ModelConfig, TokenizerConfig
from nmt.run.model import LoadedModel, build_model, load_model
from tests.exchange.marian_packages import TEXT, write_package
from tests.exchange.small_runs import untrained_run

SAYABLE: dict[str, Any] = {"positions": "tensor2tensor", "start_embedding": "zero"}
TINY: dict[str, Any] = {"d_model": 8, "heads": 2, "d_ff": 12, "encoder_layers": 2}
TINY |= {"decoder_layers": 1, "dropout": 0.0, **SAYABLE}


def tiny_tokenizer(shared: bool) -> Tokenizer:
    config = TokenizerConfig(vocabulary_size=40, shared=shared, kind="char")
    return learn_vocabulary([SentencePair(text, text.upper()) for text in TEXT], config)


def tiny_run(folder: Path, **changes: Any) -> LoadedModel:
    """A random model, and a run directory that holds nothing but an empty configuration."""
    config = ModelConfig(**{**TINY, **changes})
    shared = config.embeddings == "shared"
    tokenizer = tiny_tokenizer(shared)
    whole = Config(model=config, tokenizer=TokenizerConfig(shared=shared))
    torch.manual_seed(1)
    model = build_model(whole, tokenizer).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.2)
    folder.mkdir()
    (folder / "config.yaml").touch()
    return LoadedModel(whole, tokenizer, model, folder)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"activation": "swish", "output_bias": True},
        {"activation": "gelu", "embeddings": "separate", "output_bias": True},
        {"embeddings": "target"},
        {"decoder": "ssru", "decoder_layers": 2},
    ],
)
def test_marian_translates_an_exported_model_as_we_do(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    pytest.importorskip("pymarian")
    loaded = tiny_run(tmp_path / "run", **changes)
    export_marian(loaded, tmp_path)
    index = {piece: i for i, piece in enumerate(loaded.tokenizer.target.pieces)}
    translations = translate_with_marian(tmp_path, TEXT[:3])
    for text, (pieces, log_p) in zip(TEXT[:3], translations, strict=True):
        is_cut = len(pieces) >= MAX_TRANSLATION - 1
        target = [index[piece] for piece in pieces] + [EOS] * (not is_cut)
        source = torch.tensor(loaded.tokenizer.source.encode([text]))
        logits = loaded.model(source, torch.tensor([[BOS, *target[:-1]]]))[0]
        logits[:, [PAD, BOS]] = -torch.inf
        scores = logits.log_softmax(1)
        assert scores.argmax(1).tolist() == target
        if not is_cut:
            total = scores.gather(1, torch.tensor(target)[:, None]).sum().item()
            assert log_p == pytest.approx(total, abs=1e-4 * len(target))


def test_what_was_exported_is_read_back(tmp_path: Path) -> None:
    loaded = tiny_run(tmp_path / "run", activation="swish", output_bias=True)
    export_marian(loaded, tmp_path)
    (model,) = import_marian(tmp_path)
    assert model.config == loaded.config.model.model_copy(update={"dropout": 0.1})
    weights = dict(loaded.model.named_parameters())
    assert model.weights.keys() == weights.keys()
    for name, weight in model.weights.items():
        kept = slice(EOS, None) if "embedding" in name else slice(None)  # PAD and BOS are left out
        assert torch.equal(weight[kept], weights[name][kept])


@pytest.mark.parametrize("omit_bias", [False, True])
@pytest.mark.parametrize("yaml_vocabulary", [False, True])
def test_an_imported_model_goes_back_to_the_same_bytes(
    tmp_path: Path, omit_bias: bool, yaml_vocabulary: bool
) -> None:
    package, out = tmp_path / "package", tmp_path / "out"
    package.mkdir()
    out.mkdir()
    write_package(package, yaml_vocabulary, output_omit_bias=omit_bias)
    write_run(import_marian(package)[0], tmp_path / "run")
    export_marian(load_model(tmp_path / "run", torch.device("cpu")), out)
    assert (out / "model.npz").read_bytes() == (package / "model.npz").read_bytes()
    originals = ("vocab.yml", "source.spm", "target.spm") if yaml_vocabulary else ("vocab.spm",)
    for name in originals:
        original = package / name.replace("vocab.yml", "opus.vocab.yml")
        assert (out / name).read_bytes() == original.read_bytes()


def test_a_package_of_opus_is_read_from_its_zip(tmp_path: Path) -> None:
    write_package(tmp_path, yaml_vocabulary=True)
    (tmp_path / "README.md").write_text("a model")
    with zipfile.ZipFile(tmp_path / "opus.zip", "w") as archive:
        for path in sorted(tmp_path.glob("[!o]*")) + [tmp_path / "opus.vocab.yml"]:
            archive.write(path, path.name)
    (imported,) = import_marian(tmp_path / "opus.zip")
    source, target = imported.vocabularies
    assert source.rows == target.rows and ">>deu<<" in source.rows
    assert source.segmentation == (tmp_path / "source.spm").read_bytes()
    assert len(imported.weights["target_embedding.weight"]) == len(source.rows)
    assert imported.decoding.beam_size == 6
    assert not imported.decoding.allow_unknown
    assert imported.decoding.length_normalization == "average"
    assert imported.originals.keys() == {
        *("decoder.yml", "model.yml", "vocab.yml", "source.spm", "target.spm", "README.md")
    }


def test_a_zip_may_hold_the_folder_and_its_errors_name_the_zip(tmp_path: Path) -> None:
    write_package(tmp_path, yaml_vocabulary=True)
    path = tmp_path / "opus.zip"
    files = [file for file in tmp_path.iterdir() if file != path]
    with zipfile.ZipFile(path, "w") as archive:
        for file in files:
            archive.write(file, f"opus/{file.name}")
    assert len(import_marian(path)) == 1
    with zipfile.ZipFile(path, "w") as archive:
        for file in files:
            if file.name != "target.spm":
                archive.write(file, f"opus/{file.name}")
    with pytest.raises(ExchangeError, match=f"^{re.escape(str(path))}/opus/opus.vocab.yml: there"):
        import_marian(path)


@pytest.mark.parametrize("changes", [{"encoder_layers": 3}, {"activation": "relu"}, {"d_ff": 20}])
def test_options_describe_a_model_whose_architecture_has_changed_since_its_import(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    package, out = tmp_path / "package", tmp_path / "out"
    for folder in (package, out):
        folder.mkdir()
    write_package(package, yaml_vocabulary=False)
    write_run(import_marian(package)[0], tmp_path / "run")
    loaded = load_model(tmp_path / "run", torch.device("cpu"))
    model = loaded.config.model.model_copy(update=changes)
    config = loaded.config.model_copy(update={"model": model})
    export_marian(
        replace(loaded, config=config, weights=build_model(config, loaded.tokenizer)), out
    )
    (again,) = import_marian(out)
    architecture = again.config.model_dump(exclude={"dropout"})
    assert architecture == model.model_dump(exclude={"dropout"})


def test_the_models_of_an_ensemble_and_a_single_one_of_them_are_read(tmp_path: Path) -> None:
    write_package(tmp_path, yaml_vocabulary=False)
    (tmp_path / "model2.npz").write_bytes((tmp_path / "model.npz").read_bytes())
    decoder = (tmp_path / "decoder.yml").read_text()
    (tmp_path / "decoder.yml").write_text(
        decoder.replace("- model.npz", "- model.npz\n- model2.npz")
    )
    assert len(import_marian(tmp_path)) == 2
    assert len(import_marian(tmp_path / "decoder.yml")) == 2
    assert len(import_marian(tmp_path / "model2.npz")) == 1


@pytest.mark.parametrize(
    ("changed", "content", "message"),
    [
        ("decoder.yml", None, "expected one decoder.yml .* found none"),
        ("model.npz", None, "the file model.npz that it names is not there"),
        ("target.spm", None, "there is no target.spm beside it"),
        ("opus.vocab.yml", "", "the vocabulary has no </s>, which Marian needs"),
        ("opus.vocab.yml", '"</s>": 0\n', "the vocabulary has no <unk>, which Marian needs"),
        (
            "opus.vocab.yml",
            '"</s>": 0\n<unk>: 99\n',
            "has the row 99 for '<unk>', but the model has",
        ),
        ("opus.vocab.yml", '"</s>": 0\n<unk>: 0\n', "two pieces of the source vocabulary have the"),
        ("decoder.yml", "models: model.npz", "models is 'model.npz', expected a list"),
        ("decoder.yml", "models: []\nvocabs: []", "it names 0 models and 0 vocabularies"),
        ("decoder.yml", "- x", "expected names and values, found list"),
        ("decoder.yml", "a: 1\na: 2", "duplicate key 'a'"),
    ],
)
def test_a_package_that_does_not_fit_together_is_refused(
    tmp_path: Path, changed: str, content: str | None, message: str
) -> None:
    write_package(tmp_path, yaml_vocabulary=True)
    if content is None:
        (tmp_path / changed).unlink()
    else:
        (tmp_path / changed).write_text(content)
    with pytest.raises(ExchangeError, match=message):
        write_run(import_marian(tmp_path)[0], tmp_path / "run")


def test_a_zip_whose_decoder_yml_leads_out_of_it_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "opus.zip", "w") as archive:
        archive.writestr("decoder.yml", "models: [/etc/passwd]\nvocabs: []\n")
    with pytest.raises(ExchangeError, match="the file /etc/passwd that it names is not there"):
        import_marian(tmp_path / "opus.zip")


@pytest.mark.parametrize(
    "name", ["decoder.yml", "model.npz", "opus.vocab.yml", "source.spm", "target.spm", "README.md"]
)
def test_a_link_that_leads_out_of_the_package_is_refused(tmp_path: Path, name: str) -> None:
    package = tmp_path / "package"
    package.mkdir()
    write_package(package, yaml_vocabulary=True)
    (package / "README.md").write_text("a model")
    (package / name).rename(tmp_path / "elsewhere")
    (package / name).symlink_to("../elsewhere")
    with pytest.raises(ExchangeError, match=f"{name}: a link that leads out of the model's folder"):
        import_marian(package)
    (tmp_path / "elsewhere").rename(package / "inside")
    (package / name).unlink()
    (package / name).symlink_to("inside")
    import_marian(package)


def test_settings_that_nmt_does_not_have_are_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_package(tmp_path, yaml_vocabulary=False)
    decoder = (tmp_path / "decoder.yml").read_text()
    decoder = decoder.replace("normalize: 1", "normalize: 0.6").replace("penalty: 0", "penalty: 1")
    (tmp_path / "decoder.yml").write_text(decoder)
    import_marian(tmp_path)
    warnings = capsys.readouterr().err
    assert "normalize: 0.6 divides scores by a power of the length" in warnings
    assert "word-penalty: 1 is left out" in warnings


def test_decoder_yml_has_the_settings_of_the_search(tmp_path: Path) -> None:
    export_marian(tiny_run(tmp_path / "run"), tmp_path)
    settings = parse_yaml((tmp_path / "decoder.yml").read_bytes(), "decoder.yml")
    assert settings == {
        "relative-paths": True,
        "models": ["model.npz"],
        "vocabs": ["vocab.spm", "vocab.spm"],
        "beam-size": 4,
        "normalize": 0.6,
        "word-penalty": 0,
        "allow-unk": True,
        "max-length-factor": 3.0,
    }


@pytest.mark.parametrize(
    ("setting", "value", "known"),
    [
        ("norm", "pre", "post"),
        ("positions", "interleaved", "tensor2tensor"),
        ("start_embedding", "learned", "zero"),
        ("layer_norm_epsilon", 1e-5, "1e-06"),
    ],
)
def test_what_marian_cannot_compute_is_named(setting: str, value: Any, known: str) -> None:
    loaded = untrained_run(**{**TINY, setting: value})
    said = f"^Marian has no model.{setting}: {value}, .*; it has {known}; export the model as safe"
    with pytest.raises(ExchangeError, match=said):
        export_marian(loaded, Path("nowhere"))
