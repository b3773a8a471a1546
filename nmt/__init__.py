"""nmt: Transformer translation models, from raw parallel text to a score one can defend.

>>> translator = nmt.load("runs/mine")
>>> translator.translate("A dog sleeps.")

>>> model = nmt.transformer_base(37_000)
>>> logits = model(source, target)  # ids (batch, S), (batch, T) -> (batch, T, vocabulary)
"""

from typing import TYPE_CHECKING, Any, Unpack

if TYPE_CHECKING:
    from pathlib import Path

    from nmt.model.attention import AttentionRecord
    from nmt.search.generating_transformer import GeneratingTransformer as Transformer
    from nmt.search.generating_transformer import transformer_base, transformer_big
    from nmt.translation.load import SearchSettings
    from nmt.translation.translator import Translator

__version__ = "0.1.0"
__all__ = ["AttentionRecord", "Transformer", "load", "transformer_base", "transformer_big"]

# the public names that are imported when they are first used: (module, name there)
_LAZY_IMPORTS = {
    "AttentionRecord": ("nmt.model.attention", "AttentionRecord"),
    "Transformer": ("nmt.search.generating_transformer", "GeneratingTransformer"),
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
    model: "str | Path",
    checkpoint: str = "best",
    device: str = "auto",
    precision: str = "auto",
    beam_size: int | None = None,
    length_penalty: float | None = None,
    adapter: "str | Path | None" = None,
    **settings: "Unpack[SearchSettings]",
) -> "Translator":
    """Load a run directory, or a checkpoint inside one, ready to translate and to score.

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
