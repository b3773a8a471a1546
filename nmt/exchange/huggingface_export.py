"""Export to Hugging Face: a folder that `AutoModelForSeq2SeqLM` and `AutoTokenizer` load.

Post-norm models become MarianMTModel, pre-norm ones PegasusForConditionalGeneration, which is the
same architecture with the norms before the sub-layers. Both have all sines before all cosines, so
the dimensions of a model with interleaved positions are reordered in every matrix that reads or
writes the residual stream.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor

from nmt.data.tokens.tokenizer import BOS, EOS, PAD, UNK
from nmt.errors import ExchangeError
from nmt.exchange.engine import (
    EXCLUDED_BIAS,
    MAX_SOURCE,
    MAX_TRANSLATION,
    EngineTranslation,
    check_has_no_tags,
    import_engine,
)
from nmt.exchange.huggingface import (
    CONFIG,
    GENERATION,
    KEPT,
    SEGMENTATIONS,
    TARGET_VOCABULARY,
    TOKENIZER,
    VOCABULARY,
    read_decoding,
    read_vocabularies,
)
from nmt.exchange.huggingface_files import parse_json
from nmt.exchange.huggingface_names import (
    BIAS,
    POSITION_TABLES,
    PROGRAM,
    read_config,
    settings_of,
    weight_names,
)
from nmt.exchange.imported import (
    RowOrder,
    original_files,
    original_order,
    reorder_rows,
    weights_to_export,
)
from nmt.exchange.verify import excluded_ids
from nmt.model.anatomy import output_bias
from nmt.model.positional_encoding import sinusoids
from nmt.recipe.config import DecodingConfig, ModelConfig
from nmt.run.directory import find_run
from nmt.run.model import LoadedModel

USAGE = """\
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

