"""A plain folder of our own: configuration, tokenizer, and one set of weights in safetensors.

`nmt translate --model FOLDER` and `nmt.load(FOLDER)` read it like a run directory, and other Python
programs read its three formats, YAML, SentencePiece and safetensors, without nmt.
"""

from pathlib import Path

import torch

from nmt.data.tokens.tokenizer import SHARED, SOURCE
from nmt.errors import ExchangeError
from nmt.recipe.config import Config
from nmt.run.checkpoint import save_checkpoint, weights_digest, weights_of
from nmt.run.directory import RunDirectory
from nmt.run.model import LoadedModel, load_model


def export_safetensors(loaded: LoadedModel, folder: Path) -> None:
    """Write config.yaml, tokenizer/, model.safetensors and manifest.json into an empty folder.

    Raises:
        CheckpointError: the weights cannot be written.
        OSError: another file cannot be written.
    """
    save_checkpoint(folder, weights_of(loaded.model))
    written = RunDirectory(folder)
    written.write_config(_merged(loaded.config))
    loaded.tokenizer.save(written.tokenizer)


def verify_safetensors(loaded: LoadedModel, folder: Path) -> str:
    """Load an exported folder, compare it with `loaded`, and return a text for the model card.

    The text completes the sentence "The export is …" of `model_card`.

    Raises:
        ExchangeError: weights, configuration or vocabulary are not those of `loaded`.
        NmtError: the folder cannot be loaded.
    """
    reloaded = load_model(folder, torch.device("cpu"))
    if (
        weights_digest(reloaded.model) != weights_digest(loaded.model)
        or reloaded.config != _merged(loaded.config)
        or reloaded.tokenizer.differs_from(loaded.tokenizer)
    ):
        raise ExchangeError(
            f"{folder}: holds another model than was written; check the disk and export again"
        )
    return "loaded again: weights, configuration and vocabulary are the same, bit for bit"


def _merged(config: Config) -> Config:
    """Return the settings of a run whose adapter, if it has one, is merged into the weights."""
    return config.model_copy(update={"training": config.training.model_copy(update={"lora": None})})


def usage(loaded: LoadedModel) -> str:
    """Return lines of Python that read the exported folder without nmt, for the model card."""
    model_file = SHARED if loaded.tokenizer.shared else SOURCE
    return (
        "import safetensors.torch, sentencepiece, yaml\n\n"
        'config = yaml.safe_load(open("config.yaml"))["model"]  # heads, norm, activation, …\n'
        'weights = safetensors.torch.load_file("model.safetensors")  # {name: tensor}\n'
        f'tokenizer = sentencepiece.SentencePieceProcessor(model_file="tokenizer/{model_file}")\n'
        'print(weights["target_embedding.weight"].shape, tokenizer.encode("A dog sleeps."))\n'
    )
