"""The graphs of an ONNX export: our modules, with the inputs and outputs that optimum gives them.

PyTorch's exporter by tracing writes down the operations of one run with example inputs. It needs no
package but onnx; the newer exporter, which is to replace it, needs onnxscript as well.
"""

import contextlib
import copy
import logging
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from nmt.errors import ExchangeError
from nmt.exchange.engine import MAX_SOURCE
from nmt.model.attention import AttentionContext
from nmt.model.decoder import DecoderLayer
from nmt.model.transformer import Transformer

# names of the files, which are those of optimum
ENCODER, DECODER = "encoder_model", "decoder_model"
WITH_PAST, MERGED = "decoder_with_past_model", "decoder_model_merged"
OPSET = 17
"""the version of ONNX's operators"""

Axes = dict[str, dict[int, str]]
"""{input or output of a graph: {dimension whose size varies: its name}}"""
TARGET_AXES = {0: "batch_size", 1: "decoder_sequence_length"}
SOURCE_AXES = {0: "batch_size", 1: "encoder_sequence_length"}


class EncoderGraph(nn.Module):
    """The encoder: ids and their mask (B, S), 1 = token and 0 = padding -> memory (B, S, D)."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return the memory."""
        x = self.model.embed(self.model.source_embedding, ids)
        rotation = self.model.positions.rotation(ids.shape[1])
        context = AttentionContext(mask.bool()[:, None, None], rotation=rotation)
        memory: Tensor = self.model.encoder(x, context)
        return memory


class GrowingKeyValues:
    """A `KeyValueView` of tensors that are inputs and outputs of a graph; nothing is overwritten.

    `past` is empty, or has key and value of earlier target positions, then key and value of the
    source: (B, H, L, K) each. If there is a `memory`, those of the source are computed from it and
    put after the ones in `past`.
    """

    def __init__(self, layer: DecoderLayer, memory: Tensor | None, past: Sequence[Tensor]) -> None:
        self.key_and_value, cross_key_and_value = past[:2], past[2:]
        if memory is not None:
            attention = layer.cross_attention
            # without the reshape of `split_heads`, whose -1 has no answer for a memory of length 0
            key, value = (
                torch.stack(projection(memory).chunk(attention.heads, 2), 1)
                for projection in (attention.key, attention.value)
            )
            computed = key, value
            cross_key_and_value = _concatenate(cross_key_and_value, computed)
        self.cross_key, self.cross_value = cross_key_and_value

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Return the keys and values of all positions, those of the new ones (B, H, T, K) last."""
        key, value = _concatenate(self.key_and_value, (key, value))
        self.key_and_value = key, value  # an output of the graph
        return key, value


def _concatenate(past: Sequence[Tensor], new: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Return key and value of the positions in `past`, which may be empty, and then in `new`."""
    if not past:
        return new
    return torch.cat((past[0], new[0]), 2), torch.cat((past[1], new[1]), 2)


