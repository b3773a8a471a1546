"""Marian: native models in and out, single ones, ensembles, and the packages of OPUS-MT."""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from nmt import strict_yaml
from nmt.config import Config, ModelConfig
from nmt.data.tokens.tokenizer import BOS, PAD, Tokenizer
from nmt.errors import ExchangeError
from nmt.exchange.marian_files import OPTIONS, parse_yaml, read_npz, write_npz
from nmt.exchange.marian_names import options_of, read_config, to_marian, to_ours
from nmt.exchange.marian_package import DECODER
from nmt.run_directory import LoadedModel

MODEL = "model.npz"
NEVER = -1e4
"""the bias of tokens that no translation has"""


@dataclass(frozen=True)
class MarianModel:
    """A model of Marian in our names; the rows of its vocabularies keep their order."""

    config: ModelConfig
    weights: dict[str, Tensor]
    options: bytes
    """Marian's own description of the model, YAML that may end in zero bytes"""


def read_model(path: Path) -> MarianModel:
    """Read a model file of Marian.

    Raises:
        ExchangeError: it is damaged, or a model that nmt cannot compute.
    """
    text, weights = read_npz(path)
    options = parse_yaml(text.rstrip(b"\0"), f"{path}: {OPTIONS}")
    config = read_config(options, str(path))
    return MarianModel(config, to_ours(weights, options, config, str(path)), text)


def export_marian(run: LoadedModel, folder: Path) -> None:
    """Write model.npz, the vocabularies and decoder.yml into an empty folder.

    Raises:
        ExchangeError: Marian's format cannot hold the model; the message says what can.
        OSError: a file cannot be written.
    """
    check_sayable(run.config.model)
    names = _write_vocabularies(run.tokenizer, folder)
    sizes = run.tokenizer.source.size, run.tokenizer.target.size
    options = options_of(run.config.model, sizes)
    text = strict_yaml.dump(options).encode() + b"\0"
    weights = to_marian(_with_bias(run), options, run.config.model)
    (folder / MODEL).write_bytes(write_npz(text, weights))
    (folder / DECODER).write_text(_decoder(names, run.config), encoding="utf-8")


def check_sayable(config: ModelConfig) -> None:
    """Check that Marian can compute a model of this architecture.

    Raises:
        ExchangeError: it cannot; the message names the setting.
    """
    for name, expected in (
        ("norm", "post"),
        ("positions", "tensor2tensor"),
        ("start_embedding", "zero"),
        ("layer_norm_epsilon", 1e-6),
    ):
        if (found := getattr(config, name)) != expected:
            raise ExchangeError(
                f"Marian cannot compute the model: it needs model.{name}: {expected}, and the "
                f"model has {found}; export it to ctranslate2 or safetensors, which hold every "
                "model"
            )


def _with_bias(run: LoadedModel) -> dict[str, Tensor]:
    """Return the weights and an output bias, by which PAD and BOS have no probability."""
    weights = {name: weight.detach().float() for name, weight in run.model.named_parameters()}
    side = "output" if run.config.model.embeddings == "separate" else "target"
    name = f"{side}_embedding.bias"
    bias = weights[name].clone() if name in weights else torch.zeros(run.tokenizer.target.size)
    bias[[PAD, BOS]] = NEVER
    return {**weights, name: bias}


def _write_vocabularies(tokenizer: Tokenizer, folder: Path) -> list[str]:
    """Write our SentencePiece models, whose ids are the rows; return the names of both sides."""
    names = ["vocab.spm"] * 2 if tokenizer.shared else ["source.spm", "target.spm"]
    for name, side in zip(names, (tokenizer.source, tokenizer.target), strict=True):
        (folder / name).write_bytes(side.model)
    return names


def _decoder(vocabularies: list[str], config: Config) -> str:
    """Return decoder.yml, with the settings of the search as far as Marian has them."""
    decoding = config.decoding
    exponents = {"average": 1.0, "none": 0.0, "gnmt": decoding.length_penalty}
    return strict_yaml.dump(
        {
            "relative-paths": True,
            "models": [MODEL],
            "vocabs": vocabularies,
            "beam-size": decoding.beam_size,
            "normalize": exponents[decoding.length_normalization],
            "word-penalty": 0,
        }
    )
