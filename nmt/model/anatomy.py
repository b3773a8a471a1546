"""The table of a model's linear maps and norms, by name and shape, from its configuration alone.

What reads, writes or counts weights without PyTorch's modules takes them from here: the C library,
imports and exports, adapters, estimates of memory and operations. A new weight is named here first;
`tests/model/test_anatomy.py` then says who must learn it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from nmt.recipe.config import ModelConfig

Shape = tuple[int, ...]
Stack = Literal["encoder", "decoder"]
WITHOUT_BIAS = ("recurrence.candidate",)
"""names of the linear maps that have no bias"""


@dataclass(frozen=True)
class Part:
    """A linear map or a norm of the encoder or decoder; it has a weight, and mostly a bias."""

    stack: Stack
    layer: int | None
    """index of its layer; None: it comes after the last layer"""
    name: str
    """its name in the layer, such as self_attention.query"""
    shape: Shape
    """of its weight: (outputs, inputs) of a linear map, (D,) of a norm"""
    has_bias: bool = True

    @property
    def path(self) -> str:
        """Its name in the model, such as encoder.layers.0.self_attention.query."""
        layer = "" if self.layer is None else f"layers.{self.layer}."
        return f"{self.stack}.{layer}{self.name}"

    @property
    def weights(self) -> dict[str, Shape]:
        """{name in the part: shape} of its weight and its bias."""
        bias = {"bias": self.shape[:1]} if self.has_bias else {}
        return {"weight": self.shape, **bias}

    @property
    def is_norm(self) -> bool:
        """Whether it is a norm, and not a linear map."""
        return len(self.shape) == 1


def parts_of(config: ModelConfig) -> Iterator[Part]:
    """Yield the linear maps and norms of the encoder, then those of the decoder."""
    depths: dict[Stack, int] = {"encoder": config.encoder_layers, "decoder": config.decoder_layers}
    norm_has_bias = config.norm_kind == "layer"
    for stack, depth in depths.items():
        for layer in range(depth):
            for name, shape in _layer(config, stack).items():
                has_bias = name not in WITHOUT_BIAS and (len(shape) > 1 or norm_has_bias)
                yield Part(stack, layer, name, shape, has_bias)
        if config.norm == "pre":  # after the last layer
            yield Part(stack, None, "norm", (config.d_model,), norm_has_bias)


def weight_shapes(config: ModelConfig, rows: tuple[int, int]) -> dict[str, Shape]:
    """Return {name: shape} of all weights of a model; shared ones have one name.

    `rows` are the sizes of the vocabularies of source and target.
    """
    sides = {"target": rows[1]}
    if config.embeddings != "shared":
        sides["source"] = rows[0]
    if config.embeddings == "separate":
        sides["output"] = rows[1]
    shapes: dict[str, Shape] = {
        f"{side}_embedding.weight": (count, config.d_model) for side, count in sides.items()
    }
    if config.output_bias:
        shapes[output_bias(config)] = (rows[1],)
    for part in parts_of(config):
        shapes |= {f"{part.path}.{kind}": shape for kind, shape in part.weights.items()}
    return shapes


def output_bias(config: ModelConfig) -> str:
    """Return the name of the output bias, which belongs to the matrix that computes logits."""
    return f"{'output' if config.embeddings == 'separate' else 'target'}_embedding.bias"


def _layer(config: ModelConfig, stack: Stack) -> dict[str, Shape]:
    width, inner = config.d_model, config.d_ff
    shapes: dict[str, Shape] = {}
    maps = ("query", "key", "value", "output")
    kinds = ["self_attention", "cross_attention"][: 2 if stack == "decoder" else 1]
    if stack == "decoder" and config.decoder == "ssru":
        shapes |= {f"recurrence.{name}": (width, width) for name in ("candidate", "forget")}
        shapes["recurrence_sublayer.norm"] = (width,)
        kinds.remove("self_attention")
    for attention in kinds:
        shapes |= {f"{attention}.{name}": (width, width) for name in maps}
        shapes[f"{attention}_sublayer.norm"] = (width,)
    shapes["feed_forward.inner"] = (inner, width)
    if config.feed_forward == "gated":
        shapes["feed_forward.gate"] = (inner, width)
    shapes["feed_forward.outer"] = (width, inner)
    shapes["feed_forward_sublayer.norm"] = (width,)
    return shapes
