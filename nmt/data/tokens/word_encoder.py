"""Encodes texts word by word, with a cache: the ids are those of SentencePiece, but come faster.

A BPE model whose pieces never contain an inner space segments every word on its own: a merge joins
two pieces of one word, and the order of merges depends on scores alone. So SentencePiece encodes
each distinct word once, and its ids are cached. A unigram model adds up scores along the whole
sentence, and their rounding depends on all of it, so it encodes whole sentences.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import sentencepiece

from nmt.data.tokens.token_store import Sentences
from nmt.data.tokens.tokenizer import EOS, SPACE, UNK, SubwordModel
from nmt.machine.memory import check_threads

_CACHED_WORDS = 1 << 17  # the most words in the cache
_MAX_WORD_CHARACTERS = 20  # longer words are rarely repeated, and so not cached
_ID = np.dtype(np.uint32)


def bulk_encoder(model: SubwordModel, threads: int) -> Callable[[list[str]], Sentences]:
    """Return a function from texts to their ids, each with EOS: a `WordEncoder` if possible.

    It is possible if `model` gives a word the same ids in every text (see the top of this file).
    `threads` is the number of threads for SentencePiece.
    """
    from sentencepiece import sentencepiece_model_pb2

    check_threads(threads)
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(model.model)
    if not _splits_word_by_word(proto):
        return lambda texts: Sentences.of(model.encode(texts, threads))
    # a second model without normalisation: it gets single words, which are normalised already
    normalizer = proto.normalizer_spec
    normalizer.precompiled_charsmap = b""
    normalizer.add_dummy_prefix = False
    normalizer.remove_extra_whitespaces = False
    # Remove the examples that a model may hold (text and ids): some versions of SentencePiece check
    # them when they load a model, which would fail without normalisation. Where protobuf's schema
    # has no field for the examples, they are among the unknown fields.
    proto.DiscardUnknownFields()
    if "self_test_data" in proto.DESCRIPTOR.fields_by_name:
        proto.ClearField("self_test_data")
    return WordEncoder(model, proto.SerializeToString(), threads)


def _splits_word_by_word(proto: Any) -> bool:
    """Return whether a parsed SentencePiece model gives a word the same ids in every text."""
    trainer, pieces = proto.trainer_spec, proto.pieces
    if trainer.model_type != trainer.BPE:
        return False
    # a word must begin with its space, written as `SPACE`, and no piece may have one inside
    if trainer.treat_whitespace_as_suffix or not proto.normalizer_spec.escape_whitespaces:
        return False
    if any(SPACE in piece.piece[1:] for piece in pieces):
        return False
    # SentencePiece merges unknown neighbours, so the space must be known
    has_space = any(piece.piece == SPACE and piece.type == piece.NORMAL for piece in pieces)
    # such a piece is found in a text before it is split into words
    has_user_defined = any(piece.type == piece.USER_DEFINED for piece in pieces)
    return has_space and not has_user_defined


class WordEncoder:
    """Encodes texts word by word, with a cache of the ids of short words."""

    def __init__(self, model: SubwordModel, without_normalization: bytes, threads: int) -> None:
        """Take a model, and the same one without its normalisation as SentencePiece stores it."""
        self._model = model
        self._normalizer = sentencepiece.SentencePieceProcessor(model_proto=model.model)
        """normalises whole texts"""
        self._word_processor = sentencepiece.SentencePieceProcessor(
            model_proto=without_normalization
        )
        """encodes words of normalised texts"""
        self._threads = threads
        self._cache: dict[str, bytes] = {}
        """the ids of words, as the bytes of an array"""

    def __call__(self, texts: list[str]) -> Sentences:
        """Return the ids of each text: its tags, its words, EOS.

        Ids are put together as bytes, which is faster than joining arrays.
        """
        tags = [b""] * len(texts)  # the ids of the tags of each text
        if self._model.tags:
            divided = [self._model.divide_tags(text) for text in texts]
            tags = [np.array(ids, _ID).tobytes() for ids, _ in divided]
            texts = [text for _, text in divided]
        # a word begins with its `SPACE`, if there is one before it
        words_of_texts = [
            text.replace(SPACE, " " + SPACE).split(" ")
            for text in self._normalizer.normalize(texts)
        ]
        new_words = self._cache_new_words(words_of_texts)
        eos = _ID.type(EOS).tobytes()
        rows = []
        for ids_of_tags, words in zip(tags, words_of_texts, strict=True):
            ids_of_words = b"".join(map(self._cache.__getitem__, words))
            rows.append(ids_of_tags + ids_of_words + eos)
        # the cache is limited to few and short words; frequent ones are soon cached again
        if len(self._cache) > _CACHED_WORDS:
            self._cache.clear()
        for word in new_words:
            if len(word) > _MAX_WORD_CHARACTERS:
                self._cache.pop(word, None)
        offsets = np.cumsum([0, *map(len, rows)]) // _ID.itemsize  # from bytes to ids
        return Sentences(np.frombuffer(b"".join(rows), _ID), offsets)

    def _cache_new_words(self, words_of_texts: list[list[str]]) -> list[str]:
        """Encode the words that are not cached, cache their ids, and return these words."""
        all_words = set().union(*words_of_texts)
        new_words = list(all_words.difference(self._cache))
        ids_of_new_words = self._word_processor.encode(new_words, num_threads=self._threads)
        for word, ids in zip(new_words, ids_of_new_words, strict=True):
            if UNK in ids:
                self._model.find_hidden(self._word_processor, word, ids)
            self._cache[word] = np.array(ids, _ID).tobytes()
        return new_words
