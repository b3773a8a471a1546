"""ONNX: a model in the folder layout of optimum and transformers.js, which run it without PyTorch.

`onnx/encoder_model.onnx` computes the memory; three graphs compute the logits of the next token.
`decoder_model` has no cache and `decoder_with_past_model` needs one; `decoder_model_merged`, which
transformers.js loads, does the work of either, as its input `use_cache_branch` says. Each has an
int8 version, NAME_quantized.onnx. index.html translates in the browser.
"""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from nmt.data.tokens.tokenizer import BOS, EOS, PAD
from nmt.errors import ExchangeError
from nmt.exchange.engine import (
    MAX_SOURCE,
    MAX_TRANSLATION,
    EngineTranslation,
    Program,
    check_has_no_tags,
    import_engine,
)
from nmt.exchange.fast_tokenizer import FAST_TOKENIZER, UNREADABLE, write_tokenizer
from nmt.exchange.huggingface import CONFIG, GENERATION
from nmt.exchange.huggingface_export import SPECIAL_IDS
from nmt.exchange.huggingface_names import settings_of
from nmt.exchange.onnx_graphs import ENCODER, MERGED, quietly, write_graphs
from nmt.exchange.verify import excluded_ids
from nmt.files import read_json, write_atomically, write_json
from nmt.run.model import LoadedModel

PROGRAM = Program(
    "ONNX",
    # inputs and outputs of the graphs are keys and values, and the mask of the source
    {"decoder": ["attention"], "source_eos": [True]},
    instead="export the model as safetensors",
)
"""of the rest it has what PyTorch can trace"""
MAX_WEIGHT_BYTES = 2**31 - 2**24
"""bytes of weights that fit into one ONNX file: protobuf allows 2 GiB, 16 MiB are for the rest"""
GRAPHS, QUANTIZED = "onnx", "_quantized"
"""the folder of the graphs, and the end of the names of those in int8"""
PAGE = Path(__file__).with_name("onnx_page.html")
"""a page that translates in the browser, by transformers.js and the graphs beside it"""
FEATURE = "the format onnx"
BATCH = 16
"""texts that are translated at once, for a check"""

Array = npt.NDArray[Any]

USAGE = """\
from optimum.onnxruntime import ORTModelForSeq2SeqLM
from transformers import AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained(".")
model = ORTModelForSeq2SeqLM.from_pretrained(".", subfolder="onnx")
batch = tokenizer(["A dog sleeps."], return_tensors="pt")
print(tokenizer.batch_decode(model.generate(**batch), skip_special_tokens=True))
"""
"""how the exported folder is used, for the model card"""


def export_onnx(loaded: LoadedModel, folder: Path) -> None:
    """Write graphs, tokenizer, settings and a page into an empty folder.

    The model and its parameters are not changed. A source is cut after `MAX_SOURCE` tokens.

    Raises:
        MissingExtraError: onnx or onnxruntime is not installed.
        ExchangeError: the model is too large for a file of ONNX, has two vocabularies, something
            that ONNX lacks, or a tokenizer that tokenizer.json cannot express.
        OSError: a file cannot be written.
    """
    import_engine("onnx", FEATURE)
    quantization = import_engine("onnxruntime.quantization", FEATURE)
    PROGRAM.check_settings(loaded.config.model)
    check_has_no_tags(loaded.config.data, "transformers.js, which the format onnx is for,")
    # bytes of float32
    size = 4 * sum(parameter.numel() for parameter in loaded.model.parameters())
    if size > MAX_WEIGHT_BYTES:
        raise ExchangeError(
            f"the model has {size / 1e9:.1f} GB of weights, but a file of ONNX holds at most "
            f"{MAX_WEIGHT_BYTES / 1e9:.1f} GB; export it as ctranslate2"
        )
    write_tokenizer(loaded.tokenizer, folder)
    architecture = {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        **settings_of(loaded.config.model),
        "vocab_size": loaded.tokenizer.target.size,
        "max_position_embeddings": 2 * MAX_SOURCE,
        "use_cache": True,
    }
    search = {
        "bad_words_ids": [[token] for token in excluded_ids(loaded.config.decoding)],
        "num_beams": loaded.config.decoding.beam_size,
        "max_length": MAX_TRANSLATION,
    }
    # transformers.js takes the sizes of its first cache from config.json
    write_json(folder / CONFIG, architecture | SPECIAL_IDS)
    write_json(folder / GENERATION, SPECIAL_IDS | search)
    write_atomically(folder / "index.html", PAGE.read_text("utf-8"))
    (folder / GRAPHS).mkdir()
    for path in write_graphs(loaded.model, folder / GRAPHS):
        with quietly():
            quantization.quantize_dynamic(
                path,
                path.with_stem(path.stem + QUANTIZED),
                per_channel=True,
                reduce_range=True,  # 7 bits: sums of 8-bit products overflow on x86 without VNNI
                weight_type=quantization.QuantType.QInt8,
            )


