"""A text of three pairs and tokenizers of every kind that are learnt from it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import sentencepiece

from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.tokenizer import Tokenizer
from nmt.data.tokens.vocabulary import learn_vocabulary
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
