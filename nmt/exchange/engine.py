"""The programs that exports are made for: their import, their limits, and what they translate.

An engine is such a program: CTranslate2, transformers, Marian or onnxruntime.
"""

import importlib
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from nmt.errors import ExchangeError, MissingExtraError

if TYPE_CHECKING:
    from nmt.recipe.config import ModelConfig

MAX_SOURCE = 1024
"""tokens after which an exported model cuts a source"""
MAX_TRANSLATION = 256
"""pieces after which a translation for a check is cut, so that the check ends"""

EXCLUDED_BIAS = -1e4
"""the output bias of a token that no translation has: its probability becomes 0, in float16 too"""

Quantization = Literal[
    "int8", "int8_float32", "int8_float16", "int8_bfloat16", "int16", "float16", "bfloat16"
]
"""how weights can be stored other than in float32, in the words of CTranslate2"""


class EngineTranslation(NamedTuple):
    """The greedy translation of one text, by the program that an export was made for."""

    pieces: list[str]
    """target pieces without start and EOS"""
    log_p: float
    """sum of log P of the pieces and of EOS, in nats; not compared if the translation is cut. The
    program decides whether its softmax counts tokens that no translation has, such as PAD"""

    @property
    def is_cut(self) -> bool:
        """Whether the translation may have been cut before its end; some programs count EOS."""
        return len(self.pieces) >= MAX_TRANSLATION - 1


def check_computes(
    program: str, config: "ModelConfig", activations: Iterable[str], names: Collection[str]
) -> None:
    """Check that a program has the activation and the layers of a model; nothing is written.

    `activations` and `names`, those of a `Part`, are all that the program has.

    Raises:
        ExchangeError: the program lacks one of them; the message names it.
    """
    from nmt.model.anatomy import parts_of  # imports pydantic, which `nmt --help` does not need

    known, lacks = list(activations), ""
    if config.activation not in known:
        lacks = f"activation {config.activation!r}; it has {', '.join(known)}"
    for part in parts_of(config):
        if part.name not in names or not {config.d_model, config.d_ff}.issuperset(part.shape):
            lacks = lacks or f"{part.name} of the shape {part.shape}"
    if lacks:
        raise lack_of(program, lacks)


def lack_of(program: str, what: str) -> ExchangeError:
    """Return the error about a part of the model that another program does not have."""
    return ExchangeError(f"{program} has no {what}; export the model as safetensors")


def import_engine(package: str, feature: str) -> Any:
    """Return a package of the extra `exchange`, which is imported only where it is used.

    Raises:
        MissingExtraError: the package is not installed; the message begins with `feature`.
    """
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise MissingExtraError(feature, "exchange") from error
