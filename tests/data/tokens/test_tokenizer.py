"""Text survives the way to ids and back; a tokenizer that cannot be used is refused."""

import io
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.config import TextPair, TokenizerConfig
from nmt.data.text.parallel_text import ParallelText, SentencePair
from nmt.data.tokens.tokenizer import BOS, EOS, PAD, UNK, Tokenizer
from nmt.data.tokens.vocabulary import learn_vocabulary
from nmt.errors import DataError
from tests.data.tokens.small_tokenizers import ALPHABET, PAIRS, SIZES, every_kind, learn


@pytest.fixture(scope="module")
def exact() -> Tokenizer:
    return learn(normalization="identity")


@pytest.fixture(scope="module")
def with_bytes() -> Tokenizer:
    return learn(vocabulary_size=310, byte_fallback=True, normalization="identity")


@every_kind
def test_text_of_known_units_comes_back(kind: str) -> None:
    tokenizer = learn(kind)
    texts = [pair.target for pair in PAIRS]
    assert tokenizer.target.decode(tokenizer.target.encode(texts)) == texts
    assert tokenizer.shared
    assert tokenizer.source.size == tokenizer.target.size == SIZES[kind]


@settings(max_examples=100, deadline=None)
@given(st.text(ALPHABET))
def test_identity_gives_every_space_back(exact: Tokenizer, text: str) -> None:
    assert exact.target.decode(exact.target.encode([text])) == [text]


@settings(max_examples=50, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="▁")))
def test_bytes_spell_any_text(with_bytes: Tokenizer, text: str) -> None:
    assert with_bytes.target.decode(with_bytes.target.encode([text])) == [text]


@every_kind
def test_special_symbols_have_fixed_ids_and_every_sentence_ends_with_eos(kind: str) -> None:
    tokenizer = learn(kind)
    assert (PAD, UNK, BOS, EOS) == (0, 1, 2, 3)
    assert tokenizer.target.pieces_of([PAD, UNK, BOS, EOS]) == ["<pad>", "<unk>", "<s>", "</s>"]
    for encode in (tokenizer.source.encode, tokenizer.target.encode):
        ids, empty = encode(["a small dog", ""])
        assert ids[-1] == EOS and not {PAD, BOS, EOS} & set(ids[:-1])
        assert empty == [EOS]


@every_kind
def test_decoding_drops_special_symbols(kind: str) -> None:
    tokenizer = learn(kind)
    (ids,) = tokenizer.target.encode(["das Haus"])
    noisy = [BOS, *ids[:-1], EOS, PAD, PAD]
    assert tokenizer.target.decode([noisy, ids[:-1], []]) == ["das Haus", "das Haus", ""]
    assert tokenizer.target.decode([]) == []


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
    tokenizer = learn(kind)
    (ids,) = tokenizer.target.encode([text])
    assert ids.count(UNK) == 1
    assert tokenizer.target.decode([ids]) == [expected]


def test_pieces_are_what_the_model_reads(exact: Tokenizer) -> None:
    (ids,) = exact.source.encode(["the house"])
    assert "".join(exact.source.pieces_of(ids)) == "▁the▁house</s>"


def test_each_language_may_have_its_own_vocabulary_which_is_saved_and_loaded(
    tmp_path: Path,
) -> None:
    tokenizer = learn(vocabulary_size=40, shared=False)
    tokenizer.save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source.model", "target.model"]
    for one in (tokenizer, Tokenizer.load(tmp_path)):
        assert not one.shared and not one.differs_from(tokenizer)
        assert one.source.size == one.target.size == 40
        assert UNK in one.source.encode(["groß"])[0]
        assert UNK not in one.target.encode(["groß"])[0]


def test_many_texts_are_encoded_as_each_alone(exact: Tokenizer) -> None:
    texts = [f"{'small ' * (n % 7)}dog{n}" for n in range(1000)]
    assert exact.source.encode(texts) == [exact.source.encode([text])[0] for text in texts]


def test_a_place_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    missing = "no tokenizer here; expected tokenizer.model, or source.model and target.model"
    for folder, message in (
        (tmp_path, missing),
        (tmp_path / "absent", missing),
        (tmp_path / "file", "cannot be read: Not a directory"),
    ):
        with pytest.raises(DataError, match=message):
            Tokenizer.load(folder)


@pytest.mark.parametrize("data", [b"", b"no model", b"\x00" * 99])
def test_a_damaged_tokenizer_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "tokenizer.model").write_bytes(data)
    with pytest.raises(DataError, match="not a SentencePiece model, or a damaged one; prepare"):
        Tokenizer.load(tmp_path)


def test_a_model_with_other_special_ids_is_refused(tmp_path: Path) -> None:
    model = io.BytesIO()
    texts = iter([pair.source for pair in PAIRS])
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=texts, model_writer=model, vocab_size=21, minloglevel=2
    )
    (tmp_path / "tokenizer.model").write_bytes(model.getvalue())
    with pytest.raises(DataError, match=r"are \(-1, 0, 1, 2\), expected \(0, 1, 2, 3\); use a"):
        Tokenizer.load(tmp_path)


def test_tokenised_text_of_multi30k_comes_back_byte_for_byte(test_data: Path) -> None:
    folder = test_data / "multi30k_tok"
    source, target = (str(folder / f"val.lc.norm.tok.{side}.xz") for side in ("en", "de"))
    text = ParallelText(TextPair(source=source, target=target))
    config = TokenizerConfig(vocabulary_size=2000, normalization="identity")
    tokenizer = learn_vocabulary(text, config)
    targets = [pair.target for pair in text]
    assert tokenizer.target.decode(tokenizer.target.encode(targets)) == targets


@every_kind
def test_spellings_name_every_piece_even_of_the_unknown(kind: str) -> None:
    """SentencePiece makes one unknown piece of several in a row: a spelling may hold spaces."""
    tokenizer = learn(kind)
    for text in ("the house", "the zebra Ω house", "Ω Ω the", "  a   dog ", "", "ΩΩ"):
        spellings = tokenizer.source.split(text)
        assert len(spellings) == len(tokenizer.source.encode([text])[0]) - 1
        assert "".join(spellings).replace("▁", " ").split() == text.split()


@every_kind
def test_spellings_of_a_target_are_what_decoding_writes(kind: str) -> None:
    tokenizer = learn(kind)
    dog = tokenizer.target.encode(["dog"])[0][:-1]
    for ids in ([*dog, UNK, *dog, UNK], [UNK, *dog], [*dog, *dog], []):
        spelled = "".join(tokenizer.target.spell(ids)).replace("▁", " ")
        assert spelled.removeprefix(" ") == tokenizer.target.decode([ids])[0]
