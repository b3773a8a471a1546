import random

import pytest
import sacrebleu

from nmt.errors import DataError
from nmt.evaluation import metrics
from nmt.evaluation.metrics import Interval, Score, bleu, looks_tokenized, sentence_utilities

WORDS = ["the", "cat", "dog", "sat", "on", "a", "mat", ",", "it's", "3.5", "o'clock", "(now)", "."]


@pytest.fixture(scope="module")
def references() -> list[str]:
    numbers = random.Random(1)
    return [" ".join(numbers.choices(WORDS, k=numbers.randint(1, 20))) for _ in range(150)]


@pytest.fixture(scope="module")
def hypotheses(references: list[str]) -> list[str]:
    """Four words out of five right, some lines empty."""
    numbers = random.Random(2)
    return [
        " ".join(word if numbers.random() < 0.8 else "no" for word in line.split())
        if numbers.random() < 0.95
        else ""
        for line in references
    ]


@pytest.mark.parametrize("tokenized", [False, True])
def test_bleu_is_sacrebleus(hypotheses: list[str], references: list[str], tokenized: bool) -> None:
    expected = sacrebleu.corpus_bleu(
        hypotheses, [references], tokenize="none" if tokenized else "13a", force=True
    )
    for confidence in (False, True):
        score = bleu(hypotheses, references, tokenized, confidence)
        assert score.value == pytest.approx(expected.score)
        assert f"|tok:{'none' if tokenized else '13a'}|" in score.signature
        assert score.name == ("tokenised BLEU" if tokenized else "BLEU")


def test_a_perfect_translation_scores_100(references: list[str]) -> None:
    assert bleu(references, references).value == pytest.approx(100)


def test_the_interval_brackets_the_score(hypotheses: list[str], references: list[str]) -> None:
    score = bleu(hypotheses, references)
    assert score.confidence is not None
    assert score.confidence.low < score.value < score.confidence.high
    assert "|bs:1000|" in score.signature


def test_more_sentences_give_a_narrower_interval(
    hypotheses: list[str], references: list[str]
) -> None:
    few, many = bleu(hypotheses[:30], references[:30]), bleu(hypotheses, references)
    assert few.confidence is not None
    assert many.confidence is not None
    assert many.confidence.half_width < few.confidence.half_width


def test_the_interval_is_the_same_every_time(hypotheses: list[str], references: list[str]) -> None:
    assert bleu(hypotheses, references) == bleu(hypotheses, references)


def test_very_many_sentences_take_fewer_resamples_and_say_so(
    hypotheses: list[str], references: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "MAX_DRAWS", 150 * 40)
    assert "|bs:40|" in bleu(hypotheses, references).signature


def test_unequal_counts_are_refused(references: list[str]) -> None:
    with pytest.raises(DataError, match="149 translations but 150 references"):
        bleu(references[:-1], references)


def test_nothing_to_score_is_refused() -> None:
    with pytest.raises(DataError, match="no translations"):
        bleu([], [])


def test_a_score_prints_value_interval_and_signature() -> None:
    score = Score("BLEU", 38.4249, "nrefs:1|tok:13a", Interval(38.425, 1.325))
    assert str(score).split("\n") == [
        "BLEU = 38.42 ± 1.32 (95 % interval 37.10 to 39.75)",
        "nrefs:1|tok:13a",
    ]
    assert str(Score("BLEU", 38.4249, "nrefs:1", None)) == "BLEU = 38.42\nnrefs:1"


def test_json_holds_what_is_printed() -> None:
    score = Score("BLEU", 38.4249, "nrefs:1", Interval(38.425, 1.324))
    assert score.as_json() == {
        "name": "BLEU",
        "score": 38.42,
        "signature": "nrefs:1",
        "confidence_95": {"low": 37.1, "high": 39.75, "half_width": 1.32},
    }
    assert Score("BLEU", 1.0, "", None).as_json()["confidence_95"] is None


def test_sacrebleu_says_nothing_about_tokenised_text(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    lines = ["the cat sat ."] * 200
    for tokenized in (True, False):
        bleu(lines, lines, tokenized)
    assert capfd.readouterr() == ("", "")
    assert not caplog.records


def test_text_that_is_not_plain_is_recognised() -> None:
    assert looks_tokenized(["the c@@ at sat .", "a dog"]) == "subword marks '@@ '"
    assert looks_tokenized(["▁the ▁c at ▁sat"]) == "subword marks '▁'"
    assert looks_tokenized(["the cat sat ."]) == "a space before most final full stops"
    assert looks_tokenized(["The cat sat.", "Mail me@home. Ok?", "", "etc ."]) is None
    assert looks_tokenized(["plain"] * 100 + ["one ▁ in a hundred"]) is None


@pytest.mark.parametrize("tokenized", [False, True])
@pytest.mark.parametrize("name", ["chrf", "bleu"])
def test_utilities_are_sacrebleus_sentence_scores(
    hypotheses: list[str], name: str, tokenized: bool
) -> None:
    texts = [*hypotheses[:6], "", "a", "It's 3.5!"]
    tokenize = "none" if tokenized else "13a"
    for text, row in zip(texts, sentence_utilities(name, texts, tokenized), strict=True):
        expected = [
            sacrebleu.sentence_chrf(text, [other]).score
            if name == "chrf"
            else sacrebleu.sentence_bleu(text, [other], tokenize=tokenize).score
            for other in texts
        ]
        assert row == pytest.approx(expected)
