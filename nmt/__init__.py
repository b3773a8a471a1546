"""nmt: Transformer translation models, from raw parallel text to a score one can defend.

>>> translator = nmt.load("runs/mine")
>>> translator.translate("A dog sleeps.")

>>> model = nmt.transformer_base(37_000)
>>> logits = model(source, target)  # ids (batch, S), (batch, T) -> (batch, T, vocabulary)

README.md of this folder has all public names, which are those of `__all__`.
"""

import sys
from typing import TYPE_CHECKING, Any, Unpack

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from nmt.data.prepared import Prepared
    from nmt.data.tokens.batch import Batch
    from nmt.errors import Log, NmtError
    from nmt.model.attention import AttentionRecord, StateRecord
    from nmt.recipe.config import Config
    from nmt.run.model import LoadedModel, build_model
    from nmt.search.generating_transformer import GeneratingTransformer as Transformer
    from nmt.search.generating_transformer import transformer_base, transformer_big
    from nmt.training.callbacks import Callbacks
    from nmt.training.loss import Loss
    from nmt.training.save_run import save_run
    from nmt.translation.line import Translation
    from nmt.translation.load import SearchSettings
    from nmt.translation.scoring import TargetScore
    from nmt.translation.translator import Translator

__version__ = "0.1.0"
__all__ = [
    "AttentionRecord",
    "Batch",
    "Callbacks",
    "Config",
    "LoadedModel",
    "Loss",
    "NmtError",
    "Prepared",
    "StateRecord",
    "TargetScore",
    "Transformer",
    "Translation",
    "Translator",
    "build_model",
    "load",
    "open_run",
    "prepare",
    "read_config",
    "save_run",
    "train",
    "transformer_base",
    "transformer_big",
]

# the public names that are imported when they are first used: (module, name there)
_LAZY_IMPORTS = {
    "AttentionRecord": ("nmt.model.attention", "AttentionRecord"),
    "Batch": ("nmt.data.tokens.batch", "Batch"),
    "Callbacks": ("nmt.training.callbacks", "Callbacks"),
    "Config": ("nmt.recipe.config", "Config"),
    "LoadedModel": ("nmt.run.model", "LoadedModel"),
    "Loss": ("nmt.training.loss", "Loss"),
    "NmtError": ("nmt.errors", "NmtError"),
    "Prepared": ("nmt.data.prepared", "Prepared"),
    "StateRecord": ("nmt.model.attention", "StateRecord"),
    "TargetScore": ("nmt.translation.scoring", "TargetScore"),
    "Transformer": ("nmt.search.generating_transformer", "GeneratingTransformer"),
    "Translation": ("nmt.translation.line", "Translation"),
    "Translator": ("nmt.translation.translator", "Translator"),
    "build_model": ("nmt.run.model", "build_model"),
    "save_run": ("nmt.training.save_run", "save_run"),
    "transformer_base": ("nmt.search.generating_transformer", "transformer_base"),
    "transformer_big": ("nmt.search.generating_transformer", "transformer_big"),
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, as PyTorch takes seconds to load (PEP 562)."""
    if name not in _LAZY_IMPORTS:
        raise AttributeError(f"module 'nmt' has no attribute '{name}'")
    import importlib

    module, attribute = _LAZY_IMPORTS[name]
    return getattr(importlib.import_module(module), attribute)


def load(
    model: "str | Path | LoadedModel",
    checkpoint: str = "best",
    device: str = "auto",
    precision: str = "auto",
    beam_size: int | None = None,
    length_penalty: float | None = None,
    adapter: "str | Path | None" = None,
    **settings: "Unpack[SearchSettings]",
) -> "Translator":
    """Load a run directory, or a checkpoint inside one, ready to translate and to score.

    `model` may also be what `open_run` returned: the weights that it has now, on its device.
    `checkpoint`: best, last, averaged, moving-average or step-N; `device`: auto, cpu, cuda, cuda:1
    or another that PyTorch finds; `precision`: auto, fp32, bf16 or int8, which only the C library
    computes (scores are in fp32). A setting of None is as in the run. `adapter`: a run with
    training.lora, a checkpoint of it or a .safetensors file, whose parent is `model`. `settings`
    are other settings of `SearchSettings`.

    Raises:
        CheckpointError: `model` holds no usable weights.
        ConfigError: an impossible or unknown setting.
    """
    from nmt.translation.load import load_translator

    changes = {"beam_size": beam_size, "length_penalty": length_penalty, **settings}
    return load_translator([model], checkpoint, device, precision, changes, adapter=adapter)


def open_run(path: "str | Path", checkpoint: str = "best", device: str = "auto") -> "LoadedModel":
    """Open a run directory, or a checkpoint inside one, to look into it.

    Returns configuration, tokenizer and PyTorch's model in eval mode, on `device`; `checkpoint` and
    `device` are those of `load`.

    Raises:
        CheckpointError: `path` holds no usable weights.
        ConfigError: PyTorch does not find the device.
    """
    from nmt.machine.device import pick_device
    from nmt.run.model import load_model

    return load_model(path, pick_device(device), checkpoint)


def read_config(name: "str | Path", settings: "Mapping[str, object] | None" = None) -> "Config":
    """Read a recipe: a file, or one that comes with the package, such as "demo.yaml".

    `settings` replace some of it: {"model.d_model": 128, "training.max_steps": 500}.

    Raises:
        ConfigError: the file cannot be read, or it or a setting has a mistake.
    """
    import json

    from nmt.recipe.config_file import load_config

    changes = (settings or {}).items()  # JSON is also YAML
    return load_config(str(name), [f"{key}={json.dumps(value)}" for key, value in changes])


def prepare(config: "Config", log: "Log | None" = None) -> "Prepared":
    """Return the tokenizer and the encoded training text of a recipe, as `nmt prepare` makes them.

    What was prepared before is found again. `log` gets messages; None: they go to stderr.

    Raises:
        ConfigError: the recipe names no training text.
        DataError: the text cannot be used as it is.
    """
    from nmt.data.prepared import prepare as prepare_data

    return prepare_data(config, log or _say)


def train(
    config: "Config",
    path: "str | Path",
    callbacks: "Callbacks | None" = None,
    log: "Log | None" = None,
) -> "LoadedModel":
    """Train a model in the run directory `path` as `nmt train` does, and return its best weights.

    If the directory has an unfinished run, that goes on. `callbacks` are functions of your own.
    `log` gets messages; None: they go to stderr, as progress does.

    Raises:
        NmtError: training cannot start or continue; the message says why.
    """
    from pathlib import Path

    from nmt.run.model import load_model
    from nmt.training.train import train as train_run

    return load_model(train_run(config, Path(path), log or _say, callbacks).path)


def _say(message: str) -> None:
    print(message, file=sys.stderr)
