import random
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path

import pytest
import sacrebleu
from sacrebleu.tokenizers.tokenizer_base import BaseTokenizer

from nmt.data.languages import LANGUAGES, look_up_language
from nmt.data.text.lines import raw_lines
from nmt.errors import DataError
from nmt.evaluation import metrics
from nmt.evaluation.metrics import (
    Metric,
    Score,
    bleu,
    bleu_metric,
    bleu_tokenizer,
    chrf_metric,
    multi_bleu_metric,
    sentence_utilities,
    ter_metric,
    words_of,
)
from tests.evaluation.bleu_definition import bleu_by_definition

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


@pytest.mark.parametrize("tokenize", ["13a", "none", "zh", "char"])
def test_bleu_is_sacrebleus(hypotheses: list[str], references: list[str], tokenize: str) -> None:
    expected = sacrebleu.corpus_bleu(hypotheses, [references], tokenize=tokenize, force=True)
    for confidence in (False, True):
        score = bleu(hypotheses, references, tokenize, confidence)
        assert score.value == pytest.approx(expected.score)
        assert f"|tok:{tokenize}|" in score.signature


@pytest.mark.parametrize(
    ("language", "tokenize"),
    [
        *(
            (code, "13a")
            for code in ("de", "ko", "kor", "sr_Latn", "vi", "zh_Latn", "mul", "xx", "")
        ),
        *((code, "zh") for code in ("zh", "zh_TW", "zho", "cmn", "yue", "lzh", "wuu", "nan")),
        *((code, "char") for code in ("th", "tha", "mya", "km", "lo", "bod", "dz", "shn")),
    ],
)
def test_the_tokenizer_suits_the_target_language(language: str, tokenize: str) -> None:
    assert bleu_tokenizer(language) == tokenize
    assert bleu_tokenizer(language, tokenized=True) == "none"


def test_text_without_spaces_is_scored_by_its_characters() -> None:
    right, near = ["我昨天在公园里看见了一只小狗。"], ["我昨天在公园看见了一只小狗。"]
    assert bleu(near, right, confidence=False).value == 0.0
    assert bleu(near, right, bleu_tokenizer("zh"), confidence=False).value > 70
    assert len(words_of(right[0], bleu_tokenizer("ja"))) > 5


@pytest.mark.parametrize(
    ("references", "tokenize"),
    [
        (["我昨天在公园里看见了一只小狗。", "OK"], "zh"),
        (["昨日、公園で子犬を見ました。"], "char"),
        (["ฉันเห็นลูกสุนัขในสวนสาธารณะ"], "char"),
        (["a dog in 公园", "a cat"], "13a"),
        (["", "123"], "13a"),
    ],
)
def test_the_script_of_the_references_decides_if_the_language_does_not(
    references: list[str], tokenize: str
) -> None:
    for language in ("", "mul", "xx", "de"):  # even if it is called by a wrong language
        assert bleu_tokenizer(language, references=references) == tokenize


def test_a_perfect_translation_into_any_language_has_all_points(test_data: Path) -> None:
    """By each code of languages.tsv, for the languages of FLORES-101 and their scripts."""
    texts = {}
    for path in (test_data / "flores101").glob("*.xz"):
        first = [line.decode() for line in islice(raw_lines(path), 5)]
        if len(first) == 5:
            language = look_up_language(path.name.partition(".")[0])
            texts[language.base, language.script] = first
    codes = [code for code in LANGUAGES if key_of(code) in texts]
    assert len(codes) > 200
    for code in codes:
        text = texts[key_of(code)]
        assert bleu(text, text, bleu_tokenizer(code, references=text), False).value > 99.9, code


def key_of(code: str) -> tuple[str, str]:
    language = look_up_language(code)
    return language.base, language.script


def test_an_interval_stays_within_the_scores_that_there_are() -> None:
    bleu_interval = bleu(["a b c d", "x"], ["a b c d", "a b c d"]).confidence
    assert bleu_interval is not None and bleu_interval["high"] == 100.0
    ter_interval = ter_metric().score(["x " * 9, "x", "x"], ["a", "x", "x"]).confidence
    assert ter_interval is not None and ter_interval["low"] == 0.0 and ter_interval["high"] > 100.0


def test_the_interval_brackets_the_score_and_is_reproducible(
    hypotheses: list[str], references: list[str]
) -> None:
    few, many = bleu(hypotheses[:30], references[:30]), bleu(hypotheses, references)
    assert few.confidence and many.confidence
    assert many.confidence["low"] < many.value < many.confidence["high"]
    assert many.confidence["half_width"] < few.confidence["half_width"]
    assert "|bs:1000|" in many.signature
    assert bleu(hypotheses, references) == many
    assert bleu(references, references).value == pytest.approx(100)


def test_very_many_sentences_take_fewer_resamples_and_say_so(
    hypotheses: list[str], references: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "MAX_DRAWN_NUMBERS", 10 * 150 * 40)
    assert "|bs:40|" in bleu(hypotheses, references).signature


