"""ONNX: a model in the folder layout of optimum and transformers.js, which run it without PyTorch.

`onnx/encoder_model.onnx` computes the memory; three graphs compute the logits of the next token.
`decoder_model` has no cache and `decoder_with_past_model` needs one; `decoder_model_merged`, which
transformers.js loads, does the work of either, as its input `use_cache_branch` says. Each has an
int8 version, NAME_quantized.onnx. index.html translates in the browser.
"""

import importlib
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from nmt.data.tokens.tokenizer import BOS, EOS, PAD
from nmt.errors import ExchangeError, MissingExtraError
from nmt.exchange.engine import LONGEST, EngineTranslation
from nmt.exchange.fast_tokenizer import LONGEST_INPUT, TOKENIZER, UNREADABLE, write_tokenizer
from nmt.exchange.onnx_graphs import ENCODER, MERGED, quietly, write_graphs
from nmt.exchange.onnx_page import page
from nmt.exchange.verify import excluded_ids
from nmt.files import read_json, write_atomically, write_json
from nmt.run_directory import LoadedModel

LARGEST = 2**31 - 2**24
"""bytes of weights that fit into one ONNX file: protobuf allows 2 GiB"""
GRAPHS, QUANTIZED = "onnx", "_quantized"
BATCH = 16
"""texts that are translated at once, for a check"""

Array = npt.NDArray[Any]

GENERATION = "generation_config.json"
USAGE = """\
from optimum.onnxruntime import ORTModelForSeq2SeqLM
from transformers import AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained(".")
model = ORTModelForSeq2SeqLM.from_pretrained(".", subfolder="onnx")
batch = tokenizer(["A dog sleeps."], return_tensors="pt")
print(tokenizer.batch_decode(model.generate(**batch), skip_special_tokens=True))
"""
"""how the exported folder is used, for the model card"""


def export_onnx(run: LoadedModel, folder: Path) -> None:
    """Write graphs, tokenizer, settings and a page into an empty folder.

    The model and its parameters are not changed. A source is cut after `LONGEST_INPUT` tokens, and
    no translation may have more than as many.

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
    ids = {
        "pad_token_id": PAD,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
        "decoder_start_token_id": BOS,
    }
    write_json(folder / "config.json", _configuration(run) | ids)
    beam = run.config.decoding.beam_size
    never = [[token] for token in excluded_ids(run.config.decoding)]
    search = {"bad_words_ids": never, "num_beams": beam, "max_length": LONGEST}
    write_json(folder / GENERATION, ids | search)
    write_atomically(folder / "index.html", page())
    (folder / GRAPHS).mkdir()
    for path in write_graphs(run.model, folder / GRAPHS):
        with quietly():
            quantization.quantize_dynamic(
                path,
                path.with_stem(path.stem + QUANTIZED),
                per_channel=True,
                reduce_range=True,  # 7 bits: sums of 8-bit products overflow on x86 without VNNI
                weight_type=quantization.QuantType.QInt8,
            )


def _configuration(run: LoadedModel) -> dict[str, Any]:
    """Return config.json without ids; transformers.js builds the first cache from its sizes."""
    model = run.config.model
    sides = {
        "layers": (model.encoder_layers, model.decoder_layers),
        "attention_heads": (model.heads, model.heads),
        "ffn_dim": (model.d_ff, model.d_ff),
    }
    return {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        "is_encoder_decoder": True,
        "vocab_size": run.tokenizer.target.size,
        "d_model": model.d_model,
        **{f"encoder_{name}": size for name, (size, _) in sides.items()},
        **{f"decoder_{name}": size for name, (_, size) in sides.items()},
        "activation_function": model.activation,
        "max_position_embeddings": 2 * LONGEST_INPUT,
        "scale_embedding": True,
        "use_cache": True,
    }


def _import(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtraError("the format onnx", "exchange") from error


def translate_with_onnxruntime(
    folder: Path, texts: Sequence[str], quantized: bool = False
) -> list[EngineTranslation]:
    """Return greedy translations by the exported encoder and merged decoder, int8 or float32.

    Raises:
        MissingExtraError: onnxruntime or tokenizers is not installed.
    """
    runtime = _import("onnxruntime")
    tokenizer = _import("tokenizers").Tokenizer.from_file(str(folder / TOKENIZER))
    tokenizer.enable_padding(pad_id=PAD)
    encoder, decoder = (
        runtime.InferenceSession(folder / GRAPHS / f"{name}{QUANTIZED * quantized}.onnx")
        for name in (ENCODER, MERGED)
    )
    never = [token for (token,) in read_json(folder / GENERATION)["bad_words_ids"]]
    translations = []
    for first in range(0, len(texts), BATCH):
        encoded = tokenizer.encode_batch(list(texts[first : first + BATCH]))
        source = np.array([text.ids for text in encoded])
        for tokens, log_p in zip(*_greedy(encoder, decoder, source, never), strict=True):
            kept = itertools.takewhile(lambda token: token != EOS, tokens.tolist())
            pieces = [tokenizer.id_to_token(token).removeprefix(UNREADABLE) for token in kept]
            translations.append(EngineTranslation(pieces, float(log_p)))
    return translations


def _greedy(encoder: Any, decoder: Any, source: Array, never: Sequence[int]) -> tuple[Array, Array]:
    """Return the most probable tokens (B, T) of source ids (B, S), and the sums of log P (B,).

    The ids `never` are no tokens of a translation.
    """
    mask = (source != PAD).astype(np.int64)
    (memory,) = encoder.run(None, {"input_ids": source, "attention_mask": mask})
    inputs = {"encoder_attention_mask": mask, "encoder_hidden_states": memory}
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
        log_p[:, never] = -np.inf
        latest = log_p.argmax(1)[:, None]
        sums += np.where(done, 0.0, log_p.max(1))
        done |= latest[:, 0] == EOS
        tokens.append(latest)
    return np.concatenate(tokens, 1), sums
