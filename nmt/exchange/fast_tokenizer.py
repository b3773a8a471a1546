"""tokenizer.json: a SentencePiece model in the form that `tokenizers` and transformers.js read.

Its ids are ours, with EOS at the end of a text. A program that reads it has one tokenizer for a
model, so source and target need the same pieces. What its format cannot say is an error.
transformers.js does not read the table of SentencePiece's normalisation but computes NFKC, which
differs for a few rare characters, such as U+200D inside an emoji, and for blank texts.
"""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nmt.data.tokens.tokenizer import BOS, EOS, PAD, UNK, UNKNOWN, SubwordModel, Tokenizer
from nmt.errors import ExchangeError, print_warning
from nmt.files import write_json

TOKENIZER = "tokenizer.json"
LONGEST_INPUT = 1024
"""tokens after which a source is cut"""

# values of enums in sentencepiece_model.proto
UNREADABLE = "\ue000"
"""stands before pieces that are decoded, but never read: a character of no text (private use)"""
_NORMAL, _USER_DEFINED, _UNUSED = 1, 4, 5
_UNIGRAM, _WORD = 1, 3
NEVER = -1e4
"""score of a unigram piece that is not to be read from text, such as `</s>`, where most have -10;
it is read all the same where one of its characters is unknown, which costs still more"""


def write_tokenizer(tokenizer: Tokenizer, folder: Path) -> None:
    """Write tokenizer.json, tokenizer_config.json and special_tokens_map.json into a folder.

    Raises:
        ExchangeError: source and target differ, or the SentencePiece model is of a kind that
            tokenizer.json cannot express.
        OSError: a file cannot be written.
    """
    if tokenizer.source.pieces != tokenizer.target.pieces:
        raise ExchangeError(
            "the format onnx has one vocabulary for source and target, because transformers.js "
            "loads one tokenizer for a model, but this model has two; export it with --to "
            "ctranslate2, marian or huggingface, or train with tokenizer.shared: true"
        )
    pieces = tokenizer.source.pieces
    specials = {
        "pad_token": pieces[PAD],
        "unk_token": pieces[UNK],
        "bos_token": pieces[BOS],
        "eos_token": pieces[EOS],
    }
    # Added tokens of tokenizer.json are read from text: </s> in a sentence would end it. As
    # `additional_special_tokens` of the settings they are only left out of decoded text.
    settings = {
        **specials,
        "additional_special_tokens": [pieces[i] for i in (PAD, BOS, EOS)],
        "tokenizer_class": "PreTrainedTokenizerFast",  # MarianTokenizer would need source.spm
        "model_max_length": LONGEST_INPUT,
        "clean_up_tokenization_spaces": False,
    }
    write_json(folder / TOKENIZER, tokenizer_json(tokenizer.source))
    write_json(folder / "tokenizer_config.json", settings)
    write_json(folder / "special_tokens_map.json", specials)


def tokenizer_json(model: SubwordModel) -> dict[str, Any]:
    """Return the content of tokenizer.json for a SentencePiece model.

    Raises:
        ExchangeError: a word-level model, or one that marks the ends of words.
    """
    from sentencepiece import sentencepiece_model_pb2

    proto: Any = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(model.model)
    if proto.trainer_spec.model_type == _WORD or proto.trainer_spec.treat_whitespace_as_suffix:
        raise ExchangeError(
            "tokenizer.json cannot express a SentencePiece model of whole words, or one that marks "
            "the ends of words; export it with --to ctranslate2 or marian"
        )
    return {
        "version": "1.0",
        "truncation": {
            "max_length": LONGEST_INPUT,
            "direction": "Right",
            "strategy": "LongestFirst",
            "stride": 0,
        },
        "padding": None,
        "added_tokens": [
            _added_token(i, piece.piece)
            for i, piece in enumerate(proto.pieces)
            if piece.type == _USER_DEFINED or piece.piece in model.tags
        ],
        "normalizer": {"type": "Sequence", "normalizers": list(_normalizers(proto))},
        "pre_tokenizer": None,
        "post_processor": _with_eos(model.pieces[EOS]),
        "decoder": {"type": "Sequence", "decoders": list(_decoders(proto, model.pieces[UNK]))},
        "model": _model(proto, model),
    }


