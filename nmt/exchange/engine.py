"""The programs that exports are made for: what they have of a model, and what they translate.

An engine is such a program: CTranslate2, transformers, Marian or onnxruntime.
"""

import importlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from nmt.errors import ExchangeError, MissingExtraError
from nmt.kernels.python_code import configured_attributes, what_was_changed

if TYPE_CHECKING:
    from nmt.model.transformer import Transformer
    from nmt.recipe.config import DataConfig, ModelConfig

MAX_SOURCE = 1024
"""tokens after which an exported model cuts a source"""
MAX_TRANSLATION = 256
"""pieces after which a translation for a check is cut, so that the check ends"""

EXCLUDED_BIAS = -1e4
"""the output bias of a token that no translation has: its probability becomes 0, in float16 too"""

Quantization = Literal[
    "int8",
    "int8_float32",
    "int8_float16",
    "int8_bfloat16",
    "int16",
    "float16",
    "bfloat16",
    "float32",
]
"""how weights can be stored, in the words of CTranslate2"""


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


@dataclass(frozen=True)
class Program:
    """A program that computes a model by code of its own, and what it has of nmt's models."""

    name: str
    settings: Mapping[str, Collection[Any]]
    """{setting of `ModelConfig`: the values that it has}; of the others it has all"""
    parts: Collection[str] = ()
    """the names of the `Part`s that it has"""
    instead: str = "export the model as safetensors, or as onnx, which has what PyTorch can trace"

    def check_holds(self, model: "Transformer", config: "ModelConfig") -> None:
        """Check that the program computes what `model` computes; nothing is written.

        Raises:
            ExchangeError: it lacks a setting, a part or a weight, or the Python code of the model
                has been changed; the message names the first of these.
        """
        from nmt.model.anatomy import parts_of, weight_shapes  # not for `nmt --help`

        self.check_settings(config)
        sizes = {config.d_model, config.d_ff}
        for part in parts_of(config):
            if part.name not in self.parts or not sizes.issuperset(part.shape):
                raise self._lacks(f"{part.name} of the shape {part.shape}")
        rows = len(model.source_embedding.weight), len(model.target_embedding.weight)
        found = {name: tuple(weight.shape) for name, weight in model.named_parameters()}
        for name, _ in sorted(found.items() ^ weight_shapes(config, rows).items()):
            raise self._lacks(f"{name} of the shape {found.get(name)}")
        if changed := what_was_changed(model, configured_attributes(config), "model/"):
            raise ExchangeError(
                f"{changed}, and {self.name} computes only the original; {self.instead}; or, if it "
                "computes the same, record that (see CONTRIBUTING.md)"
            )

    def check_settings(self, config: "ModelConfig") -> None:
        """Check that the program has the settings of a model.

        Raises:
            ExchangeError: it has another value of a setting only; the message names it.
        """
        for setting, values in self.settings.items():
            if (value := getattr(config, setting)) not in values:
                known, chosen = ", ".join(map(str, values)), "chosen before training"
                raise self._lacks(f"model.{setting}: {value}, {chosen}; it has {known}")

    def _lacks(self, what: str) -> ExchangeError:
        return ExchangeError(f"{self.name} has no {what}; {self.instead}")


def check_has_no_tags(config: "DataConfig", program: str) -> None:
    """Check that a model is not of many languages, which `program` cannot hold.

    Raises:
        ExchangeError: it is.
    """
    if config.language_tags:
        raise ExchangeError(
            f"the export for {program} begins no translation with the tag of its language, as "
            "data.language_tags asks; export the model as huggingface (if its architecture is that "
            "of NLLB), ctranslate2 or safetensors"
        )


def import_engine(package: str, feature: str) -> Any:
    """Return a package of the extra `exchange`, which is imported only where it is used.

    Raises:
        MissingExtraError: the package is not installed; the message begins with `feature`.
    """
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise MissingExtraError(feature, "exchange") from error