def translate_with_onnxruntime(
    folder: Path, texts: Sequence[str], quantized: bool = False
) -> list[EngineTranslation]:
    """Return greedy translations by the exported encoder and merged decoder, int8 or float32.

    Raises:
        MissingExtraError: onnxruntime or tokenizers is not installed.
    """
    runtime = import_engine("onnxruntime", FEATURE)
    tokenizers = import_engine("tokenizers", FEATURE)
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / FAST_TOKENIZER))
    tokenizer.enable_padding(pad_id=PAD)
    suffix = QUANTIZED if quantized else ""
    encoder, decoder = (
        runtime.InferenceSession(folder / GRAPHS / f"{name}{suffix}.onnx")
        for name in (ENCODER, MERGED)
    )
    excluded = [token for (token,) in read_json(folder / GENERATION)["bad_words_ids"]]
    translations = []
    for first in range(0, len(texts), BATCH):
        encodings = tokenizer.encode_batch(list(texts[first : first + BATCH]))
        source = np.array([encoding.ids for encoding in encodings])  # (B, S)
        tokens, log_p = _greedy(encoder, decoder, source, excluded)
        for row, row_log_p in zip(tokens.tolist(), log_p.tolist(), strict=True):
            until_eos = itertools.takewhile(lambda token: token != EOS, row)
            pieces = [tokenizer.id_to_token(token).removeprefix(UNREADABLE) for token in until_eos]
            translations.append(EngineTranslation(pieces, row_log_p))
    return translations


def _greedy(
    encoder: Any, decoder: Any, source: Array, excluded: Sequence[int]
) -> tuple[Array, Array]:
    """Return the most probable tokens (B, T) of source ids (B, S), and the sums of log P (B,).

    The ids `excluded` are in no translation. What stands after the EOS of a row has no meaning.
    """
    mask = (source != PAD).astype(np.int64)
    (memory,) = encoder.run(None, {"input_ids": source, "attention_mask": mask})
    inputs = {"encoder_attention_mask": mask, "encoder_hidden_states": memory}
    past = [tensor for tensor in decoder.get_inputs() if tensor.name.startswith("past")]
    past_names = [tensor.name for tensor in past]
    for tensor in past:
        _, heads, _, width = tensor.shape
        inputs[tensor.name] = np.zeros((len(source), heads, 0, width), np.float32)
    latest = np.full((len(source), 1), BOS)  # (B, 1)
    done, sums = np.zeros(len(source), bool), np.zeros(len(source))
    tokens: list[Array] = []
    while not done.all() and len(tokens) < MAX_TRANSLATION:
        has_past = len(tokens) > 0
        inputs |= {"input_ids": latest, "use_cache_branch": np.array([has_past])}
        logits, *cache = decoder.run(None, inputs)
        inputs |= dict(zip(past_names, cache, strict=True))
        log_p = torch.from_numpy(logits[:, -1]).double().log_softmax(-1).numpy()  # (B, V)
        log_p[:, excluded] = -np.inf
        latest = log_p.argmax(1)[:, None]
        sums += np.where(done, 0.0, log_p.max(1))
        done |= latest[:, 0] == EOS
        tokens.append(latest)
    return np.concatenate(tokens, 1), sums
