"""The ids of many texts at once, for preparing a corpus: what SentencePiece says, only sooner.

A BPE model whose pieces never reach over a space cuts every word on its own, whatever stands beside
it: a merge happens inside one word, and which comes first is a matter of scores alone. So each
distinct word is handed to SentencePiece once and its ids are remembered. (A unigram model adds up
scores along the whole sentence, and how they are rounded depends on all of it: it is asked sentence
by sentence.)
"""

from collections.abc import Callable

import numpy as np
import sentencepiece

from nmt.data.token_store import Sentences
from nmt.data.tokenizer import EOS, UNK, Tokenizer

BulkEncoder = Callable[[list[str]], Sentences]

_SPACE = "▁"  # how SentencePiece writes it
_BPE, _USER_DEFINED = 2, 4  # of sentencepiece_model.proto

_WORDS = 1 << 17
_LONGEST_WORD = 40  # characters; longer ones hardly come again
_ID = np.dtype(np.uint32)


def bulk_encoders(tokenizer: Tokenizer, threads: int | None) -> tuple[BulkEncoder, BulkEncoder]:
    """What encodes source texts and what encodes target texts; every sentence ends with EOS.

    `threads` are for models that are asked sentence by sentence; None means all cores.
    """
    source: BulkEncoder | None = WordEncoder.of(tokenizer.source_model)
    if source is None:
        source = lambda texts: Sentences.of(tokenizer.encode_source(texts, threads))  # noqa: E731
    if tokenizer.shared:
        return source, source
    target: BulkEncoder | None = WordEncoder.of(tokenizer.target_model)
    if target is None:
        target = lambda texts: Sentences.of(tokenizer.encode_target(texts, threads))  # noqa: E731
    return source, target


class WordEncoder:
    """Encodes word by word and remembers the words."""

    def __init__(self, model: bytes, words: bytes) -> None:
        """Take a serialised SentencePiece model, and the same without normalisation."""
        self._normalizer = sentencepiece.SentencePieceProcessor(model_proto=model)
        self._words = _Words(words)

    @classmethod
    def of(cls, model: bytes) -> "WordEncoder | None":
        """One for a serialised SentencePiece model, or None if that cuts words in company."""
        from sentencepiece import sentencepiece_model_pb2

        proto = sentencepiece_model_pb2.ModelProto()
        proto.ParseFromString(model)
        trainer, normalizer = proto.trainer_spec, proto.normalizer_spec
        apart = (
            trainer.model_type == _BPE
            and not trainer.treat_whitespace_as_suffix
            and normalizer.escape_whitespaces
            # an unknown symbol joins unknown neighbours, so the space must be known
            and any(piece.piece == _SPACE for piece in proto.pieces[UNK + 1 :])
            and all(_SPACE not in piece.piece[1:] for piece in proto.pieces)
            and all(piece.type != _USER_DEFINED for piece in proto.pieces)
        )
        if not apart:
            return None
        normalizer.precompiled_charsmap = b""
        normalizer.add_dummy_prefix = False
        normalizer.remove_extra_whitespaces = False
        return cls(model, proto.SerializeToString())

    def __call__(self, texts: list[str]) -> Sentences:
        """The ids of each text, the last one EOS."""
        end = _ID.type(EOS).tobytes()
        ids_of = self._words.__getitem__
        rows = [
            b"".join(map(ids_of, text.replace(_SPACE, " " + _SPACE).split(" "))) + end
            for text in self._normalizer.normalize(texts)
        ]
        lengths = np.fromiter(map(len, rows), np.int64, len(rows)) // _ID.itemsize
        return Sentences(np.frombuffer(b"".join(rows), _ID), lengths)


class _Words(dict[str, bytes]):
    """The ids of each word, as the bytes of an array; found out when first asked for."""

    def __init__(self, model: bytes) -> None:
        self._model = sentencepiece.SentencePieceProcessor(model_proto=model)

    def __missing__(self, word: str) -> bytes:
        ids = np.array(self._model.encode(word), _ID).tobytes()
        if len(word) <= _LONGEST_WORD:
            if len(self) == _WORDS:
                self.clear()
            self[word] = ids
        return ids
