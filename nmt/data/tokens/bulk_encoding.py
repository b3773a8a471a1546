"""Encodes the texts of a corpus: the ids of SentencePiece, but faster.

A BPE model whose pieces never contain an inner space segments every word on its own: a merge joins
two pieces of one word, and the order of merges depends on scores alone. So SentencePiece encodes
each distinct word once, and its ids are cached. A unigram model adds up scores along the whole
sentence, and their rounding depends on all of it, so it encodes whole sentences.
"""

from collections.abc import Callable

import numpy as np
import sentencepiece

from nmt.data.tokens.token_store import Sentences
from nmt.data.tokens.tokenizer import EOS, SubwordModel

_SPACE = "▁"  # how SentencePiece writes it
_BPE, _NORMAL, _USER_DEFINED = 2, 1, 4  # of sentencepiece_model.proto

_WORDS = 1 << 17
_LONGEST_WORD = 20  # characters; longer words are rarely repeated
_ID = np.dtype(np.uint32)


def bulk_encoder(model: SubwordModel, threads: int) -> Callable[[list[str]], Sentences]:
    """Return a function that encodes many texts, each with EOS at the end."""
    by_word = WordEncoder.of(model.model, threads)
    return by_word or (lambda texts: Sentences.of(model.encode(texts, threads)))


class WordEncoder:
    """Encodes texts word by word with a cache of words."""

    def __init__(self, model: bytes, without_normalization: bytes, threads: int) -> None:
        """Take a serialised SentencePiece model, and the same one without its normalisation."""
        self._normalizer = sentencepiece.SentencePieceProcessor(model_proto=model)
        self._model = sentencepiece.SentencePieceProcessor(model_proto=without_normalization)
        self._threads = threads
        self._ids: dict[str, bytes] = {}
        """the ids of each cached word, as the bytes of an array"""

    @classmethod
    def of(cls, model: bytes, threads: int) -> "WordEncoder | None":
        """Return an encoder, or None if the model does not segment each word on its own."""
        from sentencepiece import sentencepiece_model_pb2

        proto = sentencepiece_model_pb2.ModelProto()
        proto.ParseFromString(model)
        trainer, normalizer = proto.trainer_spec, proto.normalizer_spec
        by_word = (
            trainer.model_type == _BPE
            and not trainer.treat_whitespace_as_suffix
            and normalizer.escape_whitespaces
            # an unknown symbol joins unknown neighbours, so the space must be known
            and any(piece.piece == _SPACE and piece.type == _NORMAL for piece in proto.pieces)
            and all(_SPACE not in piece.piece[1:] for piece in proto.pieces)
            and all(piece.type != _USER_DEFINED for piece in proto.pieces)
        )
        if not by_word:
            return None
        normalizer.precompiled_charsmap = b""
        normalizer.add_dummy_prefix = False
        normalizer.remove_extra_whitespaces = False
        # some versions of SentencePiece check the examples in a model, which were normalised
        proto.DiscardUnknownFields()
        if "self_test_data" in proto.DESCRIPTOR.fields_by_name:
            proto.ClearField("self_test_data")
        return cls(model, proto.SerializeToString(), threads)

    def __call__(self, texts: list[str]) -> Sentences:
        """Return the ids of each text, with EOS at the end."""
        split = [
            text.replace(_SPACE, " " + _SPACE).split(" ")
            for text in self._normalizer.normalize(texts)
        ]
        new = list(set().union(*split).difference(self._ids))
        found = self._model.encode(new, num_threads=self._threads)
        self._ids.update((w, np.array(i, _ID).tobytes()) for w, i in zip(new, found, strict=True))
        end = _ID.type(EOS).tobytes()
        ids_of = self._ids.__getitem__
        rows = [b"".join(map(ids_of, words)) + end for words in split]
        self._forget(new)
        offsets = np.cumsum([0, *map(len, rows)]) // _ID.itemsize
        return Sentences(np.frombuffer(b"".join(rows), _ID), offsets)

    def _forget(self, new: list[str]) -> None:
        """Limit the cache to few and short words; frequent ones are soon cached again."""
        if len(self._ids) > _WORDS:
            self._ids.clear()
        for word in new:
            if len(word) > _LONGEST_WORD:
                self._ids.pop(word, None)