class DecoderGraph(nn.Module):
    """The decoder at the next target positions: their logits, and the cache for the step after."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(
        self,
        mask: Tensor,
        ids: Tensor,
        memory: Tensor | None,
        past: list[Tensor],
        use_past: Tensor | None,
    ) -> list[Tensor]:
        """Return logits (B, T, V) after the new target ids (B, T), then the cache.

        `mask` (B, S) is that of the source. `past` is the cache so far, or empty: for each layer
        key and value of the target positions, then of the source, (B, H, L, K) each. A graph with
        both `memory` (B, S, D) and `past` uses one of them, as `use_past` (1,) says; the other is
        cut to length 0, so that nothing is computed from it. A graph without `memory` returns only
        key and value of the target positions, because those of the source do not change.
        """
        if memory is not None and use_past is not None:
            # a factor of 1 or 0, because a traced graph has no `if`
            with_past = use_past.long()[0]
            past = [tensor[:, :, : tensor.shape[2] * with_past] for tensor in past]
            memory = memory[:, : memory.shape[1] * (1 - with_past)]
        # each layer has four tensors in `past`
        views = [
            GrowingKeyValues(layer, memory, past[4 * i : 4 * i + 4])
            for i, layer in enumerate(self.model.decoder.layers)
        ]
        start = past[0].shape[2] if past else 0  # the position of the first of `ids`
        x = self.model.embed(self.model.target_embedding, ids, start)
        positions = torch.arange(start + ids.shape[1])
        rotation = self.model.positions.rotation(ids.shape[1], start)
        mask_of_past = positions <= positions[start:, None]  # (T, start + T)
        causal = AttentionContext(mask_of_past, rotation=rotation)
        to_source = AttentionContext(mask.bool()[:, None, None])  # (B, 1, 1, S)
        x = self.model.decoder.through_layers(x, views, causal, to_source)
        cache: list[Tensor] = []
        for view in views:
            cache += view.key_and_value
            if memory is not None:
                cache += [view.cross_key, view.cross_value]
        return [self.model.output_embedding.logits(x), *cache]


def write_graphs(model: Transformer, folder: Path) -> list[Path]:
    """Write the encoder and the three decoders into a folder, and return their files.

    Raises:
        ExchangeError: the model cannot be traced, or ONNX lacks one of its operators.
        OSError: a file cannot be written.
    """
    model = copy.deepcopy(model).cpu().eval()
    # The graphs hold the table of positions as it is now. A sentence that ends at `MAX_SOURCE`
    # makes it grow to twice that length.
    model.positions.up_to(MAX_SOURCE)
    paths = []
    with quietly(), _explaining():
        for name, module, example, inputs, outputs in _graphs(model):
            path = folder / f"{name}.onnx"
            paths.append(path)
            torch.onnx.export(
                module,
                example,
                str(path),
                input_names=list(inputs),
                output_names=list(outputs),
                dynamic_axes={**inputs, **outputs},
                opset_version=OPSET,
                dynamo=False,
            )
    return paths


@contextlib.contextmanager
def _explaining() -> Iterator[None]:
    """Turn what PyTorch, or a model that was changed, raises in the block into a sentence.

    Raises:
        ExchangeError: the model cannot be traced, or ONNX lacks one of its operators.
    """
    try:
        yield
    except (OSError, MemoryError):
        raise
    except Exception as error:  # a changed model may raise anything
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise ExchangeError(
            f"ONNX cannot hold the model, of which PyTorch says: {reason}; export it as safetensors"
        ) from error


def _graphs(
    model: Transformer,
) -> list[tuple[str, nn.Module, tuple[object, ...], Axes, Axes]]:
    """Return the encoder and the three decoders; optimum knows their tensors by these names.

    Of each graph: its name, its module, arguments of the module's `forward` in the run that is
    traced, its inputs in the order of the tensors in these, and its outputs.
    """
    encoder, decoder = EncoderGraph(model), DecoderGraph(model)
    ids = mask = torch.ones(2, 3, dtype=torch.long)  # (B, S), and (B, T) of the decoder
    with torch.no_grad():
        memory = encoder(ids, mask)
        _, *cache = decoder(mask, ids, memory, [], None)
    use_past = torch.tensor([True])
    layers = len(model.decoder.layers)
    source_ids: Axes = {"input_ids": SOURCE_AXES, "attention_mask": SOURCE_AXES}
    mask_and_ids: Axes = {"encoder_attention_mask": SOURCE_AXES, "input_ids": TARGET_AXES}
    with_memory: Axes = {**mask_and_ids, "encoder_hidden_states": SOURCE_AXES}
    past = _cache_axes("past_key_values", layers)
    with_past: Axes = {**mask_and_ids, **past}
    with_both: Axes = {**with_memory, **past, "use_cache_branch": {}}
    outputs: Axes = {"logits": TARGET_AXES, **_cache_axes("present", layers)}
    target_only = {name: axes for name, axes in outputs.items() if ".encoder." not in name}
    return [
        (ENCODER, encoder, (ids, mask), source_ids, {"last_hidden_state": SOURCE_AXES}),
        (DECODER, decoder, (mask, ids, memory, [], None), with_memory, outputs),
        (WITH_PAST, decoder, (mask, ids, None, cache, None), with_past, target_only),
        (MERGED, decoder, (mask, ids, memory, cache, use_past), with_both, outputs),
    ]


def _cache_axes(prefix: str, layers: int) -> Axes:
    """Return the names of the tensors of a cache, layer by layer; "decoder" is the target side."""
    return {
        f"{prefix}.{layer}.{side}.{tensor}": {0: "batch_size", 2: f"{prefix}_{side}_length"}
        for layer in range(layers)
        for side in ("decoder", "encoder")
        for tensor in ("key", "value")
    }


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Silence the exporter during the block.

    It warns of its age and of each constant, and prints the graph that it cannot export to stdout.
    """
    level, inside = logging.root.manager.disable, vars(torch._C)
    print_graph = inside["_jit_onnx_log"]  # PyTorch switches it on again where it is switched off
    inside["_jit_onnx_log"] = lambda *_: None
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        inside["_jit_onnx_log"] = print_graph
        logging.disable(level)
