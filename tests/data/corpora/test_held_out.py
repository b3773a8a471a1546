"""Nothing that is scored is ever learnt, whoever splits the corpus."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.data.corpora import held_out
from nmt.data.corpora.held_out import HeldOut, hold_out
from nmt.data.text.parallel_text import SentencePair

words = st.lists(st.sampled_from(["go", "Go", "dog", "cat!", "sees", "one"]), max_size=5)
texts = st.builds(" ".join, words)
some_pairs = st.lists(st.builds(SentencePair, texts, texts))


def split(pairs: list[SentencePair]) -> HeldOut:
    return hold_out(pairs, len(pairs), ("validation", "test"))


def parts_of(pairs: list[SentencePair]) -> tuple[list[SentencePair], ...]:
    """Pairs to learn from, to watch and to score."""
    found = split(pairs)
    learnt = [pair for pair in pairs if found.may_be_learnt(pair)]
    return learnt, found.sets["validation"], found.sets["test"]


def keys(pairs: list[SentencePair]) -> tuple[set[str], set[str]]:
    return {held_out._key(p.source) for p in pairs}, {held_out._key(p.target) for p in pairs}


@pytest.fixture(autouse=True, scope="module")
def larger_share() -> None:
    """Hold out enough that a few sentences reach every part."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(held_out, "_SHARE", 0.3)
        yield


@settings(max_examples=200, deadline=None)
@given(some_pairs)
def test_no_sentence_is_in_two_parts(pairs: list[SentencePair]) -> None:
    train, validation, test = parts_of(pairs)
    for one, other in ((train, validation), (train, test), (validation, test)):
        assert all(not a & b for a, b in zip(keys(one), keys(other), strict=True))


@settings(max_examples=100, deadline=None)
@given(some_pairs, st.randoms())
def test_a_sentence_stays_in_its_part_when_the_corpus_grows(
    pairs: list[SentencePair], random: object
) -> None:
    alone = split(pairs).sets
    grown = split([*pairs, SentencePair("an unseen sentence here", "une phrase nouvelle ici")]).sets
    for name, held in alone.items():
        assert grown[name][: len(held)] == held


@settings(max_examples=100, deadline=None)
@given(some_pairs)
def test_held_out_sentences_are_whole_and_come_once(pairs: list[SentencePair]) -> None:
    _, validation, test = parts_of(pairs)
    for pair in (*validation, *test):
        assert len(pair.source.split()) >= 3
    sources, targets = keys([*validation, *test])
    assert len(sources) == len(targets) == len(validation) + len(test)


def test_case_and_punctuation_make_no_other_sentence() -> None:
    pairs = [SentencePair(f"Number {n} it is!", f"Voilà le {n}.") for n in range(200)]
    copies = [SentencePair(f"number  {n}, it is", f"« voilà le {n} »") for n in range(200)]
    train, validation, test = parts_of([*pairs, *copies])
    assert len(train) + 2 * (len(validation) + len(test)) == 400
    assert min(len(train), len(validation), len(test)) > 20


def test_shares_are_about_as_asked() -> None:
    pairs = [SentencePair(f"sentence number {n}", f"phrase {n}") for n in range(4000)]
    train, validation, test = parts_of(pairs)
    assert abs(len(validation) - 1200) < 120
    assert abs(len(test) - 1200) < 120
    assert len(train) + len(validation) + len(test) == 4000


def test_a_large_corpus_gives_sets_that_can_be_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_out, "LARGEST", 100)
    pairs = [SentencePair(f"sentence number {n}", f"phrase {n}") for n in range(4000)]
    train, validation, test = parts_of(pairs)
    assert 60 < len(validation) < 140 and 60 < len(test) < 140
    assert len(train) + len(validation) + len(test) == 4000


def test_a_set_that_is_there_already_is_not_cut_again() -> None:
    pairs = [SentencePair(f"sentence number {n}", f"phrase {n}") for n in range(400)]
    assert list(hold_out(pairs, 400, ["test"]).sets) == ["test"]