tokenizer, model = AutoTokenizer.from_pretrained("."), AutoModelForSeq2SeqLM.from_pretrained(".")
batch = tokenizer(["A dog sleeps."], return_tensors="pt", padding=True)
print(tokenizer.batch_decode(model.generate(**batch), skip_special_tokens=True))
"""
"""how the exported folder is used, for the model card"""
SPECIAL_IDS = {
    "pad_token_id": PAD,
    "bos_token_id": BOS,
    "eos_token_id": EOS,
    "decoder_start_token_id": BOS,
}
"""our special ids in the words of config.json and generation_config.json"""


def export_huggingface(loaded: LoadedModel, folder: Path) -> None:
    """Write config.json, the weights and the tokenizer's files into an empty folder.

    A model that was imported from Hugging Face gets its original files and order of rows, unless
    its architecture or vocabulary has changed since: unchanged weights go back bit for bit.

    Raises:
        ExchangeError: a pre-norm model whose languages do not share their embeddings, or a part
            that transformers does not have.
        OSError: a file cannot be written.
    """
    check_has_no_tags(loaded.config.data, "MarianMTModel of transformers")
    PROGRAM.check_holds(loaded.model, loaded.config.model)
    if loaded.config.model.norm == "pre" and loaded.config.model.embeddings != "shared":
        raise ExchangeError(
            f"transformers has no class for a pre-norm model with model.embeddings: "
            f"{loaded.config.model.embeddings}; export it to ctranslate2, onnx or safetensors"
        )
    originals, order = _original_files(loaded)
    for name, content in (originals or _own_files(loaded)).items():
        (folder / name).write_bytes(content)
    weights = _weights(loaded, order)
    safetensors.torch.save_file(weights, folder / "model.safetensors", {"format": "pt"})


def _original_files(loaded: LoadedModel) -> tuple[dict[str, bytes], RowOrder | None]:
    """Return the files {name: content} that a model was imported with, and its order of rows.

    No files and None if it is not from Hugging Face, or has changed since. The files say that the
    weights are in float32 now, and have the run's settings of the search.
    """
    originals, folder = original_files(loaded), find_run(loaded.path).imported
    if CONFIG not in originals:
        return {}, None
    settings = parse_json(originals[CONFIG], folder / CONFIG)
    architecture = read_config(settings, str(folder / CONFIG))
    order = original_order(loaded, architecture, read_vocabularies(originals, settings, folder))
    if order is None:
        return {}, None
    files = {name: originals[name] for name in KEPT if name in originals}
    return updated_files(loaded, files, order[1], folder), order


def updated_files(
    loaded: LoadedModel, originals: Mapping[str, bytes], tokens: list[int], folder: Path
) -> dict[str, bytes]:
    """Return original files that say that weights are in float32, and the settings of the search.

    `tokens` are our target ids of the rows. `folder` names the files in error messages.
    """
    files = dict(originals)
    settings = parse_json(originals[CONFIG], folder / CONFIG)
    types = {name for name in ("dtype", "torch_dtype") if settings.get(name)}
    if any(settings[name] != "float32" for name in types):
        files[CONFIG] = dump(settings | dict.fromkeys(types, "float32"))
    generation = settings  # older models have the settings of the search in config.json
    if GENERATION in files:
        generation = parse_json(files[GENERATION], folder / GENERATION)
    decoding = loaded.config.decoding
    if read_decoding(generation, tokens.index(UNK), str(folder)) != decoding:
        excluded = [row for row, token in enumerate(tokens) if token in excluded_ids(decoding)]
        special_ids = {name: settings[name] for name in SPECIAL_IDS if name in settings}
        files[GENERATION] = dump(special_ids | search_settings(decoding, excluded))
    return files


def _weights(loaded: LoadedModel, order: RowOrder | None) -> dict[str, Tensor]:
    """Return {their name: weight} in their dimensions, with rows in `order` (None: in ours)."""
    config = loaded.config.model
    ours, bias = weights_to_export(loaded), output_bias(config)
    if config.start_embedding == "zero" and ours["target_embedding.weight"][BOS].any():
        # Our decoder begins with zeros, whatever the row of BOS holds. Theirs reads the row, so it
        # becomes zeros. That changes the logit of BOS, and the bias keeps it out of translations.
        for name, value in (("target_embedding.weight", 0.0), (bias, EXCLUDED_BIAS)):
            ours[name] = ours[name].clone()
            ours[name][BOS] = value
    if order is not None:
        ours = reorder_rows(ours, order)
    dimensions = _order_of_dimensions(config)
    theirs = {
        their_name: _reorder_dimensions(name, ours[name], dimensions).contiguous()
        for name, their_name in weight_names(config).items()
    }
    theirs[BIAS] = ours[bias][None].contiguous()
    if config.positions == "tensor2tensor":  # without a table transformers computes sines_first
        table = sinusoids(MAX_SOURCE, config.d_model, config.positions)
        theirs |= {name: table.clone() for name in POSITION_TABLES}
    return theirs


def _order_of_dimensions(config: ModelConfig) -> Tensor:
    """Return the index in our residual stream of each dimension of theirs: (D,).

    Theirs has all sines first; ours may have sines and cosines in turn.
    """
    order = torch.arange(config.d_model)
    return torch.cat((order[0::2], order[1::2])) if config.positions == "interleaved" else order


def _reorder_dimensions(name: str, weight: Tensor, order: Tensor) -> Tensor:
    """Reorder the dimensions of a weight, by our name, that belong to the residual stream."""
    reads_stream = ("query.weight", "key.weight", "value.weight", "inner.weight")
    writes_stream = ("output.weight", "output.bias", "outer.weight", "outer.bias")
    if "embedding" in name or name.endswith(reads_stream):
        return weight[:, order]
    if "norm" in name or name.endswith(writes_stream):
        return weight[order]
    return weight


def _own_files(loaded: LoadedModel) -> dict[str, bytes]:
    """Return {name: content} of the settings and vocabularies of our own model."""
    source, target = loaded.tokenizer.source, loaded.tokenizer.target
    is_separate = source.pieces != target.pieces
    languages = loaded.config.data.languages
    tokenizer_settings = {
        "tokenizer_class": "MarianTokenizer",
        "source_lang": languages[0],
        "target_lang": languages[1],
        "pad_token": source.pieces[PAD],
        "unk_token": source.pieces[UNK],
        "eos_token": source.pieces[EOS],
        "model_max_length": MAX_SOURCE,
        "separate_vocabs": is_separate,
    }
    files: dict[str, Any] = {
        CONFIG: _settings(loaded.config.model, source.size, target.size),
        GENERATION: {
            **SPECIAL_IDS,
            "forced_eos_token_id": None,
            "max_length": 512,
            **search_settings(loaded.config.decoding, excluded_ids(loaded.config.decoding)),
        },
        TOKENIZER: tokenizer_settings,
        VOCABULARY: {piece: i for i, piece in enumerate(source.pieces)},
    }
    if is_separate:
        files[TARGET_VOCABULARY] = {piece: i for i, piece in enumerate(target.pieces)}
    contents = {name: dump(value) for name, value in files.items()}
    return contents | dict(zip(SEGMENTATIONS, (source.model, target.model), strict=True))


def dump(value: Mapping[str, Any]) -> bytes:
    """Return the content of a file of JSON."""
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()


def _settings(config: ModelConfig, source_size: int, target_size: int) -> dict[str, Any]:
    """Return config.json of our own model, given the sizes of its vocabularies."""
    is_pre_norm = config.norm == "pre"
    return {
        "model_type": "pegasus" if is_pre_norm else "marian",
        "architectures": ["PegasusForConditionalGeneration" if is_pre_norm else "MarianMTModel"],
        **settings_of(config),
        "dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "activation_dropout": config.activation_dropout,
        "max_position_embeddings": MAX_SOURCE,
        "vocab_size": source_size,
        "decoder_vocab_size": target_size,
        "share_encoder_decoder_embeddings": config.embeddings == "shared",
        "tie_word_embeddings": config.embeddings != "separate",
        "dtype": "float32",
        **SPECIAL_IDS,
        "forced_eos_token_id": None,
    }


def search_settings(decoding: DecodingConfig, excluded: Sequence[int]) -> dict[str, Any]:
    """Return the settings of the search in the words of generation_config.json.

    `excluded` are the rows there of the tokens that no translation has.
    """
    return {
        "bad_words_ids": [[row] for row in excluded],
        "num_beams": decoding.beam_size,
        "length_penalty": 0.0 if decoding.length_normalization == "none" else 1.0,
        "early_stopping": decoding.early_stopping,
        # the begin symbol counts there
        "min_length": decoding.min_length + 1 if decoding.min_length else 0,
        "no_repeat_ngram_size": decoding.no_repeat_ngram,
    }


def translate_with_transformers(folder: Path, texts: Sequence[str]) -> list[EngineTranslation]:
    """Return greedy translations by the exported folder, loaded as its users load it.

    Raises:
        MissingExtraError: the package transformers is not installed.
    """
    transformers = import_engine("transformers", "verifying a model with transformers")
    transformers.utils.logging.disable_progress_bar()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    theirs = model.generation_config
    # without the other rules of the search, which would change the most probable translation
    model.generation_config = transformers.GenerationConfig(
        decoder_start_token_id=theirs.decoder_start_token_id,
        eos_token_id=theirs.eos_token_id,
        pad_token_id=theirs.pad_token_id,
        bad_words_ids=theirs.bad_words_ids,
        max_new_tokens=MAX_TRANSLATION,
        output_logits=True,
        return_dict_in_generate=True,
    )
    target_ids = tokenizer.target_encoder if tokenizer.separate_vocabs else tokenizer.encoder
    target_pieces = {i: piece for piece, i in target_ids.items()}
    return [translate_text(model, tokenizer, target_pieces, text) for text in texts]


@torch.inference_mode()
def translate_text(
    model: Any, tokenizer: Any, target_pieces: Mapping[int, str], text: str, given: int = 0
) -> EngineTranslation:
    """Return the greedy translation of one text; `target_pieces` are the pieces of the ids.

    The first `given` tokens of the translation, such as a tag, are left out.
    """
    result = model.generate(**tokenizer([text], return_tensors="pt"))
    tokens = result.sequences[0, 1 + given :]  # (T,), without the begin symbol
    log_p = torch.stack(result.logits)[given:, 0].log_softmax(-1)  # (T, V)
    total = log_p[range(len(tokens)), tokens].sum()
    pieces = [target_pieces[i] for i in tokens.tolist() if i != tokenizer.eos_token_id]
    return EngineTranslation(pieces, float(total))
