"""Text survives the way to ids and back; a tokenizer that cannot be used is refused."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.tokenizer import BOS, EOS, PAD, UNK, Tokenizer
from nmt.data.tokens.vocabulary import learn_vocabulary
from nmt.errors import DataError
from nmt.recipe.config import TokenizerConfig
from tests.data.tokens.tokenizers import ALPHABET, PAIRS, SIZES, every_kind, foreign_model, learn

IdPair = tuple[list[int], list[int]]
EXACT = learn(vocabulary_size=90, normalization="identity")
WITH_BYTES = learn(vocabulary_size=310, byte_fallback=True, normalization="identity")


@every_kind
def test_text_of_known_units_comes_back_without_special_symbols(kind: str) -> None:
    tokenizer = learn(kind)
    model = tokenizer.target
    assert tokenizer.shared and model.size == SIZES[kind]
    assert (PAD, UNK, BOS, EOS) == (0, 1, 2, 3)
    assert [model.pieces[i] for i in (PAD, UNK, BOS, EOS)] == ["<pad>", "<unk>", "<s>", "</s>"]
    texts = [pair.target for pair in PAIRS]
    *rows, empty = model.encode([*texts, ""])
    assert model.decode(rows) == texts
    assert empty == [EOS]
    for ids in rows:
        assert ids[-1] == EOS and not {PAD, BOS, EOS} & set(ids[:-1])
    noisy = [BOS, *rows[0][:-1], EOS, PAD, PAD]
    assert model.decode([noisy, rows[0][:-1], []]) == [texts[0], texts[0], ""]
    assert model.decode([]) == []


@every_kind
@pytest.mark.parametrize("text", ["a  dog… e\u0301ö\u00a0½ 😀x ", "", " ", "\u200bdog", ">>fr<< a"])
def test_each_piece_has_its_characters_before_normalisation(kind: Any, text: str) -> None:
    for tokenizer in (learn(kind), WITH_BYTES):
        model = tokenizer.source
        spans, pieces = model.spans(text), model.split(text)
        assert len(spans) == len(pieces)
        assert all(start <= end for start, end in spans) and sorted(spans) == spans
        covered = "".join(text[start:end] for start, end in spans).replace("\u200b", "")
        assert covered.split() == text.replace("\u200b", "").split()
        for piece, (start, end) in zip(pieces, spans, strict=True):
            if piece.isascii() and piece.isalpha():
                assert text[start:end] == piece


@settings(max_examples=100, deadline=None)
@given(st.text(ALPHABET), st.text(st.characters(exclude_categories=["Cs"], exclude_characters="▁")))
def test_identity_keeps_every_space_and_bytes_spell_any_text(known: str, any_text: str) -> None:
    assert EXACT.target.decode(EXACT.target.encode([known])) == [known]
    assert WITH_BYTES.target.decode(WITH_BYTES.target.encode([any_text])) == [any_text]


@every_kind
@pytest.mark.parametrize("symbol", ["</s>", "<s>", "<unk>", "<pad>"])
def test_a_symbol_that_is_spelled_out_is_text(kind: Any, symbol: str) -> None:
    pairs = [*PAIRS, SentencePair(f"a {symbol} dog {symbol}", f"{symbol} Hund")]
    tokenizer = learn_vocabulary(pairs, TokenizerConfig(kind=kind, vocabulary_size=SIZES[kind]))
    (ids,) = tokenizer.target.encode([f"Hund {symbol}"])
    assert not {PAD, BOS, EOS} & set(ids[:-1])


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [("word", "ein Zebra frisst", "ein ⁇ frisst"), ("word", "Zebra", "⁇"), ("char", "aЖb", "a⁇b")],
)
def test_unknown_units_become_the_unknown_symbol(kind: str, text: str, expected: str) -> None:
    model = learn(kind).target
    (ids,) = model.encode([text])
    assert ids.count(UNK) == 1
    assert model.decode([ids]) == [expected]


def test_each_language_may_have_its_own_vocabulary(tmp_path: Path) -> None:
    tokenizer = learn(vocabulary_size=40, shared=False)
    EXACT.save(tmp_path)
    tokenizer.save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source.model", "target.model"]
    for one in (tokenizer, Tokenizer.load(tmp_path)):
        assert not one.shared and not one.differs_from(tokenizer) and one.differs_from(EXACT)
        assert one.source.size == one.target.size == 40
        assert UNK in one.source.encode(["groß"])[0]
        assert UNK not in one.target.encode(["groß"])[0]


def test_no_thread_starts_for_one_text_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sentence alone would wait for it as long as for its encoding."""

    def without_threads(texts: str, add_eos: bool) -> list[int]:
        return [len(texts), EOS]

    monkeypatch.setattr(EXACT.source._processor, "encode", without_threads)
    assert EXACT.source.encode(["dog"]) == [[3, EOS]]
    assert EXACT.source.encode([]) == []


def test_many_texts_are_encoded_as_each_alone() -> None:
    texts = [f"{'small ' * (n % 7)}dog{n}" for n in range(1000)]
    assert EXACT.source.encode(texts) == [EXACT.source.encode([text])[0] for text in texts]


MISSING = "no tokenizer here; expected tokenizer.model, or source.model and target.model"
DAMAGED = "not a SentencePiece model, or a damaged one; prepare"


@pytest.mark.parametrize(
    ("place", "data", "message"),
    [
        (".", None, MISSING),
        ("absent", None, MISSING),
        ("tokenizer.model", b"", "cannot be read: Not a directory"),
        (".", b"", DAMAGED),
        (".", b"no model", DAMAGED),
        (".", b"\x00" * 99, DAMAGED),
    ],
)
def test_a_damaged_tokenizer_is_refused(
    tmp_path: Path, place: str, data: bytes | None, message: str
) -> None:
    if data is not None:
        (tmp_path / "tokenizer.model").write_bytes(data)
    with pytest.raises(DataError, match=message):
        Tokenizer.load(tmp_path / place)


def test_a_model_with_other_special_ids_is_refused(tmp_path: Path) -> None:
    foreign_model(tmp_path / "tokenizer.model")
    with pytest.raises(DataError, match=r"are \(-1, 0, 1, 2\), expected \(0, 1, 2, 3\); use a"):
        Tokenizer.load(tmp_path)


@every_kind
def test_spellings_name_every_piece_even_of_the_unknown(kind: str) -> None:
    """SentencePiece makes one unknown piece of several in a row: a spelling may hold spaces."""
    model = learn(kind).source
    for text in ("the house", "the zebra Ω house", "Ω Ω the", "  a   dog ", "", "ΩΩ"):
        spellings = model.split(text)
        assert len(spellings) == len(model.encode([text])[0]) - 1
        assert "".join(spellings).replace("▁", " ").split() == text.split()


def test_one_text_in_place_of_a_list_is_refused() -> None:
    with pytest.raises(TypeError, match=r"expected a list of texts, got the text 'a dog'; write"):
        learn("bpe").source.encode("a dog")
