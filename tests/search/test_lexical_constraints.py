"""Constraints in ids of words and parts of words, and the progress of hypotheses under them."""

import time
from collections.abc import Sequence
from typing import Any

import pytest

from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.tokenizer import EOS, UNK, Tokenizer
from nmt.data.tokens.vocabulary import learn_vocabulary
from nmt.errors import DataError
from nmt.recipe.config import TokenizerConfig
from nmt.search.constrained_sentence import ConstrainedSentence, ConstraintProgress
from nmt.search.lexical_constraints import (
    LexicalConstraints,
    SpelledConstraints,
    Spelling,
    contains_any,
    source_token_range,
)

TEXT = 'Der Hund und die Hunde. Ein "Hund" (Hund), Hundehütte, Katze 3 Katzen, 小狗。狗'


def learnt(**settings: Any) -> Spelling:
    return Spelling(learn_vocabulary([SentencePair(TEXT, TEXT)] * 3, TokenizerConfig(**settings)))


@pytest.fixture(scope="module")
def spelling() -> Spelling:
    return learnt(vocabulary_size=85)


@pytest.fixture(scope="module")
def words() -> Spelling:
    return learnt(kind="word", vocabulary_size=15)


def test_ids_add_what_is_decoded_with_a_space_in_front_or_behind_a_mark(spelling: Spelling) -> None:
    for text in ("Der Hund", "und die Hunde"):
        ids = spelling.ids(text)
        assert spelling.text_of(ids).decode() == f" {text}"
        assert spelling.tokenizer.target.decode([ids]) == [text]
    assert spelling.text_of(spelling.ids_without_space("Hund")) == b"Hund"
    assert Spelling(spelling.tokenizer, tokenized=True).ids_without_space("Hund") == ()


def test_ids_that_continue_a_text_are_parts_of_it_or_more_than_it(spelling: Spelling) -> None:
    found = {spelling.bytes[i] for i in spelling.continuations(b" Hu")[0]}
    assert {b" ", b" Hund", b" Hunde"} <= found
    assert all(b" Hu".startswith(text) or text.startswith(b" Hu") for text in found)
    assert spelling.can_spell(b" Hund") and spelling.can_spell(b" dr")
    assert not spelling.can_spell(" Ж".encode()) and not spelling.can_spell(" HuЖ".encode())


def test_what_may_spell_a_long_word_is_found_in_linear_time(spelling: Spelling) -> None:
    text = b" " + b"Hund" * 2500
    start = time.process_time()
    after = spelling.continuations(text)
    assert time.process_time() - start < 2
    assert len(after) == len(text)
    for position in (0, 1, 2, 9_001, len(text) - 1):
        rest = text[position:]
        assert after[position] == [
            i
            for i in after[position]
            if rest.startswith(spelling.bytes[i]) or spelling.bytes[i].startswith(rest)
        ]
    spelled, position = b"", 0
    while position < len(text):  # any of the ids can be taken
        spelled += spelling.bytes[after[position][-1]]
        position = len(spelled)
    assert spelled.startswith(text)


def test_a_space_or_a_mark_ends_a_word_but_in_tokenised_text_only_a_space(
    spelling: Spelling, words: Spelling
) -> None:
    vocabulary = spelling.tokenizer.target.pieces
    ends = {vocabulary[i] for i, end in enumerate(spelling.word_ends) if end}
    assert {"</s>", "▁", ","} <= ends and not {"u", "n", "e", "<unk>"} & ends
    assert spelling.has_inner_pieces and not words.has_inner_pieces
    comma = vocabulary.index(",")
    tokenised = Spelling(spelling.tokenizer, tokenized=True)
    assert spelling.closes_term(comma) and not tokenised.closes_term(comma)
    assert tokenised.closes_term(EOS)


def test_an_unknown_word_is_the_unknown_symbol(words: Spelling) -> None:
    assert words.ids("Zebra") == (UNK,) and words.bytes[UNK].startswith(b" ")


def constrained(spelling: Spelling, *terms: str, **others: Any) -> ConstrainedSentence:
    text = LexicalConstraints(terms, **others)
    return ConstrainedSentence(SpelledConstraints.spell(text, spelling), spelling)


def follow(sentence: ConstrainedSentence, tokens: Sequence[int]) -> ConstraintProgress | None:
    progress: ConstraintProgress | None = sentence.start
    for token in tokens:
        progress = sentence.advance(progress, token) if progress else None
    return progress


