"""Where a vocabulary comes from: learnt from text, or adopted from a SentencePiece model.

The paper's section 5.1 shares one byte-pair vocabulary between both languages; `shared: false`
makes one for each. A character vocabulary is the alphabet of the text, cut at `vocabulary_size`;
the other kinds fill it exactly.
"""

import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import sentencepiece

from nmt.config import TokenizerConfig
from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.tokenizer import BOS, EOS, ERRORS_ONLY, PAD, UNK, UNKNOWN, Tokenizer
from nmt.errors import ConfigError, DataError

# SentencePiece silently skips training lines over 4192 bytes; this many characters never exceed it
_CUT = 1000

# of sentencepiece_model.proto
_KINDS = {1: "unigram", 2: "bpe", 3: "word", 4: "char"}
_UNKNOWN, _CONTROL = 2, 3


def learn_vocabulary(pairs: Iterable[SentencePair], config: TokenizerConfig) -> Tokenizer:
    """Learn the vocabulary of `pairs`: the same pairs and settings give the same bytes.

    `pairs` is iterated once if the vocabulary is shared, else once for each side.

    Raises:
        DataError: no text, or a vocabulary size that the text cannot fill.
    """
    if config.shared:
        both = (text for pair in pairs for text in (pair.source, pair.target))
        return Tokenizer(_learn(both, config, "both languages"), None)
    source = _learn((pair.source for pair in pairs), config, "the source language")
    target = _learn((pair.target for pair in pairs), config, "the target language")
    return Tokenizer(source, target)


def adopt_vocabulary(config: TokenizerConfig) -> Tokenizer:
    """Take the SentencePiece models that the configuration names, with our special ids.

    Raises:
        DataError: a file that is missing or no SentencePiece model.
        ConfigError: a model of another kind than `tokenizer.kind`.
    """
    models = [_adopt(Path(path), config.kind) for path in config.models]
    return Tokenizer(models[0], models[1] if len(models) > 1 else None)


def _adopt(path: Path, kind: str) -> bytes:
    """The model with padding, unknown, begin and end as ids 0 to 3, made where it has none.

    The other pieces keep their order. Which pieces a text is cut into depends on their scores, not
    on their ids, so it stays the same.
    """
    # what SentencePiece itself says of a model's bytes
    from sentencepiece import sentencepiece_model_pb2

    proto: Any = sentencepiece_model_pb2.ModelProto()
    try:
        proto.ParseFromString(path.read_bytes())
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file; check tokenizer.model") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error
    except Exception as error:  # protobuf's DecodeError is of no importable base
        raise DataError(f"{path}: no SentencePiece model ({error})") from error
    if not proto.pieces:
        raise DataError(f"{path}: no SentencePiece model: it has no pieces")
    found = _KINDS.get(proto.trainer_spec.model_type, "unknown")
    if found != kind:
        raise ConfigError(f"tokenizer.kind is {kind}, but {path} is a {found} model; set it so")
    spec = proto.trainer_spec
    specials = [
        (PAD, "pad", "<pad>", spec.pad_id),
        (UNK, "unk", "<unk>", spec.unk_id),
        (BOS, "bos", "<s>", spec.bos_id),
        (EOS, "eos", "</s>", spec.eos_id),
    ]
    moved = {old for _, _, _, old in specials if 0 <= old < len(proto.pieces)}
    rest = [piece for old, piece in enumerate(proto.pieces) if old not in moved]
    first = []
    for new, name, spelling, old in specials:
        piece = sentencepiece_model_pb2.ModelProto.SentencePiece()
        if old in moved:
            piece.CopyFrom(proto.pieces[old])
        else:
            taken = {other.piece for other in proto.pieces}
            while spelling in taken:
                spelling = f"<{spelling}>"
            piece.piece, piece.score = spelling, 0.0
            piece.type = _UNKNOWN if name == "unk" else _CONTROL
        setattr(spec, f"{name}_id", new)
        setattr(spec, f"{name}_piece", piece.piece)
        first.append(piece)
    spec.unk_surface = _unknown_surface(kind)
    del proto.pieces[:]
    proto.pieces.extend([*first, *rest])
    model: bytes = proto.SerializeToString()
    return model


def _unknown_surface(kind: str) -> str:
    """How a model writes the unknown symbol; at word level with its space."""
    return f" {UNKNOWN}" if kind == "word" else UNKNOWN


def _cut(texts: Iterable[str]) -> Iterator[str]:
    """Cut long texts at spaces, so that none is skipped."""
    for text in texts:
        while len(text) > _CUT:
            space = text.rfind(" ", 1, _CUT)
            end = space if space > 0 else _CUT
            yield text[:end]
            text = text[end:]
        yield text


def _learn(texts: Iterable[str], config: TokenizerConfig, side: str) -> bytes:
    """Learn one SentencePiece model and return its bytes."""
    model = io.BytesIO()
    exact = config.normalization == "identity"
    failure: list[Exception] = []
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=_remembering_failure(_cut(texts), failure),
            model_writer=model,
            model_type=config.kind,
            vocab_size=config.vocabulary_size,
            character_coverage=config.character_coverage,
            byte_fallback=config.byte_fallback,
            normalization_rule_name=config.normalization,
            remove_extra_whitespaces=not exact,
            pad_id=PAD,
            unk_id=UNK,
            bos_id=BOS,
            eos_id=EOS,
            unk_surface=_unknown_surface(config.kind),
            minloglevel=ERRORS_ONLY,
        )
    except RuntimeError as error:
        if failure:
            raise failure[0] from None
        raise DataError(_explain(str(error), config, side)) from error
    if failure:
        raise failure[0]
    return model.getvalue()


def _remembering_failure(texts: Iterable[str], failure: list[Exception]) -> Iterator[str]:
    """Keep an exception of the reader: SentencePiece's C++ loop would hide it."""
    try:
        yield from texts
    except Exception as error:
        failure.append(error)
        raise


def _explain(message: str, config: TokenizerConfig, side: str) -> str:
    """Say SentencePiece's refusal in our words."""
    key = "tokenizer.vocabulary_size"
    if found := re.search(r"Vocabulary size too high .*<= (\d+)", message):
        return (
            f"{key} is {config.vocabulary_size}, but the training text of {side} allows at most "
            f"{found[1]} {config.kind} entries; set {key} to {found[1]} or less, or add text"
        )
    if found := re.search(r"smaller than required_chars. \d+ vs (\d+)", message):
        return (
            f"{key} is {config.vocabulary_size}, but the training text of {side} needs at least "
            f"{found[1]}, one for each character; raise it or lower tokenizer.character_coverage"
        )
    if "sentences_.empty()" in message or "all_chars_count" in message:
        return f"the training text of {side} is blank; expected one sentence per line"
    return f"SentencePiece cannot learn a vocabulary of {side}: {message}"
