"""A text of three pairs and tokenizers of every kind that are learnt from it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece

from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.subword_regularization import SubwordRegularization
from nmt.data.tokens.token_store import TokenStore
from nmt.data.tokens.tokenizer import SubwordModel, Tokenizer
from nmt.data.tokens.vocabulary import learn_vocabulary, parse_model
from nmt.recipe.config import TokenizerConfig

PAIRS = [
    SentencePair("a small dog sees the big house .", "ein kleiner Hund sieht das große Haus ."),
    SentencePair("the house is small .", "das Haus ist klein ."),
    SentencePair("a dog eats !", "ein Hund frisst !"),
]
TEXTS = [text for pair in PAIRS for text in pair]
ALPHABET = "".join(sorted(set("".join(TEXTS))))
SIZES = {"bpe": 60, "unigram": 33, "char": 26, "word": 25}
every_kind = pytest.mark.parametrize("kind", SIZES)


def learn(kind: str = "bpe", **settings: Any) -> Tokenizer:
    """Learn a tokenizer from `PAIRS`, by default with a vocabulary of `SIZES` entries."""
    values: dict[str, Any] = {"kind": kind, "vocabulary_size": SIZES[kind], **settings}
    return learn_vocabulary(PAIRS, TokenizerConfig(**values))


def dense_unigram() -> Tokenizer:
    """A unigram tokenizer that has many segmentations for each word: pieces of 2 to 4 letters."""
    proto = parse_model(learn("unigram", normalization="identity").source.model, "")
    words = [f"\u2581{word}" for text in TEXTS for word in text.split()]
    spans = [(start, start + length) for start in range(9) for length in (2, 3, 4)]
    parts = {word[start:end] for word in words for start, end in spans if end <= len(word)}
    for i, part in enumerate(sorted(parts.difference(piece.piece for piece in proto.pieces))):
        proto.pieces.add(piece=part, score=-3.0 - len(part) - i % 7 / 4)
    proto.trainer_spec.vocab_size = len(proto.pieces)
    return Tokenizer(SubwordModel(proto.SerializeToString()))


def drawn_segmentation(model: SubwordModel, ids: Sequence[int], alpha: float) -> list[int]:
    """Another segmentation of the text of `ids`, as `tokenizer.sampling: alpha` draws it."""
    store = TokenStore.of([ids], [ids])
    drawn = SubwordRegularization(Tokenizer(model), alpha, seed=1).draw(store, np.arange(1), 1)
    return drawn.source.sentence(0).tolist()


def foreign_model(
    path: Path, kind: str = "bpe", size: int = 60, texts: Sequence[str] = TEXTS, **options: Any
) -> Path:
    """Write a model as its maker would train it, with ids of its own choice."""
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([*texts] * 5),
        model_prefix=str(path.with_suffix("")),
        model_type=kind,
        vocab_size=size,
        minloglevel=2,
        **options,
    )
    return path