def still_needed(sentence: ConstrainedSentence, text: str) -> int:
    progress = follow(sentence, sentence.spelling.tokenizer.target.encode([text])[0])
    assert progress is not None
    return progress.terms.missing_tokens


@pytest.mark.parametrize(
    ("terms", "text", "met"),
    [
        (("Hund",), "Der Hund", True),
        (("Hund",), "Der Hund.", True),
        (("Hund",), 'Ein "Hund"', True),
        (("Hund",), "Ein (Hund), die Katze", True),
        (("Hund",), "Die Hunde", False),
        (("Hund",), "Hundehütte", False),
        (("Hund", "Hund"), "Hund", False),
        (("Hund", "Hund"), "Hund und Hund.", True),
        (("Hund", "Hunde"), "Die Hunde und der Hund", True),
        (("Ein", "Ein Hund"), "Ein Hund und Ein", True),
        (("狗",), "狗。", True),
    ],
)
def test_a_term_is_met_where_it_stands_as_a_whole_word(
    spelling: Spelling, terms: tuple[str, ...], text: str, met: bool
) -> None:
    assert (still_needed(constrained(spelling, *terms), text) == 0) is met


def test_wanted_tokens_always_lead_to_all_terms(spelling: Spelling) -> None:
    sentence = constrained(spelling, "Katze", "Hund", "Hund", "die Hunde")
    progress = follow(sentence, spelling.tokenizer.target.encode(["Der Hunde"])[0][:-1])
    assert progress is not None
    while needed := progress.terms.missing_tokens:
        wanted = sentence.next_term_tokens(progress)
        token = min(wanted, key=lambda token: wanted[token].missing_tokens)
        after = sentence.advance(progress, token)
        assert after is not None and after.terms.missing_tokens == needed - 1
        progress = after


def test_a_forbidden_word_is_never_there_however_it_is_spelled(spelling: Spelling) -> None:
    sentence = constrained(spelling, forbidden=("hund",))
    spelled = spelling.tokenizer.target.pieces.index
    letters = [spelled(piece) for piece in ("▁", "H", "u", "n", "d")]
    for ids in (letters, spelling.ids("Hund")):
        assert (before := follow(sentence, ids)) is not None and before.ends_in_forbidden
        assert sentence.advance(before, EOS) is None
        assert sentence.advance(before, spelled(".")) is None
        assert sentence.advance(before, spelled("e"), last=True) is not None
    assert still_needed(sentence, "Die Hunde und Hundehütte.") == 0


def test_a_sign_belongs_to_the_cluster_before_it() -> None:
    rice, letter, reads = "စား", "စာ", "စာဖတ်"  # the first two begin alike
    pair = SentencePair(f"{rice}{reads}。", f"{rice}{reads}。")
    settings = TokenizerConfig(kind="char", vocabulary_size=12)
    burmese = Spelling(learn_vocabulary([pair] * 3, settings))
    term, forbidden = constrained(burmese, letter), constrained(burmese, forbidden=(letter,))
    encode = burmese.tokenizer.target.encode
    for text, is_there in ((rice, False), (letter, True), (reads, True), (rice + reads, True)):
        [tokens] = encode([text])
        assert (still_needed(term, text) == 0) is is_there
        assert (follow(forbidden, tokens) is None) is is_there
        assert forbidden.spelled.are_met_by(text) is not is_there
        assert term.spelled.are_met_by(text) is is_there


@pytest.mark.parametrize("word", ["Ｈｕｎｄ", "ｈｕｎｄ", "hund"])
def test_a_forbidden_word_is_compared_as_the_tokenizer_normalises(
    spelling: Spelling, word: str
) -> None:
    assert follow(constrained(spelling, forbidden=(word,)), [*spelling.ids("Hund"), EOS]) is None


@pytest.mark.parametrize(
    ("prefix", "allowed", "refused"),
    [
        ("Der Hu", ["Der Hund", "Der Hunde."], ["Der Katze"]),
        ("Der Hund ", ["Der Hund und"], ["Der Hunde", "Der Hund"]),  # the space ends the word
    ],
)
def test_a_prefix_is_followed_letter_by_letter_in_its_last_word(
    spelling: Spelling, prefix: str, allowed: list[str], refused: list[str]
) -> None:
    sentence = constrained(spelling, prefix=prefix)
    rows = spelling.tokenizer.target.encode([*allowed, *refused])
    found = [follow(sentence, ids) is not None for ids in rows]
    assert found == [True] * len(allowed) + [False] * len(refused)


