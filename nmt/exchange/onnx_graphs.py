"""The graphs of an ONNX export: our modules, with the inputs and outputs that optimum gives them.

PyTorch's exporter by tracing writes down the operations of one run with example inputs. It needs no
package but onnx; the newer exporter, which is to replace it, needs onnxscript as well.
"""

import contextlib
import copy
import itertools
import logging
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from nmt.exchange.fast_tokenizer import LONGEST_INPUT
from nmt.model.attention import AttentionContext
from nmt.model.decoder import DecoderLayer
from nmt.model.layout import Layout
from nmt.model.transformer import Transformer

ENCODER, DECODER = "encoder_model", "decoder_model"
WITH_PAST, MERGED = "decoder_with_past_model", "decoder_model_merged"
OPSET = 17

Axes = dict[str, dict[int, str]]
"""names of inputs or outputs of a graph, each with those of its dimensions whose size varies"""
TARGET = {0: "batch_size", 1: "decoder_sequence_length"}
SOURCE = {0: "batch_size", 1: "encoder_sequence_length"}


class EncoderGraph(nn.Module):
    """The encoder: ids and their mask (B, S), 1 = token and 0 = padding -> memory (B, S, D)."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return the memory."""
        x = self.model.positions(self.model.source_embedding(ids))
        memory: Tensor = self.model.encoder(x, AttentionContext(mask.bool()[:, None, None]))
        return memory


class ChunkedLayout(Layout):
    """Splits heads without a reshape, for which ONNX finds no width where a memory has length 0."""

    def split_heads(self, x: Tensor, heads: int) -> Tensor:
        """Split the width into heads: (B, L, D) -> (B, H, L, K)."""
        return torch.stack(x.chunk(heads, 2), 1)


CHUNKED = ChunkedLayout()


class GrowingKeyValues:
    """A `KeyValueView` of tensors that are inputs and outputs of a graph; nothing is overwritten.

    `past` has the keys and values of earlier target positions, then of the source: (B, H, L, K).
    Those of the source are computed from `memory` if there is one, and follow any in `past`.
    """

    def __init__(self, layer: DecoderLayer, memory: Tensor | None, past: Sequence[Tensor]) -> None:
        self.key_and_value, source = past[:2], past[2:]
        if memory is not None:
            source = _joined(source, layer.cross_attention.project_memory(memory, CHUNKED))
        self.cross_key, self.cross_value = source

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Return the keys and values of all positions, those of the new ones (B, H, T, K) last."""
        self.key_and_value = key, value = _joined(self.key_and_value, (key, value))
        return key, value


def _joined(past: Sequence[Tensor], new: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Return keys and values with those of the past, if there are any, before them."""
    if not past:
        return new
    return torch.cat((past[0], new[0]), 2), torch.cat((past[1], new[1]), 2)


class DecoderGraph(nn.Module):
    """The decoder for the next positions: logits (B, T, V), and the cache for the step after."""

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
        """Return logits (B, T, V) after ids (B, T), then the cache: four tensors for each layer.

        `past` is the cache so far, or empty; `mask` (B, S) is that of the source. A graph that has
        both `memory` and `past` ignores one of them, as `use_past` (1,) says: the ignored one is
        cut to length 0, so that nothing is computed from it. A graph without `memory` returns only
        the cache of target positions, two tensors for each layer.
        """
        if memory is not None and use_past is not None:
            used = use_past.long()[0]
            past = [x[:, :, : x.shape[2] * used] for x in past]
            memory = memory[:, : memory.shape[1] * (1 - used)]
        layers = self.model.decoder.layers
        stored = [
            GrowingKeyValues(each, memory, past[4 * i :][:4]) for i, each in enumerate(layers)
        ]
        start = past[0].shape[2] if past else 0
        x = self.model.positions(self.model.target_embedding(ids), start)
        key = torch.arange(start + ids.shape[1])
        to_past = AttentionContext(key <= key[start:, None])  # (T, L), L positions so far
        to_source = AttentionContext(mask.bool()[:, None, None])
        x = self.model.decoder.through_layers(x, stored, to_past, to_source)
        cache: list[Tensor] = []
        for view in stored:
            source = () if memory is None else (view.cross_key, view.cross_value)
            cache += [*view.key_and_value, *source]
        return [self.model.output_embedding.logits(x), *cache]


def write_graphs(model: Transformer, folder: Path) -> list[Path]:
    """Write the encoder and the three decoders into a folder, and return their files.

    Raises:
        OSError: a file cannot be written.
    """
    model = copy.deepcopy(model).cpu().eval()
    width = model.target_embedding.weight.shape[1]
    model.positions(torch.zeros(1, 1, width), LONGEST_INPUT - 1)  # its table has now 2,048 rows
    encoder, decoder = EncoderGraph(model), DecoderGraph(model)
    ids = mask = torch.ones(2, 3, dtype=torch.long)
    with torch.no_grad():
        memory = encoder(ids, mask)
        _, *cache = decoder(mask, ids, memory, [], None)
    layers = len(model.decoder.layers)
    past = _cache_axes("past_key_values", layers)
    read: Axes = {
        "encoder_attention_mask": SOURCE,
        "input_ids": TARGET,
        "encoder_hidden_states": SOURCE,
    }
    both: Axes = {"logits": TARGET, **_cache_axes("present", layers)}
    target_only = {name: axes for name, axes in both.items() if ".encoder." not in name}
    without_memory = {name: read[name] for name in ("encoder_attention_mask", "input_ids")} | past
    with_branch: Axes = {**read, **past, "use_cache_branch": {}}
    use_past = torch.tensor([True])
    names: Axes = {"input_ids": SOURCE, "attention_mask": SOURCE}
    graphs: list[tuple[str, nn.Module, tuple[object, ...], Axes, Axes]] = [
        (ENCODER, encoder, (ids, mask), names, {"last_hidden_state": SOURCE}),
        (DECODER, decoder, (mask, ids, memory, [], None), read, both),
        (WITH_PAST, decoder, (mask, ids, None, cache, None), without_memory, target_only),
        (MERGED, decoder, (mask, ids, memory, cache, use_past), with_branch, both),
    ]
    for name, graph, example, inputs, outputs in graphs:
        with quietly():
            torch.onnx.export(
                graph,
                example,
                str(folder / f"{name}.onnx"),
                input_names=list(inputs),
                output_names=list(outputs),
                dynamic_axes={**inputs, **outputs},
                opset_version=OPSET,
                dynamo=False,
            )
    return [folder / f"{name}.onnx" for name, *_ in graphs]


def _cache_axes(prefix: str, layers: int) -> Axes:
    """Return the names of the tensors of a cache, layer by layer."""
    length = "past_decoder_sequence_length" if prefix.startswith("past") else "decoder_length"
    lengths = {"decoder": length, "encoder": "encoder_sequence_length_out"}
    return {
        f"{prefix}.{layer}.{side}.{kind}": {0: "batch_size", 2: lengths[side]}
        for layer, side, kind in itertools.product(range(layers), lengths, ("key", "value"))
    }


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Silence, during the block, warnings of the exporter about its own age and of each number."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
