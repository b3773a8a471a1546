"""tokenizer.json: a SentencePiece model in the form that `tokenizers` and transformers.js read.

Its ids are ours, with EOS at the end of a text. A program that reads it has one tokenizer for a
model, so source and target need the same pieces. What the format cannot express is an error.
transformers.js does not read the table of SentencePiece's normalisation but computes NFKC, which
differs for a few rare characters, such as U+200D inside an emoji, and for blank texts.

The functions return parts of tokenizer.json: https://huggingface.co/docs/tokenizers/components.
"""

import base64
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from nmt.data.tokens.tokenizer import (
    BOS,
    EOS,
    HIDDEN,
    PAD,
    UNK,
    UNKNOWN,
    SubwordModel,
    Tokenizer,
)
from nmt.data.tokens.vocabulary import KINDS, parse_model
from nmt.errors import ExchangeError, print_warning
from nmt.exchange.engine import MAX_SOURCE
from nmt.files import write_json

FAST_TOKENIZER = "tokenizer.json"
UNREADABLE = "\ue000"
"""stands before pieces that are decoded, but never read: a character of no text (private use)"""
_UNREAD_SCORE = -1e4
"""log-probability of a unigram piece that is not to be read from text, such as `</s>`; most pieces
have about -10. It is read all the same where one of its characters is unknown, which costs more"""


def write_tokenizer(tokenizer: Tokenizer, folder: Path) -> None:
    """Write tokenizer.json and tokenizer_config.json into a folder.

    Raises:
        ExchangeError: source and target differ, or the SentencePiece model is of a kind that
            tokenizer.json cannot express.
        OSError: a file cannot be written.
    """
    if tokenizer.source.pieces != tokenizer.target.pieces:
        raise ExchangeError(
            "the format onnx has one vocabulary for source and target, because transformers.js "
            "loads one tokenizer for a model, but this model has two; export it as "
            "ctranslate2, marian or huggingface, or train with tokenizer.shared: true"
        )
    pieces = tokenizer.source.pieces
    # PAD, BOS and EOS are left out of decoded text. They are not read from text: a sentence with
    # </s> in it would end there. So they are no "added tokens" of tokenizer.json, and transformers,
    # which makes added tokens of them, gets `split_special_tokens`.
    settings = {
        "pad_token": pieces[PAD],
        "unk_token": pieces[UNK],
        "bos_token": pieces[BOS],
        "eos_token": pieces[EOS],
        "additional_special_tokens": [pieces[i] for i in (PAD, BOS, EOS)],
        "split_special_tokens": True,
        "tokenizer_class": "PreTrainedTokenizerFast",  # MarianTokenizer would need source.spm
        "model_max_length": MAX_SOURCE,
        "clean_up_tokenization_spaces": False,
    }
    write_json(folder / FAST_TOKENIZER, tokenizer_json(tokenizer.source))
    write_json(folder / "tokenizer_config.json", settings)


def tokenizer_json(model: SubwordModel) -> dict[str, Any]:
    """Return the content of tokenizer.json for a SentencePiece model.

    Raises:
        ExchangeError: a word-level model, or one that marks the ends of words.
    """
    proto = parse_model(model.model, "the tokenizer")
    kind = KINDS[proto.trainer_spec.model_type]
    if kind == "word" or proto.trainer_spec.treat_whitespace_as_suffix:
        raise ExchangeError(
            "tokenizer.json cannot express a SentencePiece model of whole words, or one that marks "
            "the ends of words; export it as ctranslate2 or marian"
        )
    describe_pieces = _unigram_model if kind == "unigram" else _bpe_model
    return {
        "version": "1.0",
        "truncation": {
            "max_length": MAX_SOURCE,
            "direction": "Right",
            "strategy": "LongestFirst",
            "stride": 0,
        },
        "padding": None,
        "added_tokens": [
            _added_token(i, piece.piece)
            for i, piece in enumerate(proto.pieces)
            if piece.type == piece.USER_DEFINED or piece.piece in model.tags
        ],
        "normalizer": {"type": "Sequence", "normalizers": list(_normalizers(proto))},
        "pre_tokenizer": None,
        "post_processor": _with_eos(model.pieces[EOS]),
        "decoder": {"type": "Sequence", "decoders": list(_decoders(proto, model.pieces[UNK]))},
        "model": describe_pieces(proto, model),
    }