def _added_token(number: int, piece: str) -> dict[str, Any]:
    """Return a user-defined piece, such as >>fra<<, which is read from text as a whole.

    SentencePiece puts a ▁ before it and here there is none, as in the models of OPUS-MT.
    """
    flags = ("single_word", "lstrip", "rstrip", "normalized", "special")
    return {"id": number, "content": piece, **dict.fromkeys(flags, False)}


def _normalizers(proto: Any) -> Iterator[dict[str, Any]]:
    """Yield the steps from a text to the string that is split into pieces."""
    spec = proto.normalizer_spec
    if spec.precompiled_charsmap:
        charsmap = base64.b64encode(spec.precompiled_charsmap).decode("ascii")
        yield {"type": "Precompiled", "precompiled_charsmap": charsmap}
    if spec.name.endswith("_cf"):  # transformers.js computes NFKC without reading the charsmap
        yield {"type": "Lowercase"}
    if spec.remove_extra_whitespaces:
        yield {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}
        yield {"type": "Strip", "strip_left": True, "strip_right": True}
    if spec.add_dummy_prefix:
        yield {"type": "Prepend", "prepend": " "}
    if spec.escape_whitespaces:
        yield _replace(" ", "▁")


def _decoders(proto: Any, unknown: str) -> Iterator[dict[str, Any]]:
    """Yield the steps from pieces back to a text."""
    yield _replace(UNREADABLE, "")
    yield _replace(unknown, UNKNOWN)
    yield _replace("▁", " ")
    if proto.trainer_spec.byte_fallback:
        yield {"type": "ByteFallback"}
    yield {"type": "Fuse"}
    if proto.normalizer_spec.add_dummy_prefix:
        yield {"type": "Strip", "content": " ", "start": 1, "stop": 0}


def _replace(old: str, new: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": {"String": old}, "content": new}


def _with_eos(eos: str) -> dict[str, Any]:
    """Return the post-processor that puts EOS behind a text."""
    text = {"Sequence": {"id": "A", "type_id": 0}}
    end = {"SpecialToken": {"id": eos, "type_id": 0}}
    return {
        "type": "TemplateProcessing",
        "single": [text, end],
        "pair": [text, {"Sequence": {"id": "B", "type_id": 0}}, end],
        "special_tokens": {eos: {"id": eos, "ids": [EOS], "tokens": [eos]}},
    }


def _model(proto: Any, model: SubwordModel) -> dict[str, Any]:
    """Return the pieces: with their scores (unigram), or with the merges that build them (BPE).

    SentencePiece merges the adjacent pair whose union has the highest score. So the merges are all
    ways to halve a piece, in the order of the pieces' scores. A character model has none.
    """
    bytes_too = proto.trainer_spec.byte_fallback
    if proto.trainer_spec.model_type == _UNIGRAM:
        if bytes_too:
            print_warning(
                "transformers.js does not spell unknown characters as bytes with a unigram "
                "vocabulary: there they become unknown symbols; other programs spell them"
            )
        readable = (_NORMAL, _USER_DEFINED)
        vocabulary = [[p.piece, p.score if p.type in readable else NEVER] for p in proto.pieces]
        for i, piece in enumerate(proto.pieces):
            if (
                piece.type == _UNUSED and piece.piece not in model.tags
            ):  # of the other language: it is decoded, but never read
                vocabulary[i][0] = UNREADABLE + piece.piece
        return {
            "type": "Unigram",
            "unk_id": UNK,
            "vocab": vocabulary,
            "byte_fallback": bytes_too,
        }
    normal = {piece.piece: piece.score for piece in proto.pieces if piece.type == _NORMAL}
    return {
        "type": "BPE",
        "vocab": {piece.piece: i for i, piece in enumerate(proto.pieces)},
        "merges": [
            [piece[:i], piece[i:]]
            for piece in sorted(normal, key=normal.__getitem__, reverse=True)
            for i in range(1, len(piece))
            if piece[:i] in normal and piece[i:] in normal
        ],
        "unk_token": model.pieces[UNK],
        "fuse_unk": True,
        "byte_fallback": bytes_too,
    }
