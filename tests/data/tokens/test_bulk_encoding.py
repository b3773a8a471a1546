"""Word by word gives what sentence by sentence gives, whatever stands in the text."""

from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st
from sentencepiece import sentencepiece_model_pb2

from nmt.config import TokenizerConfig
from nmt.data.text.lines import raw_lines
from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens import bulk_encoding
from nmt.data.tokens.bulk_encoding import WordEncoder, bulk_encoder
from nmt.data.tokens.token_store import Sentences
from nmt.data.tokens.tokenizer import SubwordModel, Tokenizer
from nmt.data.tokens.vocabulary import adopt_vocabulary, learn_vocabulary
from tests.data.tokens.small_tokenizers import PAIRS, SIZES, learn

CONTROL, UNUSED = 3, 5  # of sentencepiece_model.proto
RARE = "\u2581\u00a0\u3000\u2028\u0000\ufeff\ufffd\t\r\u0301\ufb01中文 Ⅷ"
TEXTS = st.lists(st.text("".join("".join(pair) for pair in PAIRS) + RARE) | st.text())


def rows(sentences: Sentences) -> list[list[int]]:
    return [sentences.sentence(i).tolist() for i in range(len(sentences.lengths))]


NORMALIZATIONS = ("nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity")
TOKENIZERS = {
    **{name: learn(vocabulary_size=80, normalization=name) for name in NORMALIZATIONS},
    "bytes": learn(byte_fallback=True, vocabulary_size=330),
    "not shared": learn(shared=False, vocabulary_size=45),
    **{kind: learn(kind) for kind in SIZES if kind != "bpe"},
}


@pytest.mark.parametrize("name", TOKENIZERS)
@settings(max_examples=150, deadline=None)
@given(TEXTS)
def test_any_text_has_the_ids_that_sentencepiece_gives(name: str, texts: list[str]) -> None:
    tokenizer = TOKENIZERS[name]
    for model in (tokenizer.source, tokenizer.target):
        assert rows(bulk_encoder(model, threads=1)(texts)) == model.encode(texts)


def test_every_bpe_model_of_ours_is_encoded_word_by_word() -> None:
    for name, tokenizer in TOKENIZERS.items():
        by_word = WordEncoder.of(tokenizer.target.model, 1) is not None
        assert by_word == (name not in ("unigram", "char", "word"))


@pytest.mark.parametrize(
    "settings",
    [
        {"split_by_whitespace": False},
        {"treat_whitespace_as_suffix": True},
        {"user_defined_symbols": ["a b"]},
        {"add_dummy_prefix": False},
        {"remove_extra_whitespaces": False, "allow_whitespace_only_pieces": True},
    ],
)
def test_models_trained_elsewhere_keep_their_ids(tmp_path: Path, settings: dict[str, Any]) -> None:
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["a b a b  a b", "a b a c a b   c"] * 3),
        model_prefix=str(tmp_path / "elsewhere"),
        model_type="bpe",
        vocab_size=12,
        hard_vocab_limit=False,
        minloglevel=2,
        **settings,
    )
    config = TokenizerConfig(kind="bpe", model=str(tmp_path / "elsewhere.model"))
    tokenizer = adopt_vocabulary(config)
    texts = ["a b a b", " b a", "ab  a   b ", "c a b x y", "", "   "]
    assert rows(bulk_encoder(tokenizer.source, 1)(texts)) == tokenizer.source.encode(texts)


@pytest.mark.parametrize("kind", [CONTROL, UNUSED])
def test_a_space_that_the_model_does_not_know_is_unknown_together_with_its_neighbours(
    kind: int,
) -> None:
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(TOKENIZERS["nmt_nfkc"].source.model)
    (space,) = (piece for piece in proto.pieces if piece.piece == "\u2581")
    space.type = kind
    tokenizer = Tokenizer(SubwordModel(proto.SerializeToString()))
    texts = [" a x     Xdxc", "X X", "a X", "ZZ Z"]
    assert rows(bulk_encoder(tokenizer.source, 1)(texts)) == tokenizer.source.encode(texts)


def test_more_words_than_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_encoding, "_WORDS", 3)
    monkeypatch.setattr(bulk_encoding, "_LONGEST_WORD", 5)
    texts = [side for pair in PAIRS for side in pair] * 2
    tokenizer = TOKENIZERS["nmt_nfkc"]
    encode = bulk_encoder(tokenizer.source, 1)
    for part in (texts[:1], texts[1:3], texts):
        assert rows(encode(part)) == tokenizer.source.encode(part)


def test_real_text(test_data: Path) -> None:
    lines = [
        line.decode().rstrip("\n")
        for side in ("en", "fr")
        for line in islice(raw_lines(test_data / "canada_laws" / f"train.{side}.xz"), 10_000)
    ]
    pairs = [SentencePair(line, line) for line in lines[::10]]
    tokenizer = learn_vocabulary(pairs, TokenizerConfig(vocabulary_size=4000))
    assert rows(bulk_encoder(tokenizer.source, 1)(lines)) == tokenizer.source.encode(lines)
