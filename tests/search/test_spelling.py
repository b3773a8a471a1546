"""What each id spells, and how the beginning of a translation is spelled."""

import pytest

from nmt.config import TokenizerConfig
from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.tokenizer import EOS, UNK, Tokenizer
from nmt.data.tokens.vocabulary import learn_vocabulary
from nmt.errors import DataError
from nmt.search.spelling import Spelling, TargetPrefix

TEXT = 'Der Hund und die Hunde, "Hund" 。'


def learnt(kind: str, size: int) -> Spelling:
    config = TokenizerConfig(kind=kind, vocabulary_size=size)  # type: ignore[arg-type]
    return Spelling(learn_vocabulary([SentencePair(TEXT, TEXT)] * 3, config))


@pytest.fixture(scope="module")
def subwords() -> Spelling:
    return learnt("bpe", 36)


def test_ids_add_what_is_decoded_with_a_space_in_front_or_behind_a_mark(subwords: Spelling) -> None:
    for text in ("Der Hund", "und die Hunde"):
        ids = subwords.ids(text)
        assert subwords.spelled(ids).decode() == f" {text}"
        assert subwords.tokenizer.target.decode([ids]) == [text]
    assert subwords.spelled(subwords.without_space("Hund")) == b"Hund"
    assert Spelling(subwords.tokenizer, tokenized=True).without_space("Hund") == ()


def test_beginnings_are_parts_of_the_text_or_more_than_it(subwords: Spelling) -> None:
    found = {subwords.bytes[i] for i in subwords.beginnings(b" Hu")}
    assert {b" ", b" Hund", b" Hunde"} <= found
    assert all(b" Hu".startswith(text) or text.startswith(b" Hu") for text in found)
    assert subwords.can_spell(b" Hund") and subwords.can_spell(b" dr")
    assert not subwords.can_spell(" Ж".encode()) and not subwords.can_spell(" HuЖ".encode())


def test_a_space_or_a_mark_ends_a_word_but_in_tokenised_text_only_a_space(
    subwords: Spelling,
) -> None:
    vocabulary = subwords.tokenizer.target.pieces
    ends = {vocabulary[i] for i, end in enumerate(subwords.ends_word) if end}
    assert {"</s>", "▁", ","} <= ends and not {"u", "n", "e", "<unk>"} & ends
    assert subwords.has_inner_pieces and not learnt("word", 11).has_inner_pieces
    comma = vocabulary.index(",")
    tokenised = Spelling(subwords.tokenizer, tokenized=True)
    assert subwords.closes_term(comma) and not tokenised.closes_term(comma)
    assert tokenised.closes_term(EOS)


def test_an_unknown_word_is_the_unknown_symbol_and_nothing_is_refused() -> None:
    words = learnt("word", 11)
    assert words.ids("Zebra") == (UNK,) and words.bytes[UNK].startswith(b" ")
    with pytest.raises(DataError, match="leaves nothing behind"):
        words.ids("\u200b")


@pytest.mark.parametrize("prefix", ["Der Hund", "Der Hund ", "Жук", "ein  kleiner", "a\tb", "  "])
def test_the_required_ids_spell_a_prefix_and_then_nothing_is_required(
    byte_tokenizer: Tokenizer, prefix: str
) -> None:
    spelling = Spelling(byte_tokenizer)
    target = TargetPrefix.spell(prefix, spelling)
    ids: list[int] = []
    while required := target.required(spelling, len(ids), spelling.spelled(ids)):
        ids.append(required[-1])
    assert target.required(spelling, len(ids), spelling.spelled(ids)) is None
    assert bool(ids) is bool(prefix.strip())
    assert spelling.spelled(ids).startswith(target.text)
    assert target.decoded(spelling).split() == prefix.split()
