from collections import Counter

import pytest

from nmt.evaluation.breakdown import (
    bleu_by_length,
    bleu_by_rarity,
    count_words,
    word_f1_by_rarity,
)
from nmt.evaluation.metrics import bleu

REFERENCES = [" ".join(f"w{i % 7}" for i in range(length)) for length in (4, 5, 5, 6, 8, 9, 12, 30)]
WRONG = ["x " * len(line.split()) for line in REFERENCES]


def test_words_are_counted_as_bleu_sees_them() -> None:
    lines = ["A dog, a cat.", "A dog."]
    assert count_words(lines) == Counter({"A": 2, "dog": 2, ".": 2, ",": 1, "a": 1, "cat": 1})
    assert count_words(lines, tokenize="none")["dog,"] == 1


def test_lengths_make_groups_of_about_one_size_that_hold_every_sentence() -> None:
    references = [" ".join(["w"] * (i % 20 + 1)) for i in range(400)]
    rows = bleu_by_length({"A": references}, references)
    assert len(rows) == 6
    assert sum(row.size for row in rows) == 400
    assert all(40 <= row.size <= 90 for row in rows)
    assert rows[0].label == "1-3"
    assert rows[-1].label.endswith("-20")


def test_each_group_has_the_bleu_of_its_sentences() -> None:
    mixed = [*REFERENCES[:4], *WRONG[4:]]
    rows = bleu_by_length({"A": REFERENCES, "B": mixed}, REFERENCES)
    assert all(row.scores[0] == pytest.approx(100) for row in rows)
    assert rows[0].scores[1] == pytest.approx(100)
    assert rows[-1].scores[1] == 0
    last = bleu(mixed[-1:], REFERENCES[-1:], confidence=False).value
    assert rows[-1].scores[1] == pytest.approx(last)


@pytest.mark.parametrize("references", [["a b"], ["a b"] * 9, [""], ["", "a b c d"]])
def test_few_lengths_make_few_groups(references: list[str]) -> None:
    rows = bleu_by_length({"A": references}, references)
    assert sum(row.size for row in rows) == len(references)


def test_nothing_makes_no_groups() -> None:
    assert bleu_by_length({"A": []}, []) == []
    assert bleu_by_rarity({"A": [""]}, [""], {}) == []
    assert word_f1_by_rarity({"A": ["x"]}, [""], {}) == []


def test_sentences_are_grouped_by_their_rarest_word() -> None:
    references = ["a b c d", "a b c e", "a b c f", ""]
    frequencies = {"a": 20_000, "b": 500, "c": 50, "d": 3, "e": 1}
    rows = bleu_by_rarity({"A": ["a b c d", "x", "x", "x"]}, references, frequencies)
    assert [(row.label, row.size) for row in rows] == [("0", 1), ("1", 1), ("2-4", 1)]
    assert [row.scores[0] for row in rows] == pytest.approx([0, 0, 100])
    (row,) = bleu_by_rarity({"A": ["a"]}, ["a"], frequencies)
    assert row.label == "10,000+"


def test_words_are_right_as_often_as_they_stand_in_the_reference() -> None:
    references = ["a a b", "c"]
    systems = {"A": ["a a a", "c c"], "B": ["b", ""]}
    rows = word_f1_by_rarity(systems, references, {"a": 5, "c": 1})
    by_label = {row.label: row for row in rows}
    assert {label: row.size for label, row in by_label.items()} == {"0": 1, "1": 1, "5-9": 2}
    assert by_label["5-9"].scores == pytest.approx((100 * 2 * 2 / (2 + 3), 0))
    assert by_label["1"].scores == pytest.approx((100 * 2 * 1 / (1 + 2), 0))
    assert by_label["0"].scores == pytest.approx((0, 100))