def test_there_is_a_reference_for_each_of_one_or_more_sentences() -> None:
    with pytest.raises(DataError, match="1 translations but 2 references; BLEU needs"):
        bleu(["a"], ["a", "b"])
    with pytest.raises(DataError, match="2 translations but 1 references; TER needs"):
        ter_metric().score_sentences(["a", "b"], ["a"])
    with pytest.raises(DataError, match="no translations"):
        bleu([], [])


def test_a_score_prints_itself_with_its_interval_and_signature_and_as_json() -> None:
    score = Score("BLEU", 38.4249, "nrefs:1", {"low": 37.101, "high": 39.749, "half_width": 1.324})
    assert str(score) == "BLEU = 38.42 ± 1.32 (95 % interval 37.10 to 39.75)\nnrefs:1"
    assert score.as_json() == {
        "name": "BLEU",
        "score": 38.42,
        "signature": "nrefs:1",
        "confidence_95": {"low": 37.1, "high": 39.75, "half_width": 1.32},
    }
    assert Score("BLEU", 1.0, "").as_json()["confidence_95"] is None


def test_sacrebleu_says_nothing_about_tokenised_text(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    lines = ["the cat sat ."] * 200
    for tokenize in ("none", "13a"):
        bleu(lines, lines, tokenize)
    assert capfd.readouterr() == ("", "")
    assert not caplog.records


@pytest.mark.parametrize("confidence", [False, True])
def test_chrf_and_ter_are_sacrebleus(
    hypotheses: list[str], references: list[str], confidence: bool
) -> None:
    for metric, expected in (
        (chrf_metric(), sacrebleu.CHRF()),
        (chrf_metric(word_order=2), sacrebleu.CHRF(word_order=2)),
        (ter_metric(), sacrebleu.TER()),
    ):
        score = metric.score(hypotheses, references, confidence)
        assert score.value == pytest.approx(expected.corpus_score(hypotheses, [references]).score)
        assert (score.confidence is not None) is confidence


@pytest.mark.parametrize("build", [bleu_metric, chrf_metric, partial(chrf_metric, 2), ter_metric])
def test_resamples_may_score_zero(build: Callable[[], Metric]) -> None:
    score = build().score(["a dog barks now", "", "b"], ["a dog barks now", "", "x"])
    assert score.confidence is not None
    assert score.confidence["half_width"] > 0


def test_multi_bleu_is_its_definition(hypotheses: list[str], references: list[str]) -> None:
    metric = multi_bleu_metric("x")
    expected = bleu_by_definition(hypotheses, references)
    assert metric.score(hypotheses, references).value == pytest.approx(expected)
    assert metric.score(["a b c"], ["a b c"], confidence=False).value == 0  # no smoothing


def test_sentence_scores_are_in_order(hypotheses: list[str], references: list[str]) -> None:
    hypotheses, references = hypotheses[:20], references[:20]
    pairs = list(zip(hypotheses, references, strict=True))
    for metric, expected in (
        (bleu_metric(), [sacrebleu.sentence_bleu(h, [r]) for h, r in pairs]),
        (
            chrf_metric(word_order=2),
            [sacrebleu.sentence_chrf(h, [r], word_order=2) for h, r in pairs],
        ),
        (ter_metric(), [sacrebleu.sentence_ter(h, [r]) for h, r in pairs]),
    ):
        found = metric.score_sentences(hypotheses, references)
        assert found == pytest.approx([score.score for score in expected])


def test_words_are_those_that_bleu_counts() -> None:
    assert words_of("It's 3.5, no?") == ["It's", "3.5", ",", "no", "?"]
    assert words_of("It's 3.5, no?", tokenize="none") == ["It's", "3.5,", "no?"]


@pytest.mark.parametrize("tokenize", ["13a", "none"])
@pytest.mark.parametrize("name", ["chrf", "bleu"])
def test_utilities_are_sacrebleus_sentence_scores(
    hypotheses: list[str], name: str, tokenize: str
) -> None:
    texts = [*hypotheses[:6], "", "a", "It's 3.5!"]
    for text, row in zip(texts, sentence_utilities(name, texts, tokenize), strict=True):
        expected = [
            sacrebleu.sentence_chrf(text, [other]).score
            if name == "chrf"
            else sacrebleu.sentence_bleu(text, [other], tokenize=tokenize).score
            for other in texts
        ]
        assert row == pytest.approx(expected)


@pytest.mark.parametrize("tokenize", ["13a", "zh", "char", "intl"])
def test_bleu_keeps_no_text(tokenize: str) -> None:
    """Tokenizers of sacreBLEU have a cache of texts, which a training would fill."""
    bleu(["one two three four"], ["one two three four five"], tokenize, False)
    caches = [getattr(each.__call__, "cache_info", None) for each in BaseTokenizer.__subclasses__()]
    assert [info().currsize for info in caches if info] and not any(
        info().currsize for info in caches if info
    )
