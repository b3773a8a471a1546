"""nmt: Transformer translation models, from raw parallel text to a score one can defend.

>>> translator = nmt.load("runs/mine")
>>> translator.translate("A dog sleeps.")
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from nmt.decoding.text_translator import TextTranslator

__version__ = "0.1.0"


def load(
    model: "str | Path",
    checkpoint: str = "best",
    device: str = "auto",
    precision: str = "fp32",
    beam_size: int | None = None,
    length_penalty: float | None = None,
    batch_tokens: int | None = None,
) -> "TextTranslator":
    """Load a run directory, or a checkpoint inside one, ready to translate and to score.

    `checkpoint`: best, last, averaged, moving-average or step-N; `device`: auto, cpu or cuda;
    `precision`: fp32 or bf16. None leaves a setting as the run has it.

    Raises:
        CheckpointError: `model` holds no usable weights.
        ConfigError: a setting cannot be what it was set to.
    """
    from nmt.decoding.text_translator import load_text_translator

    changes = {
        "beam_size": beam_size,
        "length_penalty": length_penalty,
        "batch_tokens": batch_tokens,
    }
    return load_text_translator([model], checkpoint, device, precision, changes)
