"""Export to Hugging Face: a folder that `AutoModelForSeq2SeqLM` and `AutoTokenizer` load.

Post-norm models become MarianMTModel, pre-norm ones PegasusForConditionalGeneration, which is the
same architecture with the norms before the sub-layers. Both have all sines before all cosines, so
the dimensions of a model with interleaved positions are reordered in every matrix that reads or
writes the residual stream.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor

from nmt.config import DecodingConfig, ModelConfig
from nmt.data.tokens.tokenizer import BOS, EOS, PAD, UNK
from nmt.errors import ExchangeError, MissingExtraError
from nmt.exchange.engine import LONGEST, NEVER, EngineTranslation
from nmt.exchange.huggingface import (
    BIAS,
    CONFIG,
    GENERATION,
    KEPT,
    POSITION_TABLES,
    SEGMENTATIONS,
    TARGET_VOCABULARY,
    TOKENIZER,
    VOCABULARY,
    read_vocabularies,
)
from nmt.exchange.huggingface_names import names_of
from nmt.exchange.imported import bias_name, original_files, original_order, rows_in_order
from nmt.model.positional_encoding import sinusoids
from nmt.run_directory import LoadedModel

LONGEST_INPUT = 1024
USAGE = """\
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

tokenizer, model = AutoTokenizer.from_pretrained("."), AutoModelForSeq2SeqLM.from_pretrained(".")
batch = tokenizer(["A dog sleeps."], return_tensors="pt", padding=True)
print(tokenizer.batch_decode(model.generate(**batch), skip_special_tokens=True))
"""
"""how the exported folder is used, for the model card"""
_SPECIAL_IDS = {
    "pad_token_id": PAD,
    "bos_token_id": BOS,
    "eos_token_id": EOS,
    "decoder_start_token_id": BOS,
    "forced_eos_token_id": None,
}


def export_huggingface(run: LoadedModel, folder: Path) -> None:
    """Write config.json, the weights and the tokenizer's files into an empty folder.

    A model that was imported from Hugging Face gets its original files and order of rows: unchanged
    weights go back bit for bit.

    Raises:
        ExchangeError: a pre-norm model whose languages do not share their embeddings.
        OSError: a file cannot be written.
    """
    if run.config.model.norm == "pre" and run.config.model.embeddings != "shared":
        raise ExchangeError(
            f"transformers has no class for a pre-norm model with model.embeddings: "
            f"{run.config.model.embeddings}; export it to ctranslate2, onnx or safetensors"
        )
    layout = _original_layout(run)
    if layout is None:
        sides = run.tokenizer.source, run.tokenizer.target
        layout = list(range(sides[0].size)), list(range(sides[1].size))
        files = _own_files(run)
    else:
        originals = original_files(run)
        files = {name: originals[name] for name in KEPT if name in originals}
    for name, content in files.items():
        (folder / name).write_bytes(content)
    weights = _weights(run, layout)
    safetensors.torch.save_file(weights, folder / "model.safetensors", {"format": "pt"})


def _original_layout(run: LoadedModel) -> tuple[list[int], list[int]] | None:
    """Return our id of each original row of source and target; None: it is our own model."""
    files = original_files(run)
    if CONFIG not in files:
        return None
    settings = json.loads(files[CONFIG])
    source = settings["vocab_size"]
    sizes = (source, settings.get("decoder_vocab_size") or source)
    return original_order(run, read_vocabularies(files, settings, sizes, run.path))


def _weights(run: LoadedModel, layout: tuple[Sequence[int], Sequence[int]]) -> dict[str, Tensor]:
    """Return {their name: weight}, with rows and dimensions in their order."""
    config = run.config.model
    ours = {name: weight.detach().float() for name, weight in run.model.named_parameters()}
    bias = bias_name(config)
    ours.setdefault(bias, torch.zeros(run.tokenizer.target.size))
    if config.start_embedding == "zero" and ours["target_embedding.weight"][BOS].any():
        # they look up the row of the begin symbol, which also is its row in the output
        ours["target_embedding.weight"] = ours["target_embedding.weight"].clone()
        ours["target_embedding.weight"][BOS] = 0.0
        ours[bias] = ours[bias].clone()
        ours[bias][BOS] = NEVER
    for name in [name for name in ours if "_embedding." in name]:
        ids = layout[0 if name.startswith("source") else 1]
        ours[name] = rows_in_order(ours[name], ids)
    order = _order_of_dimensions(config)
    theirs = {
        name: _reorder(name_of_ours, ours[name_of_ours], order).contiguous()
        for name_of_ours, name in names_of(config).items()
    }
    theirs[BIAS] = ours[bias][None].contiguous()
    if config.positions == "tensor2tensor":  # they compute another table if they find none
        table = sinusoids(LONGEST_INPUT, config.d_model, config.positions)
        theirs |= {name: table.clone() for name in POSITION_TABLES}
    return theirs


def _order_of_dimensions(config: ModelConfig) -> Tensor:
    """Return the index in our residual stream of each dimension of theirs: (D,)."""
    order = torch.arange(config.d_model)
    return torch.cat((order[0::2], order[1::2])) if config.positions == "interleaved" else order


def _reorder(name: str, weight: Tensor, order: Tensor) -> Tensor:
    """Reorder the dimensions of a weight that belong to the residual stream."""
    if "embedding" in name or name.endswith(
        ("query.weight", "key.weight", "value.weight", "inner.weight")
    ):
        return weight[:, order]  # it reads the stream, or its rows are embeddings
    if "norm" in name or name.endswith(
        ("output.weight", "output.bias", "outer.weight", "outer.bias")
    ):
        return weight[order]  # it writes the stream
    return weight


def _own_files(run: LoadedModel) -> dict[str, bytes]:
    """Return {name: content} of the settings and vocabularies of our own model."""
    sides = run.tokenizer.source, run.tokenizer.target
    separate = sides[0].pieces != sides[1].pieces
    languages = run.config.data.languages
    tokens = {
        "tokenizer_class": "MarianTokenizer",
        "source_lang": languages[0],
        "target_lang": languages[1],
        "pad_token": sides[0].pieces[PAD],
        "unk_token": sides[0].pieces[UNK],
        "eos_token": sides[0].pieces[EOS],
        "model_max_length": LONGEST_INPUT,
        "separate_vocabs": separate,
    }
    files: dict[str, Any] = {
        CONFIG: _settings(run.config.model, sides[0].size, sides[1].size),
        GENERATION: _generation(run.config.decoding),
        TOKENIZER: tokens,
    }
    for name, side in zip((VOCABULARY, TARGET_VOCABULARY)[: 1 + separate], sides, strict=False):
        files[name] = {piece: i for i, piece in enumerate(side.pieces)}
    contents = {
        name: (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()
        for name, value in files.items()
    }
    return contents | {name: side.model for name, side in zip(SEGMENTATIONS, sides, strict=True)}


def _settings(config: ModelConfig, source_size: int, target_size: int) -> dict[str, Any]:
    """Return config.json of our own model, given the sizes of its vocabularies."""
    pre = config.norm == "pre"
    return {
        "model_type": "pegasus" if pre else "marian",
        "architectures": ["PegasusForConditionalGeneration" if pre else "MarianMTModel"],
        "is_encoder_decoder": True,
        "d_model": config.d_model,
        "encoder_layers": config.encoder_layers,
        "decoder_layers": config.decoder_layers,
        "encoder_attention_heads": config.heads,
        "decoder_attention_heads": config.heads,
        "encoder_ffn_dim": config.d_ff,
        "decoder_ffn_dim": config.d_ff,
        "activation_function": config.activation,
        "dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "activation_dropout": config.activation_dropout,
        "scale_embedding": True,
        "max_position_embeddings": LONGEST_INPUT,
        "vocab_size": source_size,
        "decoder_vocab_size": target_size,
        "share_encoder_decoder_embeddings": config.embeddings == "shared",
        "tie_word_embeddings": config.embeddings != "separate",
        "dtype": "float32",
        **_SPECIAL_IDS,
    }


def _generation(decoding: DecodingConfig) -> dict[str, Any]:
    """Return generation_config.json of our own model."""
    excluded = [PAD, BOS] + [UNK] * (not decoding.allow_unknown)
    return {
        **_SPECIAL_IDS,
        "bad_words_ids": [[token] for token in excluded],
        "num_beams": decoding.beam_size,
        "length_penalty": 0.0 if decoding.length_normalization == "none" else 1.0,
        "early_stopping": decoding.early_stopping,
        "max_length": 512,
    }


def translate_with_transformers(folder: Path, texts: Sequence[str]) -> list[EngineTranslation]:
    """Return greedy translations by the exported folder, loaded as its users load it.

    Raises:
        MissingExtraError: the package transformers is not installed.
    """
    try:
        from transformers import AutoModelForSeq2SeqLM, AutoTokenizer
        from transformers.utils import logging
    except ImportError as error:
        raise MissingExtraError("verifying a model with transformers", "exchange") from error
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    return [_translate(model, tokenizer, text) for text in texts]


@torch.inference_mode()
def _translate(model: Any, tokenizer: Any, text: str) -> EngineTranslation:
    batch = tokenizer([text], return_tensors="pt")
    result = model.generate(
        **batch,
        num_beams=1,
        do_sample=False,
        max_new_tokens=LONGEST,
        max_length=None,
        forced_eos_token_id=None,
        output_logits=True,
        return_dict_in_generate=True,
    )
    tokens = result.sequences[0, 1:]
    log_p = torch.stack(result.logits)[:, 0].log_softmax(-1)  # (T, V)
    total = log_p[range(len(tokens)), tokens].sum()
    ids = [i for i in tokens.tolist() if i != model.config.eos_token_id]
    rows = tokenizer.target_encoder if tokenizer.separate_vocabs else tokenizer.encoder
    pieces = {row: piece for piece, row in rows.items()}
    return EngineTranslation([pieces[i] for i in ids], float(total))
