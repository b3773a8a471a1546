"""ONNX: encoder and decoder as graphs, in the folder layout of optimum and transformers.js.

`onnx/encoder_model.onnx` computes the memory; three graphs compute the logits of the next token.
`decoder_model` has no cache and `decoder_with_past_model` needs one; `decoder_model_merged`, which
transformers.js loads, does the work of either, as its input `use_cache_branch` says. Each has an
int8 version, NAME_quantized.onnx. Inputs and outputs have the names that optimum gives them.
"""

import copy
import importlib
import itertools
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from nmt.config import Config
from nmt.data.tokens.tokenizer import BOS, EOS, PAD
from nmt.errors import ExchangeError, MissingExtraError
from nmt.exchange.engine import LONGEST, EngineTranslation
from nmt.exchange.fast_tokenizer import LONGEST_SOURCE, TOKENIZER, write_tokenizer
from nmt.files import write_json
from nmt.model.attention import AttentionContext
from nmt.model.decoder import DecoderLayer
from nmt.model.layout import Layout
from nmt.model.positional_encoding import PositionalEncoding
from nmt.model.transformer import Transformer
from nmt.run_directory import LoadedModel

LARGEST = 2**31 - 2**24
"""bytes of weights that fit into one ONNX file: protobuf allows 2 GiB"""
OPSET = 17
QUANTIZED = "_quantized"
ENCODER, DECODER = "encoder_model", "decoder_model"
WITH_PAST, MERGED = "decoder_with_past_model", "decoder_model_merged"

BATCH = 16
"""texts that are translated at once, for a check"""

Array = npt.NDArray[Any]
Axes = dict[str, dict[int, str]]
"""names of inputs or outputs of a graph, each with those of its dimensions whose size varies"""
IDS = {0: "batch_size", 1: "decoder_sequence_length"}
SOURCE = {0: "batch_size", 1: "encoder_sequence_length"}


