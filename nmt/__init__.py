"""nmt: Transformer translation models, from raw parallel text to a score one can defend.

>>> translator = nmt.load("runs/mine")
>>> translator.translate("A dog sleeps.")

>>> model = nmt.transformer_base(37_000)
>>> logits = model(source, target)  # ids (B, S), (B, T) -> (B, T, V)
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from nmt.model.attention import AttentionRecord
    from nmt.search.generating_transformer import Transformer, transformer_base, transformer_big
    from nmt.translation.text_translator import TextTranslator

__version__ = "0.1.0"
__all__ = ["AttentionRecord", "Transformer", "load", "transformer_base", "transformer_big"]

_FROM = {
    "AttentionRecord": "nmt.model.attention",
    "Transformer": "nmt.search.generating_transformer",
    "transformer_base": "nmt.search.generating_transformer",
    "transformer_big": "nmt.search.generating_transformer",
}


def __getattr__(name: str) -> Any:
    """Import the model when it is first asked for: PyTorch takes seconds (PEP 562)."""
    if name not in _FROM:
        raise AttributeError(f"module 'nmt' has no attribute '{name}'")
    import importlib

    return getattr(importlib.import_module(_FROM[name]), name)


def load(
    model: "str | Path",
    checkpoint: str = "best",
    device: str = "auto",
    precision: str = "auto",
    beam_size: int | None = None,
    length_penalty: float | None = None,
    batch_tokens: int | None = None,
    coverage_penalty: float | None = None,
    copy_unknown: bool | None = None,
    early_stopping: bool | None = None,
    shortlist: int | None = None,
) -> "TextTranslator":
    """Load a run directory, or a checkpoint inside one, ready to translate and to score.

    `checkpoint`: best, last, averaged, moving-average or step-N; `device`: auto, cpu, cuda,
    cuda:1 or another that PyTorch finds;
    `precision`: auto, fp32, bf16 or int8, in which scores are computed as in fp32. None leaves a
    setting as the run has it. `shortlist`: with so many candidates of each source token, learnt by
    `nmt shortlist`, instead of the whole vocabulary.

    Raises:
        CheckpointError: `model` holds no usable weights.
        ConfigError: a setting cannot be what it was set to.
    """
    from nmt.translation.text_translator import load_text_translator

    changes = {
        "beam_size": beam_size,
        "length_penalty": length_penalty,
        "batch_tokens": batch_tokens,
        "coverage_penalty": coverage_penalty,
        "copy_unknown": copy_unknown,
        "early_stopping": early_stopping,
    }
    return load_text_translator(
        [model], checkpoint, device, precision, changes, shortlist=shortlist
    )
