"""A text of three pairs and tokenizers of every kind that are learnt from it."""

from typing import Any

import pytest

from nmt.config import TokenizerConfig
from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.tokenizer import Tokenizer
from nmt.data.tokens.vocabulary import learn_vocabulary

PAIRS = [
    SentencePair("a small dog sees the big house .", "ein kleiner Hund sieht das große Haus ."),
    SentencePair("the house is small .", "das Haus ist klein ."),
    SentencePair("a dog eats !", "ein Hund frisst !"),
]
ALPHABET = "".join(sorted({c for pair in PAIRS for c in pair.source + pair.target}))
SIZES = {"bpe": 60, "unigram": 33, "char": 26, "word": 25}
every_kind = pytest.mark.parametrize("kind", SIZES)


def learn(kind: str = "bpe", **settings: Any) -> Tokenizer:
    """Learn a tokenizer from `PAIRS`, by default with a vocabulary of `SIZES` entries."""
    values: dict[str, Any] = {"kind": kind, "vocabulary_size": SIZES[kind], **settings}
    return learn_vocabulary(PAIRS, TokenizerConfig(**values))
