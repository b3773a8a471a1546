"""Tests of repeated pairs, exact and almost."""

import random

import numpy as np
import pytest

from nmt.data.text.duplicates import DuplicateFinder, SeenHashes, hash_pairs, pair_hashes
from nmt.data.text.parallel_text import SentencePair
from nmt.recipe.config import CleaningConfig


@pytest.mark.parametrize("seed", range(5))
def test_hashes_are_known_from_their_second_time_on(seed: int) -> None:
    draw = random.Random(seed)
    known: set[int] = set()
    seen = SeenHashes()
    for _ in range(60):
        top = draw.choice([50, 1 << 64])
        hashes = [draw.randrange(top) for _ in range(draw.randrange(1, 40))]
        expected = []
        for value in hashes:
            expected.append(value in known)
            known.add(value)
        assert seen.add(np.array(hashes, np.uint64)).tolist() == expected


def test_the_border_between_the_sides_counts() -> None:
    pairs = [SentencePair("a b", "c"), SentencePair("a", "b c"), SentencePair("c", "a b")]
    assert len(set(pair_hashes([*pairs, *pairs]))) == 3


def test_almost_equal_pairs_are_found_and_others_are_not() -> None:
    draw = random.Random(1)
    words = [f"word{i}" for i in range(500)]
    texts = [[draw.choice(words) for _ in range(30)] for _ in range(200)]
    pairs = [SentencePair(" ".join(words), " ".join(words[::-1])) for words in texts]
    changed = []
    for text, pair in zip(texts, pairs, strict=True):
        new = list(text)
        new[draw.randrange(30)] = "other"
        changed.append(SentencePair(" ".join(new), pair.target.upper() + " !"))
    cleaning = CleaningConfig(near_duplicates=True, duplicates=True)
    finder = DuplicateFinder(cleaning)
    assert finder.reasons(hash_pairs(pairs, cleaning)) == [None] * 200
    assert finder.reasons(hash_pairs(pairs[:3], cleaning)) == ["duplicate"] * 3
    found = finder.reasons(hash_pairs(changed, cleaning))
    assert found.count("near_duplicate") > 180
    assert set(found) <= {None, "near_duplicate"}


def test_nothing_is_hashed_without_a_rule() -> None:
    hashes = hash_pairs([SentencePair("a", "b")], CleaningConfig())
    assert hashes.shape == (1, 0)
    assert DuplicateFinder(CleaningConfig()).reasons(hashes) == [None]


@pytest.mark.parametrize("text", ["", "a", "ab", "\ud800", "x" * 10_000])
def test_texts_of_any_length_have_hashes(text: str) -> None:
    cleaning = CleaningConfig(near_duplicates=True)
    assert hash_pairs([SentencePair(text, text)] * 2, cleaning).shape == (2, 4)
