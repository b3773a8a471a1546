"""tokenizer.json gives every text the ids that SentencePiece gives it, and every id its text."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.tokenizer import EOS, Tokenizer
from nmt.data.tokens.vocabulary import learn_vocabulary
from nmt.errors import ExchangeError
from nmt.exchange.fast_tokenizer import tokenizer_json, write_tokenizer
from nmt.recipe.config import TokenizerConfig

tokenizers: Any = pytest.importorskip("tokenizers")

CORPUS = [
    "the small dog runs over the green field < / >",
    "der kleine Hund läuft über das grüne Feld",
    "another dog sleeps under the old tree , isn't it ?",
]
TEXTS = [
    *CORPUS,
    "",
    "  two  spaces\tand a tab ",
    "</s> <s> <unk> <pad>",
    "ﬁne ½ ① ｆｕｌｌ\u00a0width",
    "▁▁ the 世界 dog 😀",
    "dog" * 40,
]


def learn(tags: Sequence[str] = (), **settings: Any) -> Tokenizer:
    defaults: dict[str, Any] = {"kind": "bpe", "vocabulary_size": 90}
    pairs = [SentencePair(text, text) for text in CORPUS]
    return learn_vocabulary(pairs, TokenizerConfig(**defaults | settings), tags)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"normalization": "identity"},
        {"normalization": "nmt_nfkc_cf"},
        {"byte_fallback": True, "vocabulary_size": 340},
        {"kind": "unigram", "vocabulary_size": 45},
        {"kind": "char"},
        {"kind": "char", "byte_fallback": True, "vocabulary_size": 340},
    ],
    ids=str,
)
def test_ids_and_texts_are_those_of_sentencepiece(settings: dict[str, Any]) -> None:
    model = learn(**settings).source
    theirs = tokenizers.Tokenizer.from_str(json.dumps(tokenizer_json(model)))
    ids = model.encode(TEXTS)
    assert [encoding.ids for encoding in theirs.encode_batch(TEXTS)] == ids
    texts = [theirs.decode([i for i in row if i != EOS]) for row in ids]
    assert texts == model.decode(ids)


def test_transformers_reads_tags_but_no_special_pieces_from_text(tmp_path: Path) -> None:
    """A literal </s> in a text does not end it."""
    transformers: Any = pytest.importorskip("transformers")
    tokenizer = learn(tags=[">>fr<<"])
    write_tokenizer(tokenizer, tmp_path)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert theirs(TEXTS)["input_ids"] == tokenizer.source.encode(TEXTS)
    tag, *dog = theirs(">>fr<<dog")["input_ids"]
    assert tokenizer.source.pieces[tag] == ">>fr<<" and theirs.decode(dog) == "dog</s>"
    assert theirs.decode(dog, skip_special_tokens=True) == "dog"


def test_a_word_level_vocabulary_is_refused_with_formats_that_have_it() -> None:
    with pytest.raises(ExchangeError, match="whole words.*as ctranslate2"):
        tokenizer_json(learn(kind="word", vocabulary_size=20).source)


def test_bytes_of_a_unigram_vocabulary_bring_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    content = tokenizer_json(learn(kind="unigram", byte_fallback=True, vocabulary_size=300).source)
    assert "transformers.js does not spell unknown characters" in capsys.readouterr().err
    theirs = tokenizers.Tokenizer.from_str(json.dumps(content))
    assert theirs.decode(theirs.encode("世", add_special_tokens=False).ids) == "世"
