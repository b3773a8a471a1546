"""Marian: native models in and out, single ones, ensembles, and the packages of OPUS-MT."""

from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from nmt.config import ModelConfig
from nmt.exchange.marian_files import OPTIONS, parse_yaml, read_npz
from nmt.exchange.marian_names import read_config, to_ours


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
