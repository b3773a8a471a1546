"""Our models in Marian, and Marian's in ours."""

from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.config import Config, ModelConfig, TokenizerConfig
from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.tokenizer import BOS, EOS, PAD, Tokenizer
from nmt.data.tokens.vocabulary import learn_vocabulary
from nmt.errors import ExchangeError
from nmt.exchange.engine import LONGEST
from nmt.exchange.marian import check_sayable, export_marian, read_model
from nmt.exchange.marian_engine import translate_with_marian
from nmt.exchange.marian_files import parse_yaml, read_bytes
from nmt.run_directory import LoadedModel, build_model
from tests.exchange.marian_packages import TEXT

SAYABLE: dict[str, Any] = {"positions": "tensor2tensor", "start_embedding": "zero"}
TINY: dict[str, Any] = {"d_model": 8, "heads": 2, "d_ff": 12, "encoder_layers": 2}
TINY |= {"decoder_layers": 1, "dropout": 0.0, **SAYABLE}


def tiny_tokenizer(shared: bool) -> Tokenizer:
    config = TokenizerConfig(vocabulary_size=40, shared=shared, kind="char")
    return learn_vocabulary([SentencePair(text, text.upper()) for text in TEXT], config)


def tiny_run(**changes: Any) -> LoadedModel:
    config = ModelConfig(**{**TINY, **changes})
    shared = config.embeddings == "shared"
    tokenizer = tiny_tokenizer(shared)
    whole = Config(model=config, tokenizer=TokenizerConfig(shared=shared))
    torch.manual_seed(1)
    model = build_model(whole, tokenizer).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.2)
    return LoadedModel(whole, tokenizer, model, Path("run"))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"activation": "swish", "output_bias": True},
        {"activation": "gelu", "embeddings": "separate", "output_bias": True},
        {"embeddings": "target"},
    ],
)
def test_marian_translates_an_exported_model_as_we_do(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    pytest.importorskip("pymarian")
    run = tiny_run(**changes)
    export_marian(run, tmp_path)
    index = {piece: i for i, piece in enumerate(run.tokenizer.target.pieces)}
    translations = translate_with_marian(tmp_path, TEXT[:3])
    for text, (pieces, log_p) in zip(TEXT[:3], translations, strict=True):
        is_cut = len(pieces) >= LONGEST - 1
        target = [index[piece] for piece in pieces] + [EOS] * (not is_cut)
        source = torch.tensor(run.tokenizer.source.encode([text]))
        logits = run.model(source, torch.tensor([[BOS, *target[:-1]]]))[0]
        logits[:, [PAD, BOS]] = -torch.inf
        scores = logits.log_softmax(1)
        assert scores.argmax(1).tolist() == target
        if not is_cut:
            total = scores.gather(1, torch.tensor(target)[:, None]).sum().item()
            assert log_p == pytest.approx(total, abs=1e-4 * len(target))


def test_what_was_exported_is_read_back(tmp_path: Path) -> None:
    run = tiny_run(activation="swish", output_bias=True)
    export_marian(run, tmp_path)
    model = read_model(tmp_path / "model.npz")
    assert model.config == run.config.model.model_copy(update={"dropout": 0.1})
    weights = dict(run.model.named_parameters())
    assert model.weights.keys() == weights.keys()
    for name, weight in model.weights.items():
        if not name.endswith("embedding.bias"):
            assert torch.equal(weight, weights[name])


def test_decoder_yml_has_the_settings_of_the_search(tmp_path: Path) -> None:
    export_marian(tiny_run(), tmp_path)
    settings = parse_yaml(read_bytes(tmp_path / "decoder.yml"), "decoder.yml")
    assert settings == {
        "relative-paths": True,
        "models": ["model.npz"],
        "vocabs": ["vocab.spm", "vocab.spm"],
        "beam-size": 4,
        "normalize": 0.6,
        "word-penalty": 0,
    }


@pytest.mark.parametrize(
    ("changes", "setting"),
    [
        ({"norm": "pre"}, "model.norm: post"),
        ({"positions": "interleaved"}, "model.positions: tensor2tensor"),
        ({"start_embedding": "learned"}, "model.start_embedding: zero"),
        ({"layer_norm_epsilon": 1e-5}, "model.layer_norm_epsilon: 1e-06"),
    ],
)
def test_what_marian_cannot_compute_is_named(changes: dict[str, Any], setting: str) -> None:
    with pytest.raises(ExchangeError, match=f"it needs {setting}.*export it to ctranslate2"):
        check_sayable(ModelConfig(**{**TINY, **changes}))
