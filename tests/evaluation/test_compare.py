import json
from collections import Counter
from dataclasses import replace

import pytest

from nmt.errors import ConfigError, DataError
from nmt.evaluation.breakdown import (
    MOST_PAIRS,
    TrainingWords,
    bleu_by_length,
    bleu_by_rarity,
    count_words,
)
from nmt.evaluation.compare import Comparison, compare
from nmt.evaluation.score_sheet import score_text
from nmt.evaluation.significance import differences
from nmt.evaluation.test_sets import EvaluationSet

REFERENCES = ["the cat sat on the mat.", "a dog barks at me.", "no.", "it rains in the old town."]
GOOD = ["the cat sat on the mat.", "the dog barks at me.", "no.", "it rains in the town."]
POOR = ["the cat is on it.", "a dog barks at me.", "", "rain in town."]
TEST_SET = EvaluationSet("mine", REFERENCES, ["s1", "s2", "s3", "s4"])


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    return compare([("runs/good", GOOD), ("poor.txt", POOR)], TEST_SET)


def test_systems_have_letters_and_scores(comparison: Comparison) -> None:
    assert [(s.label, s.name) for s in comparison.systems] == [
        ("A", "runs/good"),
        ("B", "poor.txt"),
    ]
    for system, lines in zip(comparison.systems, (GOOD, POOR), strict=True):
        assert system.scores == score_text(lines, TEST_SET)
    by_label = {"A": GOOD, "B": POOR}
    assert comparison.differences == differences(by_label, TEST_SET)
    assert comparison.breakdowns[0].rows == bleu_by_length(by_label, TEST_SET)


def test_rarity_is_that_of_the_training_text_where_it_is_known(comparison: Comparison) -> None:
    by_label = {"A": GOOD, "B": POOR}
    counts = count_words(REFERENCES)
    assert comparison.breakdowns[1].rows == bleu_by_rarity(by_label, TEST_SET, counts)
    assert comparison.breakdowns[1].title.endswith("occurs in the references")
    learnt = compare(
        [("a", GOOD), ("b", POOR)], TEST_SET, training_words=TrainingWords(Counter({"the": 9}), 2)
    )
    assert learnt.breakdowns[1].rows == bleu_by_rarity(by_label, TEST_SET, {"the": 9})
    assert learnt.breakdowns[2].title.endswith("occur in the training text")
    part = compare(
        [("a", GOOD), ("b", POOR)], TEST_SET, training_words=TrainingWords(Counter("a"), MOST_PAIRS)
    )
    assert part.breakdowns[2].title.endswith("occur in the first 1,000,000 training pairs")


def test_each_system_is_shown_where_it_stands_out(comparison: Comparison) -> None:
    assert [example.line for example in comparison.examples["A"]] == [3, 1, 4]
    (example,) = comparison.examples["B"]
    assert (example.line, example.source, example.reference) == (2, "s2", REFERENCES[1])
    assert example.translations == {"A": GOOD[1], "B": POOR[1]}
    assert example.scores["B"] == 100 > example.scores["A"]


def test_no_examples_where_none_are_asked_for_or_there_is_no_difference() -> None:
    none = compare([("a", GOOD), ("b", POOR)], TEST_SET, examples=0)
    assert none.examples == {"A": [], "B": []}
    same = compare([("a", GOOD), ("a", GOOD)], TEST_SET)
    assert same.examples == {"A": [], "B": []}


def test_tokens_are_compared_as_they_are() -> None:
    comparison = compare([("a", GOOD), ("b", POOR)], replace(TEST_SET, tokenized=True))
    names = [score.name for score in comparison.systems[0].scores]
    assert names == ["tokenised BLEU", "tokenised chrF++"]


def test_three_systems_are_compared_pair_by_pair() -> None:
    found = compare([("a", GOOD), ("b", POOR), ("c", REFERENCES)], TEST_SET)
    assert [(d.first, d.second) for d in found.differences] == [("A", "B"), ("A", "C"), ("B", "C")]
    assert len(found.breakdowns[0].rows[0].scores) == 3


def test_json_holds_everything(comparison: Comparison) -> None:
    found = json.loads(json.dumps(comparison.as_json()))
    assert found["sentences"] == 4
    assert [system["label"] for system in found["systems"]] == ["A", "B"]
    assert found["differences"][0]["verdict"] == str(comparison.differences[0])
    assert found["breakdowns"][0]["rows"][0]["label"] == comparison.breakdowns[0].rows[0].label
    assert found["examples"]["B"][0]["line"] == 2


def test_one_system_is_nothing_to_compare() -> None:
    with pytest.raises(ConfigError, match="1 to compare, expected 2 to 26: run directories"):
        compare([("a", GOOD)], TEST_SET)


def test_unequal_counts_are_refused() -> None:
    with pytest.raises(DataError, match="3 translations but 4 references"):
        compare([("a", GOOD[:3]), ("b", POOR)], TEST_SET)
