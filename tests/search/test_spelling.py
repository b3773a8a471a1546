import pytest

from nmt.config import TokenizerConfig
from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.tokenizer import EOS, UNK, Tokenizer
from nmt.data.tokens.vocabulary import learn_vocabulary
from nmt.errors import DataError
from nmt.search.spelling import Spelling

TEXT = 'Der Hund und die Hunde, "Hund" 。'


def learnt(kind: str, size: int) -> Tokenizer:
    config = TokenizerConfig(kind=kind, vocabulary_size=size)  # type: ignore[arg-type]
    return learn_vocabulary([SentencePair(TEXT, TEXT)] * 3, config)


@pytest.fixture(scope="module")
def subwords() -> Spelling:
    return Spelling(learnt("bpe", 36))


def test_ids_add_what_is_decoded(subwords: Spelling) -> None:
    for text in ("Der Hund", "und die Hunde"):
        ids = subwords.ids(text)
        assert subwords.spelled(ids).decode() == f" {text}"
        assert subwords.tokenizer.target.decode([ids]) == [text]


def test_behind_a_mark_a_word_has_no_space(subwords: Spelling) -> None:
    assert subwords.spelled(subwords.without_space("Hund")) == b"Hund"
    assert Spelling(subwords.tokenizer, tokenized=True).without_space("Hund") == ()


def test_beginnings_are_parts_of_the_text_or_more_than_it(subwords: Spelling) -> None:
    found = {subwords.bytes[i] for i in subwords.beginnings(b" Hu")}
    assert {b" ", b" Hund", b" Hunde"} <= found
    assert all(b" Hu".startswith(text) or text.startswith(b" Hu") for text in found)


def test_a_text_can_be_spelled_or_not(subwords: Spelling) -> None:
    assert subwords.can_spell(b" Hund") and subwords.can_spell(b" dr")
    assert not subwords.can_spell(" Ж".encode()) and not subwords.can_spell(" HuЖ".encode())


def test_a_space_or_a_mark_ends_a_word(subwords: Spelling) -> None:
    vocabulary = subwords.tokenizer.target.pieces
    ends = {vocabulary[i] for i, end in enumerate(subwords.ends_word) if end}
    assert {"</s>", "▁", ","} <= ends and not {"u", "n", "e", "<unk>"} & ends
    assert subwords.has_inner_pieces and not Spelling(learnt("word", 11)).has_inner_pieces


def test_in_tokenised_text_only_a_space_closes_a_term(subwords: Spelling) -> None:
    comma = subwords.tokenizer.target.pieces.index(",")
    tokenised = Spelling(subwords.tokenizer, tokenized=True)
    assert subwords.closes_term(comma) and not tokenised.closes_term(comma)
    assert tokenised.closes_term(EOS)


def test_an_unknown_word_is_the_unknown_symbol_and_nothing_is_refused() -> None:
    words = Spelling(learnt("word", 11))
    assert words.ids("Zebra") == (UNK,) and words.bytes[UNK].startswith(b" ")
    with pytest.raises(DataError, match="leaves nothing behind"):
        words.ids("\u200b")
