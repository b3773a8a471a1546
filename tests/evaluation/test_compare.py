import json
from collections import Counter
from dataclasses import replace

import pytest

from nmt.errors import ConfigError
from nmt.evaluation.breakdown import TrainingWords, bleu_by_length, bleu_by_rarity, count_words
from nmt.evaluation.compare import Comparison, compare, differences
from nmt.evaluation.score_sheet import score_text
from nmt.evaluation.test_sets import EvaluationSet

REFERENCES = ["the cat sat on the mat.", "a dog barks at me.", "no.", "it rains in the old town."]
GOOD = ["the cat sat on the mat.", "the dog barks at me.", "no.", "it rains in the town."]
POOR = ["the cat is on it.", "a dog barks at me.", "", "rain in town."]
TEST_SET = EvaluationSet("mine", REFERENCES, ["s1", "s2", "s3", "s4"])


SYSTEMS = [("runs/good", GOOD), ("poor.txt", POOR)]
BY_LABEL = {"A": GOOD, "B": POOR}


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    return compare(SYSTEMS, TEST_SET)


def test_systems_have_letters_and_scores(comparison: Comparison) -> None:
    labelled = [(system.label, (system.name, system.translations)) for system in comparison.systems]
    assert labelled == list(zip("AB", SYSTEMS, strict=True))
    for system in comparison.systems:
        assert system.scores == score_text(system.translations, TEST_SET)
    assert comparison.differences == differences(BY_LABEL, TEST_SET)
    assert comparison.breakdowns[0].rows == bleu_by_length(BY_LABEL, TEST_SET)


@pytest.mark.parametrize(
    ("words", "counts", "text"),
    [
        (None, count_words(REFERENCES), "the references"),
        ((Counter({"the": 9}), "the training text"), {"the": 9}, "the training text"),
    ],
)
def test_the_rarity_of_a_word_is_counted_in_the_training_text_if_it_is_known(
    words: TrainingWords | None, counts: dict[str, int], text: str
) -> None:
    _, by_rarity, by_word = compare(SYSTEMS, TEST_SET, words).breakdowns
    assert by_rarity.rows == bleu_by_rarity(BY_LABEL, TEST_SET, counts)
    assert by_rarity.title.endswith(f"occurs in {text}")
    assert by_word.title.endswith(f"occur in {text}")


def test_each_system_is_shown_where_it_stands_out(comparison: Comparison) -> None:
    assert [example["line"] for example in comparison.examples["A"]] == [3, 1, 4]
    (example,) = comparison.examples["B"]
    assert (example["line"], example["source"], example["reference"]) == (2, "s2", REFERENCES[1])
    assert example["translations"] == {"A": GOOD[1], "B": POOR[1]}
    assert example["scores"]["B"] == 100 > example["scores"]["A"]


def test_there_are_no_examples_if_their_number_is_0_or_the_systems_do_not_differ() -> None:
    none = compare(SYSTEMS, TEST_SET, examples=0)
    assert none.examples == {"A": [], "B": []}
    same = compare([("a", GOOD), ("a", GOOD)], TEST_SET)
    assert same.examples == {"A": [], "B": []}


def test_tokens_are_compared_as_they_are() -> None:
    comparison = compare(SYSTEMS, replace(TEST_SET, tokenized=True))
    names = [score.name for score in comparison.systems[0].scores]
    assert names == ["tokenised BLEU", "tokenised chrF++"]


def test_json_holds_everything(comparison: Comparison) -> None:
    found = json.loads(json.dumps(comparison.as_json()))
    assert found["sentences"] == 4
    assert [system["label"] for system in found["systems"]] == ["A", "B"]
    assert found["differences"][0]["verdict"] == str(comparison.differences[0])
    assert found["breakdowns"][0]["rows"][0]["label"] == comparison.breakdowns[0].rows[0].label
    assert found["examples"]["B"][0]["line"] == 2


def test_one_system_is_nothing_to_compare() -> None:
    with pytest.raises(ConfigError, match="1 to compare, expected 2 to 26: run directories"):
        compare(SYSTEMS[:1], TEST_SET)
