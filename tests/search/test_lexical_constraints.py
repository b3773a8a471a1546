"""Progress under constraints, with a vocabulary of words and parts of words."""

from collections.abc import Sequence

import pytest

from nmt.config import TokenizerConfig
from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.tokenizer import EOS, Tokenizer
from nmt.data.tokens.vocabulary import learn_vocabulary
from nmt.errors import DataError
from nmt.search.constrained_sentence import ConstrainedSentence, ConstraintProgress
from nmt.search.lexical_constraints import LexicalConstraints, SpelledConstraints, source_tokens
from nmt.search.spelling import Spelling

TEXT = 'Der Hund und die Hunde. Ein "Hund" (Hund), Hundehütte, Katze 3 Katzen, 小狗。狗'


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    config = TokenizerConfig(vocabulary_size=85)
    return learn_vocabulary([SentencePair(TEXT, TEXT)] * 3, config)


@pytest.fixture(scope="module")
def spelling(tokenizer: Tokenizer) -> Spelling:
    return Spelling(tokenizer)


def constrained(spelling: Spelling, *terms: str, **others: object) -> ConstrainedSentence:
    text = LexicalConstraints(terms, **others)  # type: ignore[arg-type]
    return ConstrainedSentence(SpelledConstraints.spell(text, spelling), spelling)


def follow(sentence: ConstrainedSentence, tokens: Sequence[int]) -> ConstraintProgress | None:
    progress: ConstraintProgress | None = ConstraintProgress()
    for token in tokens:
        progress = sentence.advance(progress, token) if progress else None
    return progress


def still_needed(sentence: ConstrainedSentence, text: str) -> int:
    ids = sentence.spelling.tokenizer.target.encode([text])[0]
    progress = follow(sentence, ids)
    assert progress is not None
    return sentence.needed(progress)


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
    while needed := sentence.needed(progress):
        after = [sentence.advance(progress, token) for token in sentence.wanted(progress)]
        progress = min((p for p in after if p), key=sentence.needed)
        assert sentence.needed(progress) == needed - 1


def test_a_forbidden_word_is_never_there_however_it_is_spelled(spelling: Spelling) -> None:
    sentence = constrained(spelling, forbidden=("hund",))
    spelled = spelling.tokenizer.target.pieces.index
    letters = [spelled(piece) for piece in ("▁", "H", "u", "n", "d")]
    for ids in (letters, spelling.ids("Hund")):
        assert (before := follow(sentence, ids)) is not None and sentence.is_pending(before)
        assert sentence.advance(before, EOS) is None
        assert sentence.advance(before, spelled(".")) is None
        assert sentence.advance(before, spelled("e"), last=True) is not None
    assert still_needed(sentence, "Die Hunde und Hundehütte.") == 0


def test_a_prefix_is_followed_letter_by_letter_in_its_last_word(spelling: Spelling) -> None:
    sentence = constrained(spelling, prefix="Der Hu")
    for text, allowed in {"Der Hund": True, "Der Hunde.": True, "Der Katze": False}.items():
        ids = spelling.tokenizer.target.encode([text])[0]
        assert (follow(sentence, ids) is not None) is allowed, text


def test_a_space_behind_a_prefix_ends_its_last_word(spelling: Spelling) -> None:
    sentence = constrained(spelling, prefix="Der Hund ")
    for text, allowed in {"Der Hund und": True, "Der Hunde": False, "Der Hund": False}.items():
        ids = spelling.tokenizer.target.encode([text])[0]
        assert (follow(sentence, ids) is not None) is allowed, text


@pytest.mark.parametrize("prefix", ["Der  Hund", "Жук der", "Der Жу", "Hu", " Der ", "小"])
def test_the_prefix_is_restored_to_the_letter(spelling: Spelling, prefix: str) -> None:
    sentence = constrained(spelling, prefix=prefix)
    progress, tokens = ConstraintProgress(), []
    while (required := sentence.required(progress)) is not None:
        tokens.append(required[0])
        after = sentence.advance(progress, required[0])
        assert after is not None
        progress = after
    tokens += spelling.ids("Katze")
    [text] = spelling.tokenizer.target.decode([tokens])
    assert sentence.restore(text, tokens).startswith(prefix)
    assert sentence.restore(text, tokens).endswith(" Katze")


def test_unknown_characters_of_terms_are_restored(spelling: Spelling) -> None:
    sentence = constrained(spelling, "Жук", "Ωmega")
    tokens = [*spelling.ids("Der"), *spelling.ids("Жук"), *spelling.ids("und")]
    tokens += [*spelling.ids("Ωmega"), *spelling.ids("Hund")]
    [text] = spelling.tokenizer.target.decode([tokens])
    assert sentence.restore(text, tokens) == "Der Жук und Ωmega Hund"


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        (LexicalConstraints(("Der Hund",), ("hund",)), "'Der Hund' is asked for, and 'hund'"),
        (LexicalConstraints((), ("hund",), "Der Hund "), "is forbidden; leave out one of them"),
        (LexicalConstraints(("\u200b",)), "leaves nothing behind"),
    ],
)
def test_what_cannot_be_met_is_refused(
    spelling: Spelling, constraints: LexicalConstraints, message: str
) -> None:
    with pytest.raises(DataError) as error:
        SpelledConstraints.spell(constraints, spelling)
    assert message in str(error.value)


def test_a_prefix_that_may_still_become_another_word_is_not_refused(spelling: Spelling) -> None:
    SpelledConstraints.spell(LexicalConstraints((), ("hund",), "Der Hund"), spelling)


def test_characters_are_found_among_the_source_tokens() -> None:
    pieces = ["▁A", "▁r", "ed", "▁dog", "."]
    assert source_tokens(range(1, 4), pieces) == range(1, 3)
    assert source_tokens(range(4, 7), pieces) == range(3, 4)
