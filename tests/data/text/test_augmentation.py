"""A few pairs are changed: always the same ones, as many as the rates say, and in one way each."""

import random
from collections import Counter

import pytest

from nmt.data.text.augmentation import KINDS, Augmenter, change, misspell
from nmt.data.text.parallel_text import SentencePair
from nmt.recipe.config import AugmentationConfig

PAIR = SentencePair("A small dog, maybe two, runs (quickly)!", "Ein kleiner Hund läuft.")
RATES = AugmentationConfig(
    upper=0.04, title=0.03, lower=0.02, typos=0.05, no_final_punctuation=0.01
)


def changed(pair: SentencePair, kind: str, seed: int = 1) -> SentencePair:
    return change(pair, kind, random.Random(seed))


def test_each_kind_is_drawn_as_often_as_its_rate_says() -> None:
    lines = 20_000
    augment = Augmenter(RATES, seed="3")
    found = Counter(augment(PAIR, line)[1] for line in range(1, lines + 1))
    for kind in KINDS:
        expected = lines * getattr(RATES, kind)
        assert abs(found[kind] - expected) < 4 * expected**0.5
    assert found[None] == lines - sum(found[kind] for kind in KINDS)


def test_a_change_depends_on_seed_and_line_alone() -> None:
    lines = list(range(1, 2000))
    once = [Augmenter(RATES, seed="3")(PAIR, line) for line in lines]
    again = [Augmenter(RATES, seed="3")(PAIR, line) for line in reversed(lines)]
    assert once == again[::-1]
    assert once != [Augmenter(RATES, seed="4")(PAIR, line) for line in lines]
    other = SentencePair("The cat sleeps.", "Die Katze schläft.")
    kinds = [Augmenter(RATES, seed="3")(other, line)[1] for line in lines]
    both = [(a, b) for a, (_, b) in zip(kinds, once, strict=True) if a and b]  # where it shows
    assert len(both) > 150 and all(a == b for a, b in both)


def test_a_pair_is_reported_as_changed_if_and_only_if_it_is() -> None:
    augment = Augmenter(AugmentationConfig(lower=0.5, no_final_punctuation=0.5))
    for pair in (PAIR, SentencePair("a dog", "ein hund"), SentencePair(".", "."), PAIR):
        for line in range(50):
            result, kind = augment(pair, line)
            assert (result == pair) == (kind is None)
    assert Augmenter()(PAIR, 1) == (PAIR, None)


@pytest.mark.parametrize(
    ("kind", "source", "target"),
    [
        ("upper", "A SMALL DOG, MAYBE TWO, RUNS (QUICKLY)!", "EIN KLEINER HUND LÄUFT."),
        ("title", "A Small Dog, Maybe Two, Runs (quickly)!", "Ein Kleiner Hund Läuft."),
        ("lower", "a small dog, maybe two, runs (quickly)!", "ein kleiner hund läuft."),
        ("no_final_punctuation", PAIR.source[:-1], "Ein kleiner Hund läuft"),
    ],
)
def test_both_sides_have_the_same_change(kind: str, source: str, target: str) -> None:
    assert changed(PAIR, kind) == (source, target)


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("Come here!", "来！", ("Come here", "来")),
        ("Wait ...", "Warte …", ("Wait", "Warte")),
        ("कुत्ता सोता है।", "The dog sleeps. ", ("कुत्ता सोता है", "The dog sleeps")),
        ("A dog.", "Ein Hund", None),
        ("A dog", "Ein Hund.", None),
        ("A dog,", "Ein Hund,", None),
        ("...", "Hund.", None),
    ],
)
def test_punctuation_is_left_out_where_both_sides_have_it(
    source: str, target: str, expected: tuple[str, str] | None
) -> None:
    pair = SentencePair(source, target)
    assert changed(pair, "no_final_punctuation") == (expected or pair)


def test_tags_of_the_text_stay() -> None:
    tagged = SentencePair(">>de<< >>bt<<a dog", "ein Hund")
    assert changed(tagged, "upper") == (">>de<< >>bt<<A DOG", "EIN HUND")
    assert changed(tagged, "typos").source.startswith(">>de<< >>bt<<a ")


def test_typing_errors_are_in_words_of_the_source_and_few() -> None:
    text = " ".join(["www.example.org", "it's", "12th", "on", "(wonderful),"] * 40)
    errors = 0
    for seed in range(50):
        source, target = changed(SentencePair(text, text), "typos", seed)
        assert target == text
        before, after = text.split(" "), source.split(" ")
        assert len(before) == len(after)
        wrong = [(a, b) for a, b in zip(before, after, strict=True) if a != b]
        assert {a for a, _ in wrong} == {"(wonderful),"}
        assert all(b[0] == "(" and b[-2:] == ")," and abs(len(a) - len(b)) <= 1 for a, b in wrong)
        errors += len(wrong)
    assert 0.07 < errors / (50 * 40) < 0.13


def test_a_short_text_gets_one_typing_error_and_words_without_letters_none() -> None:
    errors = {misspell("sad", random.Random(seed)) for seed in range(200)}
    swapped, dropped, doubled = {"asd", "sda"}, {"ad", "sd"}, {"ssad", "saad"}
    near = {"aad", "dad", "ssd"}  # beside s: a and d; beside a: s
    assert errors == swapped | dropped | doubled | near
    assert {misspell("Kot", random.Random(seed))[0] for seed in range(200)} == set("KoJLO") - {"O"}
    for text in ("", "12 34", "a b c", "... !", "http://a.org/bcd"):
        assert misspell(text, random.Random(1)) == text


@pytest.mark.parametrize("text", ["собака", "σκύλος", "狗在睡觉", "कुत्ता"])
def test_every_script_has_typing_errors(text: str) -> None:
    assert any(misspell(text, random.Random(seed)) != text for seed in range(9))