@pytest.mark.parametrize(
    "prefix", ["Der  Hund", "Жук der", "Der Жу", "Hu", " Der ", "小", "ein  kleiner", "a\tb", "  "]
)
def test_the_required_ids_spell_a_prefix_which_is_restored_to_the_letter(
    spelling: Spelling, byte_tokenizer: Tokenizer, prefix: str
) -> None:
    for one in (spelling, Spelling(byte_tokenizer)):
        sentence = constrained(one, prefix=prefix)
        progress, tokens = sentence.start, list[int]()
        while required := sentence.next_prefix_tokens(progress):
            tokens.append(required[-1])
            after = sentence.advance(progress, required[-1])
            assert after is not None
            progress = after
        assert required is None and bool(tokens) is bool(prefix.strip())
        tokens += one.ids("Katze")
        [text] = one.tokenizer.target.decode([tokens])
        assert sentence.restore(text, tokens).startswith(prefix)
        assert sentence.restore(text, tokens).endswith(" Katze")


def test_unknown_characters_of_terms_are_restored(spelling: Spelling) -> None:
    sentence = constrained(spelling, "Жук", "Ωmega")
    tokens = [*spelling.ids("Der"), *spelling.ids("Жук"), *spelling.ids("und")]
    tokens += [*spelling.ids("Ωmega"), *spelling.ids("Hund")]
    [text] = spelling.tokenizer.target.decode([tokens])
    assert sentence.restore(text, tokens) == "Der Жук und Ωmega Hund"


def test_white_space_in_a_term_is_restored(spelling: Spelling) -> None:
    tokens = spelling.ids("Der Hund und")
    [text] = spelling.tokenizer.target.decode([tokens])
    assert constrained(spelling, "Der  Hund").restore(text, tokens) == "Der  Hund und"
    assert constrained(spelling, "Der Hund").restore(text, tokens) == text


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        (LexicalConstraints(("Der Hund",), ("hund",)), "'Der Hund' is asked for, and 'hund' is"),
        (LexicalConstraints((), ("hund",), "Der Hund "), "is forbidden; leave out one of them"),
        (LexicalConstraints(("\u200b",)), "leaves nothing behind"),
        (LexicalConstraints(("Hund",) * 1025), "its 1025 terms have .* tokens, and 1024 are"),
    ],
)
def test_what_cannot_be_met_is_refused(
    spelling: Spelling, constraints: LexicalConstraints, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        SpelledConstraints.spell(constraints, spelling)
    # a prefix may still become another word
    SpelledConstraints.spell(LexicalConstraints(("Hunde",), ("hund",), "Der Hund"), spelling)


@pytest.mark.parametrize(
    ("text", "there", "there_for_good"),
    [
        (" Ein Hund", True, False),
        (" Ein Hund.", True, True),
        (" HUND und", True, True),
        (" Hunde", False, False),
        (" Hund\N{COMBINING DIAERESIS}", False, False),
        (" \N{DOG FACE}Hund\N{DOG FACE}", True, True),
    ],
)
def test_a_word_at_the_end_may_still_become_another(
    text: str, there: bool, there_for_good: bool
) -> None:
    assert contains_any(("hund",), text.encode()) is there
    assert contains_any(("hund",), text.encode(), may_grow=True) is there_for_good
    assert not contains_any((), text.encode())


def test_half_a_character_at_the_end_says_nothing_yet() -> None:
    assert not contains_any(("hund",), " Hundé".encode()[:-1], may_grow=True)
    assert contains_any(("hund",), b" Hund\xc3 ", may_grow=True)
    # the last word may grow by any letter, also to one that a forbidden word ends in
    assert not contains_any(("max", "x"), b" Ma", may_grow=True)
    assert contains_any(("max", "x"), b" Max", may_grow=False)


def test_a_term_is_expected_where_its_source_is_attended_to(spelling: Spelling) -> None:
    text = LexicalConstraints(("Hund", "Katze"), source_spans=(range(3),))
    spelled = SpelledConstraints.spell(text, spelling, ["▁dog", "▁and", "▁cat"])
    sentence = ConstrainedSentence(spelled, spelling)
    begun = [follow(sentence, spelling.ids(term)[:1]) for term in text.terms]
    found = [[sentence.is_expected(one.terms, n) for n in range(3)] for one in begun if one]
    assert found == [[True, False, False], [True, True, True]]  # no place of "Katze" is known


def test_characters_are_found_among_the_source_tokens() -> None:
    pieces = ["▁A", "▁r", "ed", "▁dog", "."]
    assert source_token_range(range(1, 4), pieces) == range(1, 3)
    assert source_token_range(range(4, 7), pieces) == range(3, 4)
