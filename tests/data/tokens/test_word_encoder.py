"""Word by word gives the ids of whole sentences."""

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sentencepiece import sentencepiece_model_pb2

from nmt.data.text.lines import read_lines
from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens import word_encoder
from nmt.data.tokens.token_store import Sentences
from nmt.data.tokens.tokenizer import SubwordModel
from nmt.data.tokens.vocabulary import adopt_vocabulary, learn_vocabulary
from nmt.data.tokens.word_encoder import WordEncoder, bulk_encoder
from nmt.recipe.config import TokenizerConfig
from tests.data.tokens.tokenizers import ALPHABET, SIZES, TEXTS, foreign_model, learn

CONTROL, UNUSED = 3, 5  # of sentencepiece_model.proto
RARE = "\u2581\u00a0\u3000\u2028\u0000\ufeff\ufffd\t\r\u0301\ufb01中文 Ⅷ"
ANY_TEXTS = st.lists(st.text(ALPHABET + RARE) | st.text())


def assert_same_ids(
    model: SubwordModel, texts: list[str], encode: Callable[[list[str]], Sentences] | None = None
) -> None:
    """Compare with SentencePiece itself."""
    found = (encode or bulk_encoder(model, 1))(texts)
    assert [found.sentence(i).tolist() for i in range(len(texts))] == model.encode(texts)


NORMALIZATIONS = ("nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity")
TOKENIZERS = {
    **{name: learn(vocabulary_size=80, normalization=name) for name in NORMALIZATIONS},
    "bytes": learn(byte_fallback=True, vocabulary_size=330),
    "not shared": learn(shared=False, vocabulary_size=45),
    **{kind: learn(kind) for kind in SIZES if kind != "bpe"},
}


@pytest.mark.parametrize("name", TOKENIZERS)
@settings(max_examples=150, deadline=None)
@given(ANY_TEXTS)
def test_any_text_has_the_ids_that_sentencepiece_gives(name: str, texts: list[str]) -> None:
    tokenizer = TOKENIZERS[name]
    for model in (tokenizer.source, tokenizer.target):
        assert_same_ids(model, texts)


def test_every_bpe_model_of_ours_is_encoded_word_by_word() -> None:
    for name, tokenizer in TOKENIZERS.items():
        by_word = isinstance(bulk_encoder(tokenizer.target, 1), WordEncoder)
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
    path = foreign_model(
        tmp_path / "elsewhere.model",
        size=12,
        texts=["a b a b  a b", "a b a c a b   c"],
        hard_vocab_limit=False,
        **settings,
    )
    model = adopt_vocabulary(TokenizerConfig(model=str(path))).source
    assert_same_ids(model, ["a b a b", " b a", "ab  a   b ", "c a b x y", "", "   "])


@pytest.mark.parametrize("kind", [CONTROL, UNUSED])
def test_an_unknown_space_is_unknown_together_with_its_neighbours(kind: int) -> None:
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(TOKENIZERS["nmt_nfkc"].source.model)
    (space,) = (piece for piece in proto.pieces if piece.piece == "\u2581")
    space.type = kind
    model = SubwordModel(proto.SerializeToString())
    assert_same_ids(model, [" a x     Xdxc", "X X", "a X", "ZZ Z"])


def test_more_words_than_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_encoder, "_CACHED_WORDS", 3)
    monkeypatch.setattr(word_encoder, "_MAX_WORD_CHARACTERS", 5)
    model = TOKENIZERS["nmt_nfkc"].source
    encode = bulk_encoder(model, 1)
    for part in (TEXTS[:1], TEXTS[1:3], TEXTS * 2):
        assert_same_ids(model, part, encode)


def test_real_text(test_data: Path) -> None:
    paths = (test_data / "canada_laws" / f"train.{side}.xz" for side in ("en", "fr"))
    lines = [line for path in paths for line in islice(read_lines(path), 10_000)]
    pairs = [SentencePair(line, line) for line in lines[::20]]
    model = learn_vocabulary(pairs, TokenizerConfig(vocabulary_size=2000)).source
    assert_same_ids(model, lines)
