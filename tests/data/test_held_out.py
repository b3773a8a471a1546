"""Nothing that is scored is ever learnt, whoever splits the corpus."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.data import held_out
from nmt.data.held_out import Parts, hold_out
from nmt.data.parallel_text import SentencePair

words = st.lists(st.sampled_from(["go", "Go", "dog", "cat!", "sees", "one"]), max_size=5)
texts = st.builds(" ".join, words)
some_pairs = st.lists(st.builds(SentencePair, texts, texts))


def keys(pairs: list[SentencePair]) -> tuple[set[str], set[str]]:
    return {held_out._key(p.source) for p in pairs}, {held_out._key(p.target) for p in pairs}


@pytest.fixture(autouse=True, scope="module")
def larger_share() -> None:
    """Hold out enough that a few sentences reach every part."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(held_out, "_HELD_OUT_PERCENT", 30)
        yield


@settings(max_examples=200, deadline=None)
@given(some_pairs)
def test_no_sentence_is_in_two_parts(pairs: list[SentencePair]) -> None:
    parts = hold_out(pairs)
    for one, other in (
        (parts.train, parts.validation),
        (parts.train, parts.test),
        (parts.validation, parts.test),
    ):
        assert all(not a & b for a, b in zip(keys(one), keys(other), strict=True))


@settings(max_examples=100, deadline=None)
@given(some_pairs, st.randoms())
def test_a_sentence_stays_in_its_part_when_the_corpus_grows(
    pairs: list[SentencePair], random: object
) -> None:
    alone = hold_out(pairs)
    grown = hold_out([*pairs, SentencePair("an unseen sentence here", "une phrase nouvelle ici")])
    for name in ("validation", "test"):
        assert getattr(grown, name)[: len(getattr(alone, name))] == getattr(alone, name)


@settings(max_examples=100, deadline=None)
@given(some_pairs)
def test_held_out_sentences_are_whole_and_come_once(pairs: list[SentencePair]) -> None:
    parts = hold_out(pairs)
    for pair in (*parts.validation, *parts.test):
        assert len(pair.source.split()) >= 3
    sources, targets = keys([*parts.validation, *parts.test])
    assert len(sources) == len(targets) == len(parts.validation) + len(parts.test)


def test_case_and_punctuation_make_no_other_sentence() -> None:
    pairs = [SentencePair(f"Number {n} it is!", f"Voilà le {n}.") for n in range(200)]
    copies = [SentencePair(f"number  {n}, it is", f"« voilà le {n} »") for n in range(200)]
    parts = hold_out([*pairs, *copies])
    assert len(parts.train) + 2 * (len(parts.validation) + len(parts.test)) == 400
    assert min(len(parts.train), len(parts.validation), len(parts.test)) > 20


def test_shares_are_about_as_asked() -> None:
    pairs = [SentencePair(f"sentence number {n}", f"phrase {n}") for n in range(4000)]
    parts: Parts = hold_out(pairs)
    assert abs(len(parts.validation) - 1200) < 120
    assert abs(len(parts.test) - 1200) < 120
    assert len(parts.train) + len(parts.validation) + len(parts.test) == 4000