def nllb_tokenizer_json(
    model: SubwordModel, vocabulary: Sequence[str], languages: Sequence[str]
) -> dict[str, Any]:
    """Return tokenizer.json as NLLB has it, for a BPE model whose rows are `vocabulary`.

    The first are <s>, <pad>, </s> and <unk>. `languages` are tokens of their own.

    Raises:
        ExchangeError: the model is none of BPE.
    """
    proto = parse_model(model.model, "the tokenizer")
    if KINDS[proto.trainer_spec.model_type] != "bpe":
        raise ExchangeError(
            "the tokenizer of NLLB is of BPE, and the vocabulary of this model is not; export it "
            "as ctranslate2 or safetensors"
        )
    rows = {piece: row for row, piece in enumerate(vocabulary)}
    metaspace = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    charsmap = base64.b64encode(proto.normalizer_spec.precompiled_charsmap).decode("ascii")
    spaces = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}
    normalizers = [spaces]
    if charsmap:
        normalizers.insert(0, {"type": "Precompiled", "precompiled_charsmap": charsmap})
    tokens = [_added_token(rows[piece], piece) for piece in (*vocabulary[:4], *languages)]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [token | {"special": True} for token in tokens],
        "normalizer": {"type": "Sequence", "normalizers": normalizers},
        "pre_tokenizer": metaspace,
        "post_processor": None,
        "decoder": metaspace,
        "model": {
            "type": "BPE",
            "vocab": rows,
            "merges": _merges(proto),
            "unk_token": vocabulary[3],
            "fuse_unk": True,
            "byte_fallback": False,
        },
    }


def _added_token(token_id: int, piece: str) -> dict[str, Any]:
    """Return a user-defined piece or a tag, such as >>fra<<, which is read from text as a whole.

    SentencePiece puts a ▁ before it and here there is none, as in the models of OPUS-MT.
    """
    flags = ("single_word", "lstrip", "rstrip", "normalized", "special")
    return {"id": token_id, "content": piece, **dict.fromkeys(flags, False)}


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
    """Return the post-processor that puts EOS after a text."""
    text = {"Sequence": {"id": "A", "type_id": 0}}
    end = {"SpecialToken": {"id": eos, "type_id": 0}}
    return {
        "type": "TemplateProcessing",
        "single": [text, end],
        "pair": [text, {"Sequence": {"id": "B", "type_id": 0}}, end],
        "special_tokens": {eos: {"id": eos, "ids": [EOS], "tokens": [eos]}},
    }


def _unigram_model(proto: Any, model: SubwordModel) -> dict[str, Any]:
    """Return the pieces of a unigram model with their log-probabilities, in the order of ids."""
    byte_fallback = proto.trainer_spec.byte_fallback
    if byte_fallback:
        print_warning(
            "transformers.js does not spell unknown characters as bytes with a unigram "
            "vocabulary: there they become unknown symbols; other programs spell them"
        )
    readable = [p for p in proto.pieces if p.type in (p.NORMAL, p.USER_DEFINED)]
    known_characters = {character for piece in readable for character in piece.piece}
    vocabulary = []
    for piece in proto.pieces:
        is_read = piece.type in (piece.NORMAL, piece.USER_DEFINED)
        spelling = piece.piece
        # An unused piece of an imported model belongs to the other language: it is decoded, and
        # read only where SentencePiece knows none of its characters (see `HIDDEN`).
        is_found = piece.score == HIDDEN and known_characters.isdisjoint(spelling)
        if piece.type == piece.UNUSED and spelling not in model.tags and not is_found:
            spelling = UNREADABLE + spelling
        vocabulary.append([spelling, piece.score if is_read else _UNREAD_SCORE])
    return {"type": "Unigram", "unk_id": UNK, "vocab": vocabulary, "byte_fallback": byte_fallback}


def _bpe_model(proto: Any, model: SubwordModel) -> dict[str, Any]:
    """Return the ids of the pieces of a BPE model, and the merges that build these pieces.

    A character model has no merges.
    """
    return {
        "type": "BPE",
        "vocab": {piece.piece: i for i, piece in enumerate(proto.pieces)},
        "merges": _merges(proto),
        "unk_token": model.pieces[UNK],
        "fuse_unk": True,
        "byte_fallback": proto.trainer_spec.byte_fallback,
    }


def _merges(proto: Any) -> list[list[str]]:
    """Return the merges of a BPE model.

    SentencePiece merges the adjacent pair whose union has the highest score. So the merges are all
    ways to divide a piece into two pieces, in the order of the scores of the whole pieces.
    """
    scores = {piece.piece: piece.score for piece in proto.pieces if piece.type == piece.NORMAL}
    return [
        [piece[:i], piece[i:]]
        for piece in sorted(scores, key=scores.__getitem__, reverse=True)
        for i in range(1, len(piece))
        if piece[:i] in scores and piece[i:] in scores
    ]
