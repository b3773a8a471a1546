from collections import Counter
from pathlib import Path

import pytest

from nmt.evaluation import breakdown
from nmt.evaluation.breakdown import (
    bleu_by_length,
    bleu_by_rarity,
    count_words,
    local_training_words,
    training_words,
    word_f1_by_rarity,
)
from nmt.evaluation.metrics import bleu
from nmt.evaluation.test_sets import EvaluationSet
from nmt.recipe.config import DataConfig, TextPair

REFERENCES = [" ".join(f"w{i % 7}" for i in range(length)) for length in (4, 5, 5, 6, 8, 9, 12, 30)]
WRONG = ["x " * len(line.split()) for line in REFERENCES]


def test_words_are_counted_as_bleu_sees_them() -> None:
    lines = ["A dog, a cat.", "A dog."]
    assert count_words(lines) == Counter({"A": 2, "dog": 2, ".": 2, ",": 1, "a": 1, "cat": 1})
    assert count_words(lines, tokenize="none")["dog,"] == 1


def test_lengths_make_groups_of_about_one_size_that_hold_every_sentence() -> None:
    references = [" ".join(["w"] * (i % 20 + 1)) for i in range(400)]
    rows = bleu_by_length({"A": references}, EvaluationSet("", references))
    assert len(rows) == 6
    assert sum(row.size for row in rows) == 400
    assert all(40 <= row.size <= 90 for row in rows)
    assert rows[0].label == "1-3"
    assert rows[-1].label.endswith("-20")


def test_each_group_has_the_bleu_of_its_sentences() -> None:
    mixed = [*REFERENCES[:4], *WRONG[4:]]
    rows = bleu_by_length({"A": REFERENCES, "B": mixed}, EvaluationSet("", REFERENCES))
    assert all(row.scores[0] == pytest.approx(100) for row in rows)
    assert rows[0].scores[1] == pytest.approx(100)
    assert rows[-1].scores[1] == 0
    last = bleu(mixed[-1:], REFERENCES[-1:], confidence=False).value
    assert rows[-1].scores[1] == pytest.approx(last)


@pytest.mark.parametrize("references", [["a b"], ["a b"] * 9, [""], ["", "a b c d"], []])
def test_few_lengths_make_few_groups(references: list[str]) -> None:
    rows = bleu_by_length({"A": references}, EvaluationSet("", references))
    assert sum(row.size for row in rows) == len(references)


def test_an_empty_reference_has_no_words_to_group() -> None:
    empty = EvaluationSet("", [""])
    assert bleu_by_rarity({"A": [""]}, empty, {}) == []
    assert word_f1_by_rarity({"A": ["x"]}, empty, {}) == []


def test_sentences_are_grouped_by_their_rarest_word() -> None:
    references = ["a b c d", "a b c e", "a b c f", ""]
    frequencies = {"a": 20_000, "b": 500, "c": 50, "d": 3, "e": 1}
    test_set = EvaluationSet("", references)
    rows = bleu_by_rarity({"A": ["a b c d", "x", "x", "x"]}, test_set, frequencies)
    assert [(row.label, row.size) for row in rows] == [("0", 1), ("1", 1), ("2-4", 1)]
    assert [row.scores[0] for row in rows] == pytest.approx([0, 0, 100])
    (row,) = bleu_by_rarity({"A": ["a"]}, EvaluationSet("", ["a"]), frequencies)
    assert row.label == "10,000+"


def test_words_are_right_as_often_as_they_stand_in_the_reference() -> None:
    test_set = EvaluationSet("", ["a a b", "c"])
    systems = {"A": ["a a a", "c c"], "B": ["b", ""]}
    rows = word_f1_by_rarity(systems, test_set, {"a": 5, "c": 1})
    by_label = {row.label: row for row in rows}
    assert {label: row.size for label, row in by_label.items()} == {"0": 1, "1": 1, "5-9": 2}
    assert by_label["5-9"].scores == pytest.approx((100 * 2 * 2 / (2 + 3), 0))
    assert by_label["1"].scores == pytest.approx((100 * 2 * 1 / (1 + 2), 0))
    assert by_label["0"].scores == pytest.approx((0, 100))


def own_text(folder: Path, target: bytes) -> DataConfig:
    pair = TextPair(source=str(folder / "text.en"), target=str(folder / "text.de"))
    (folder / "text.en").write_bytes(b"x\n" * target.count(b"\n"))
    (folder / "text.de").write_bytes(target)
    return DataConfig(train=[pair], validation=[pair], test=[pair])


def test_words_of_the_target_side_are_counted(tmp_path: Path) -> None:
    """A damaged byte is a word of its own."""
    counts, origin = training_words(
        own_text(tmp_path, "Ein Hund.\nEin \u2028 Baum.\n".encode() + b"\xff\n")
    )
    assert counts == {"Ein": 2, "Hund": 1, "Baum": 1, ".": 2, "\ufffd": 1}
    assert origin == "the training text"


def test_training_text_is_divided_into_words_as_the_test_set_is(tmp_path: Path) -> None:
    """A model of several languages is scored in one that its recipe does not name."""
    config = own_text(tmp_path, "\u4f60\u597d\n".encode())
    chinese = EvaluationSet("", ["\u4f60\u597d"], languages=("en", "zh"))
    words = local_training_words(config, chinese.tokenizer)
    assert words is not None and words[0] == {"\u4f60": 1, "\u597d": 1}
    rows = word_f1_by_rarity({"A": ["\u4f60"]}, chinese, words[0])
    assert [(row.label, row.size) for row in rows] == [("1", 2)]


def test_the_start_of_a_large_text_is_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(breakdown, "MAX_TRAINING_PAIRS", 2)
    counts, origin = training_words(own_text(tmp_path, b"a\nb\nc\n"))
    assert counts == {"a": 1, "b": 1}
    assert origin == "the first 2 training pairs"


def test_text_that_is_not_here_is_not_downloaded(tmp_path: Path) -> None:
    config = own_text(tmp_path, b"a\n")
    (tmp_path / "text.de").unlink()
    assert local_training_words(config) is None
    assert local_training_words(DataConfig(corpus="no such corpus")) is None
    far = DataConfig(corpus="wmt14", directory=str(tmp_path / "data"))
    assert local_training_words(far) is None
    assert not (tmp_path / "data").exists()


def test_a_downloaded_corpus_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "demo" / "de-en"
    folder.mkdir(parents=True)
    for split in ("train", "validation", "test"):
        (folder / f"{split}.en").write_text("a dog\n", "utf-8")
        (folder / f"{split}.de").write_text("ein Hund\n", "utf-8")
    config = DataConfig(corpus="demo", directory=str(tmp_path))
    assert training_words(config)[0] == {"ein": 1, "Hund": 1}