class EncoderGraph(nn.Module):
    """The encoder: ids and their mask (B, S), 1 = token and 0 = padding -> memory (B, S, D)."""

    def __init__(self, model: Transformer, positions: PositionalEncoding) -> None:
        super().__init__()
        self.positions, self.embedding = positions, model.source_embedding
        self.encoder = model.encoder

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return the memory."""
        x = self.positions(self.embedding(ids))
        memory: Tensor = self.encoder(x, AttentionContext(mask.bool()[:, None, None]))
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
            new = layer.cross_attention.project_memory(memory, CHUNKED)
            source = _joined(source, new)
        self.cross_key, self.cross_value = source

    def tensors(self, with_source: bool) -> list[Tensor]:
        """Return the cache for the next step, in the order of `past`, with the source's or not."""
        source = [self.cross_key, self.cross_value] if with_source else []
        return [*self.key_and_value, *source]

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

    def __init__(self, model: Transformer, positions: PositionalEncoding) -> None:
        super().__init__()
        self.positions, self.embedding = positions, model.target_embedding
        self.decoder, self.output_embedding = model.decoder, model.output_embedding

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
        cut to length 0, so that nothing is computed from it. A graph without `memory` returns
        only the cache of target positions, two tensors for each layer.
        """
        if memory is not None and use_past is not None:
            used = use_past.long()[0]
            past = [x[:, :, : x.shape[2] * used] for x in past]
            memory = memory[:, : memory.shape[1] * (1 - used)]
        layers = self.decoder.layers
        stored = [
            GrowingKeyValues(n, memory, past[4 * i : 4 * i + 4]) for i, n in enumerate(layers)
        ]
        start = past[0].shape[2] if past else 0
        x = self.positions(self.embedding(ids), start)
        key = torch.arange(start + ids.shape[1])
        to_past = AttentionContext(key <= key[start:, None])  # (T, L), L positions so far
        to_source = AttentionContext(mask.bool()[:, None, None])
        x = self.decoder.through_layers(x, stored, to_past, to_source)
        cache = [stored_layer.tensors(with_source=memory is not None) for stored_layer in stored]
        return [self.output_embedding.logits(x), *itertools.chain(*cache)]


def export_onnx(run: LoadedModel, folder: Path) -> None:
    """Write graphs, tokenizer and settings into an empty folder, for optimum and transformers.js.

    The model and its parameters are not changed. Sources are cut after `LONGEST_SOURCE` tokens.

    Raises:
        MissingExtraError: onnx or onnxruntime is not installed.
        ExchangeError: the model is too large for a file of ONNX, has two vocabularies, or a
            tokenizer that tokenizer.json cannot express.
        OSError: a file cannot be written.
    """
    _import("onnx")
    quantization = _import("onnxruntime.quantization")
    size = 4 * sum(parameter.numel() for parameter in run.model.parameters())
    if size > LARGEST:
        raise ExchangeError(
            f"the model has {size / 1e9:.1f} GB of weights, but a file of ONNX holds at most "
            f"{LARGEST / 1e9:.1f} GB; export it with --to ctranslate2"
        )
    write_tokenizer(run.tokenizer, folder)
    write_json(folder / "config.json", _configuration(run))
    write_json(folder / "generation_config.json", _generation(run.config))
    (folder / "onnx").mkdir()
    with warnings.catch_warnings():
        # the exporter by tracing, which needs no further package, is to be removed one day; and it
        # warns of each Python number, none of which varies here
        warnings.simplefilter("ignore")
        for path in _export_graphs(run.model, folder / "onnx"):
            quantization.quantize_dynamic(
                path,
                path.with_stem(path.stem + QUANTIZED),
                per_channel=True,
                reduce_range=True,  # 7 bits: sums of 8-bit products overflow on x86 without VNNI
                weight_type=quantization.QuantType.QInt8,
            )


def _export_graphs(model: Transformer, folder: Path) -> Iterator[Path]:
    """Write the four graphs and yield their files."""
    width = model.target_embedding.weight.shape[1]
    positions = copy.deepcopy(model.positions)
    positions(torch.zeros(1, 1, width), LONGEST_SOURCE - 1)  # now the table has twice as many
    encoder, decoder = EncoderGraph(model, positions), DecoderGraph(model, positions)
    ids = mask = torch.ones(2, 3, dtype=torch.long)
    with torch.no_grad():
        memory = encoder(ids, mask)
        cache = decoder(mask, ids, memory, [], None)[1:]
    layers = len(cache) // 4
    both = ("decoder", "encoder")
    source: Axes = {"encoder_attention_mask": SOURCE}
    read: Axes = {"encoder_hidden_states": SOURCE}
    past = _cache_axes("past_key_values", layers, both)
    logits: Axes = {"logits": IDS}
    graphs = {
        DECODER: ((memory, [], None), read, both),
        WITH_PAST: ((None, cache, None), past, ("decoder",)),
        MERGED: (
            (memory, cache, torch.tensor([True])),
            {**read, **past, "use_cache_branch": {}},
            both,
        ),
    }
    names: Axes = {"input_ids": SOURCE, "attention_mask": SOURCE}
    yield _export(encoder, (ids, mask), names, {"last_hidden_state": SOURCE}, folder / ENCODER)
    for name, (arguments, inputs, kept) in graphs.items():
        inputs = {**source, "input_ids": IDS, **inputs}
        outputs = {**logits, **_cache_axes("present", layers, kept)}
        yield _export(decoder, (mask, ids, *arguments), inputs, outputs, folder / name)


def _cache_axes(prefix: str, layers: int, kept: Sequence[str]) -> Axes:
    """Return the names of the tensors of a cache, layer by layer."""
    length = "past_decoder_sequence_length" if prefix.startswith("past") else "decoder_length"
    return {
        f"{prefix}.{layer}.{side}.{kind}": {
            0: "batch_size",
            2: length if side == "decoder" else "encoder_sequence_length_out",
        }
        for layer in range(layers)
        for side in kept
        for kind in ("key", "value")
    }


def _export(
    graph: nn.Module, arguments: tuple[Any, ...], inputs: Axes, outputs: Axes, stem: Path
) -> Path:
    """Write a graph as ONNX and return its file; `arguments` are examples of its inputs."""
    path = stem.with_suffix(".onnx")
    torch.onnx.export(
        graph.eval(),
        arguments,
        str(path),
        input_names=list(inputs),
        output_names=list(outputs),
        dynamic_axes={**inputs, **outputs},
        opset_version=OPSET,
        dynamo=False,
    )
    return path


def _configuration(run: LoadedModel) -> dict[str, Any]:
    """Return config.json: the sizes, which transformers.js needs for the cache, and the ids."""
    model = run.config.model
    return {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        "is_encoder_decoder": True,
        "vocab_size": run.tokenizer.target.size,
        "d_model": model.d_model,
        "encoder_layers": model.encoder_layers,
        "decoder_layers": model.decoder_layers,
        "encoder_attention_heads": model.heads,
        "decoder_attention_heads": model.heads,
        "encoder_ffn_dim": model.d_ff,
        "decoder_ffn_dim": model.d_ff,
        "activation_function": model.activation,
        "max_position_embeddings": 2 * LONGEST_SOURCE,
        "scale_embedding": True,
        "use_cache": True,
        **_ids(),
    }


def _ids() -> dict[str, int]:
    return {
        "pad_token_id": PAD,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
        "decoder_start_token_id": BOS,
    }


def _generation(config: Config) -> dict[str, Any]:
    """Return generation_config.json: our beam, and the ids that no translation has."""
    return {
        **_ids(),
        "bad_words_ids": [[PAD], [BOS]],
        "num_beams": config.decoding.beam_size,
        "max_length": LONGEST,
    }


def _import(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtraError("the format onnx", "exchange") from error


def translate_with_onnxruntime(
    folder: Path, texts: Sequence[str], quantized: bool = False
) -> list[EngineTranslation]:
    """Return greedy translations by the exported encoder and merged decoder, `quantized` or not.

    Raises:
        MissingExtraError: onnxruntime or tokenizers is not installed.
    """
    runtime = _import("onnxruntime")
    tokenizer = _import("tokenizers").Tokenizer.from_file(str(folder / TOKENIZER))
    tokenizer.enable_padding(pad_id=PAD)
    encoder, decoder = (
        runtime.InferenceSession(folder / "onnx" / f"{name}{QUANTIZED * quantized}.onnx")
        for name in (ENCODER, MERGED)
    )
    translations = []
    for first in range(0, len(texts), BATCH):
        batch = list(texts[first : first + BATCH])
        source = np.array([encoding.ids for encoding in tokenizer.encode_batch(batch)])
        for tokens, log_p in zip(*_greedy(encoder, decoder, source), strict=True):
            ended = [int(token) for token in itertools.takewhile(lambda i: i != EOS, tokens)]
            pieces = [tokenizer.id_to_token(token) for token in ended]
            translations.append(EngineTranslation(pieces, float(log_p)))
    return translations


def _greedy(encoder: Any, decoder: Any, source: Array) -> tuple[Array, Array]:
    """Return the most probable tokens (B, T) of source ids (B, S), and the sums of log P (B,)."""
    inputs = {"encoder_attention_mask": (source != PAD).astype(np.int64)}
    (inputs["encoder_hidden_states"],) = encoder.run(
        None, {"input_ids": source, "attention_mask": inputs["encoder_attention_mask"]}
    )
    past = {x.name: x.shape for x in decoder.get_inputs() if x.name.startswith("past")}
    for name, (_, heads, _, width) in past.items():
        inputs[name] = np.zeros((len(source), heads, 0, width), np.float32)
    latest = np.full((len(source), 1), BOS)
    done, sums = np.zeros(len(source), bool), np.zeros(len(source))
    tokens: list[Array] = []
    while not done.all() and len(tokens) < LONGEST:
        inputs |= {"input_ids": latest, "use_cache_branch": np.array([bool(tokens)])}
        logits, *cache = decoder.run(None, inputs)
        inputs |= dict(zip(past, cache, strict=True))
        log_p = torch.from_numpy(logits[:, -1]).double().log_softmax(-1).numpy()  # (B, V)
        log_p[:, [PAD, BOS]] = -np.inf
        latest = log_p.argmax(1)[:, None]
        sums += np.where(done, 0.0, log_p.max(1))
        done |= latest[:, 0] == EOS
        tokens.append(latest)
    return np.concatenate(tokens, 1), sums
