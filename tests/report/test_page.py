"""The page of a report: whole in one file, text never becomes markup, and chapters show all."""

import base64
import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmt.data.prepared import prepare
from nmt.evaluation.breakdown import Row
from nmt.evaluation.metrics import Score
from nmt.evaluation.test_sets import EvaluationSet
from nmt.recipe.config import Config
from nmt.report.attention_maps import KINDS, record_attention
from nmt.report.page import (
    EXTREMES,
    MAX_VERSIONS,
    duration,
    mark_shared_words,
    minute,
    render_page,
)
from nmt.report.run_report import ScoredTestSet, _prepared_data
from nmt.training.validation import ExampleTranslation
from tests.report.conftest import training, validation

HOSTILE_TEXTS = [
    "<script>alert(1)</script>",
    "</script><b>",
    "\" onclick='x'",
    "&amp; <!-- ]]> {{ 1 }}",
    "</style>",
]
CONFIG = Config.model_validate({"data": {"corpus": "demo", "tokenized": True}})
NOTHING = {
    "name": "x",
    "config": CONFIG,
    "environment": {},
    "records": [],
    "problem": "",
    "best": {},
    "examples": {},
    "prepared": "no data",
    "scored": "no test <set>",
    "attention": "no maps",
    "parameters": None,
    "origin": "",
    "weights": "",
    "version": "1",
    "made": "now",
}
"""what is known of a run that has not begun"""


def page(chapter: str = "", **known: Any) -> str:
    """The page of a run of which some values are known, or one chapter of it."""
    html = render_page(NOTHING | known)
    return html.partition(f'<section id="{chapter}"')[2].partition("</section")[0] or html


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_text_never_becomes_markup(text: str) -> None:
    def written(text: str) -> str:
        environment = {"resumed": [{text: text}], text: text, "precision": text}
        examples = {5: [ExampleTranslation("a", "b", text.replace(" ", "\u00a0"))]}
        known: dict[str, Any] = {"name": text, "problem": text, "scored": text}
        return page(environment=environment, examples=examples, **known)

    assert unescape(written(text)).count(text) >= 8
    assert written(text).count("<") == written("x").count("<")


@pytest.mark.parametrize("text", [*HOSTILE_TEXTS, "\u2028", "\ud800"])
def test_json_data_cannot_end_their_block(loaded: Any, text: str) -> None:
    sentence = record_attention(loaded, "a")
    sentence = type(sentence)(text, sentence.source, sentence.target, sentence.record)
    (block,) = re.findall(r'id="attention-data">(.*?)</script>', page(attention=[sentence]))
    assert "<" not in block and json.loads(block)[0]["text"] == text


def test_the_page_refers_to_no_other_file_and_its_script_and_style_end_once() -> None:
    html = page(scored="a\0\ud800b")
    assert "a\ufffd?b" in html  # characters that HTML forbids are replaced
    assert not re.findall(r"""(?:src|href)=["'](?!#|data:)""", html)
    assert not re.findall(r"@import|url\(", html)
    addresses = set(re.findall(r"https?://[^\s\"')]+", html))
    assert addresses == {"http://www.w3.org/2000/svg"}  # a name and not an address
    assert "default-src 'none'" in html
    assert '<link rel="icon" href="data:,">' in html  # else a browser asks the server for one
    assert html.count("</script>") == html.count("</style>") == 1
    assert "<title>x</title>" in html and html.strip().startswith("<!DOCTYPE html>")


def scored(*scores: float, all_sentences: int | None = None) -> ScoredTestSet:
    """A test set whose sentences have these scores."""
    texts = [f"sentence {n}" for n in range(len(scores))]
    bleu = Score(
        "BLEU", 41.234, "nrefs:1|case:mixed", {"low": 39.7, "high": 42.7, "half_width": 1.5}
    )
    return ScoredTestSet(
        EvaluationSet("test", texts, texts),
        size=all_sentences or len(scores),
        translations=texts,
        scores=[bleu],
        sentence_scores=scores,
        by_length=[Row("1-5", 7, (50.0,)), Row("6-9", 1, (0.0,))],
        by_rarity=[],
        rarity_remark="Rarity is unknown <here>.",
    )


def test_the_summary_shows_each_figure_and_what_is_unknown() -> None:
    records = [
        validation(50, 2.0, 30.0, seconds=100),
        validation(100, 2.0, 29.0, seconds=5400),
        {"event": "train", "step": 100, "target_tokens": 10_800_000},
    ]
    html = page("summary", records=records, scored=scored(1.0), parameters=2_093_056)
    values = ["41.23", "± 1.50, test set", "30.00", "greedy, step 50", "1 h 30 min", "10.80 M"]
    values += ["2,000 a second", "2.09 M", "2,093,056", "demo, tokenised"]
    assert [value for value in values if value not in html] == []
    html = page("summary", problem="metrics.jsonl: <gone>", scored=scored(1.0, all_sentences=2))
    assert "metrics.jsonl: &lt;gone&gt;" in html and "0 of " in html and "unknown" in html
    assert "first 1 of the test set" in html


@pytest.mark.parametrize(
    ("number", "text"), [(999_999, "999,999"), (213_000_000, "213.00 M"), (4.5e9, "4.50 G")]
)
def test_large_numbers_have_units(number: float, text: str) -> None:
    assert f"<b>{text}</b>" in page("summary", parameters=number)


def test_times_and_shared_words() -> None:
    assert minute("2026-11-21T21:08:18+00:00") == "2026-11-21 21:08 UTC"
    assert minute("yesterday") == "yesterday"
    assert [*mark_shared_words(". !", ".")] == [(".", True), (" ", False), ("!", False)]
    assert [*mark_shared_words("小狗 跑", "狗")] == [*zip("小狗 跑", [0, 1, 0, 0], strict=True)]


def test_the_compared_weights_are_listed() -> None:
    best = {"candidates": {"averaged": {"loss": 1.5, "bleu": 40.0}, "step-5": {"loss": 1.25}}}
    html = page("summary", best=best)
    assert ">averaged<" in html and ">1.250<" in html and ">–<" in html
    assert "<td>validation bleu</td>" in html  # a row, because there may be many
    assert "compared at the end" not in page("summary", best={"candidates": ["averaged"]})


def test_every_curve_that_was_recorded_is_drawn() -> None:
    record = training(10, 5.0, learning_rate=1e-4, tokens_per_second=900.0)
    html = page("training", records=[record, validation(10, 4.0, 3.0)])
    for title in ("Loss", "Validation BLEU", "Learning rate", "Throughput"):
        assert f"<b>{title}</b>" in html
    assert "chrF" not in html
    assert page("training", records=[validation(10, 4.0, 3.0)]).count("<figure") == 2


def test_the_later_of_two_validations_and_returns_to_earlier_checkpoints_are_told() -> None:
    records = [validation(10, 4.0, bleu, seconds=90) for bleu in (3, 7.25)]
    records += [{"event": "roll_back", "step": step, "to": 20} for step in (30, 40)]
    html = page("training", records=records)
    rows = html.partition("<tbody>")[2]
    assert rows.count("<tr>") == 1 and "7.25" in rows and "3.00" not in rows and "1.5" in rows
    assert "taken back: 30 (to 20), 40 (to 20)." in html


@pytest.mark.parametrize("count", [1, 2, 3, 15, 16, 17, 101])
def test_the_worst_come_first_and_the_best_after_them_and_none_twice(count: int) -> None:
    scores = [float((n * 37) % 101) for n in range(count)]
    html = page("quality", scored=scored(*scores))
    places = [int(number) - 1 for number in re.findall(r"line (\d+)<", html)]
    most = min(EXTREMES, count // 2) or 1
    ordered = sorted(scores)
    best = ordered[::-1][:most] if count > 1 else []
    assert [scores[i] for i in places] == ordered[:most] + best
    assert len(places) == len(set(places))


def test_scores_come_with_what_they_depend_on() -> None:
    html = page("quality", scored=scored(1.0, 2.0, all_sentences=9))
    assert "41.23" in html and "39.70 – 42.70" in html
    assert "nrefs:1|case:mixed" in html and "the first 2 of 9 sentences" in html
    assert "Rarity is unknown &lt;here&gt;." in html
    assert re.findall(r"width:([\d.]+)%", html) == ["50.00", "0.00"]
    assert "no test &lt;set&gt;" in page("quality")


def labels(*translations: str) -> tuple[list[str], list[str]]:
    """The labels of a sentence with these translations: those shown, and those collapsed."""
    examples = {
        10 * n: [ExampleTranslation("a dog", "ein Hund", text)]
        for n, text in enumerate(translations, 1)
    }
    shown, _, collapsed = page("translations", examples=examples).partition("<details>")
    found = [re.findall(r'class="label">([^<]+)<', html) for html in (shown, collapsed)]
    assert found[0][:2] == ["source", "reference"]
    return found[0][2:], found[1]


def test_equal_translations_are_one_version_and_many_versions_are_collapsed() -> None:
    assert labels("der", "ein Hund", "ein Hund", "der") == (["10", "20 – 30", "40"], [])
    shown, collapsed = labels(*(f"version {n}" for n in range(30)))
    assert len(shown) == MAX_VERSIONS and (shown[0], shown[-1]) == ("10", "300")
    assert len(collapsed) == 30


def test_words_are_marked_at_most_as_often_as_the_reference_contains_them() -> None:
    example = ExampleTranslation("", "der Hund.", "Der hund, der Hund <b>")
    html = page("translations", examples={1: [example]})
    assert "<mark>Der</mark> <mark>hund,</mark> der Hund &lt;b&gt;</span>" in html


def test_missing_translations_and_a_changed_number_of_sentences_are_shown() -> None:
    two = [ExampleTranslation("a", "b", ""), ExampleTranslation("c", "d", "e")]
    html = page("translations", examples={1: two[:1], 2: two})
    assert "(empty)" in html and html.count("<article") == 2


def test_weights_of_attention_are_exact_to_a_255th(loaded: Any) -> None:
    attended = record_attention(loaded, "a cat")
    html = page("attention", attention=[attended])
    (sentence,) = json.loads(re.findall(r'id="attention-data">(.*?)</script>', html)[0])
    assert sentence["text"] == "a cat" and set(sentence["kinds"]) == set(KINDS)
    for kind in KINDS:
        found = sentence["kinds"][kind]
        expected = np.concatenate([layer.numpy() for layer in getattr(attended.record, kind)])
        assert (found["layers"], found["heads"]) == expected.shape[:2]
        assert (len(found["rows"]), len(found["columns"])) == expected.shape[2:]
        weights = np.frombuffer(base64.b64decode(found["weights"]), np.uint8) / 255
        assert np.abs(weights.reshape(expected.shape) - expected).max() <= 0.5 / 255 + 1e-6


def test_the_data_chapter_counts_cleaned_pairs_and_lengths_of_sentences(tmp_path: Path) -> None:
    pairs = [("a dog", "ein Hund"), ("", "leer <b>"), ("a b c d e", "a b c d e f g h i")] * 4
    (tmp_path / "train.tsv").write_text("".join(f"{s}\t{t}\n" for s, t in pairs), "utf-8")
    text = {"file": str(tmp_path / "train.tsv")}
    data = {"train": text, "validation": text, "directory": str(tmp_path / "data")}
    tokenizer = {"kind": "char", "vocabulary_size": 40}
    config = Config.model_validate({"data": data, "tokenizer": tokenizer})
    prepared = prepare(config, lambda message: None)
    html = page("data", prepared=_prepared_data(config, prepared.fingerprint))
    lines = re.findall(r"<tr>(.*?)</tr>", html, re.DOTALL)
    rows = [re.findall(r"<t[dh][^>]*>([^<]*)<", line) for line in lines]
    assert ["read", "12", "100.00%"] in rows
    assert ["left out: empty", "4", "33.33%"] in rows
    assert ["kept", "8", "66.67%"] in rows
    stored = (prepared.train.source, prepared.train.target)
    assert ["longest", *(str(int(side.lengths.max()) - 1) for side in stored)] in rows
    assert ">train.tsv:2<" in html and "leer &lt;b&gt;" in html
    for chart in html.split("<figure")[1:]:
        counts = re.findall(r'<td class="number">(\d+)<', chart)
        assert sum(map(int, counts)) == len(prepared.train) == 8
    assert "0123; `nmt prepare` makes them" in str(_prepared_data(config, "0123"))
    assert "does not say what the run was trained on" in str(_prepared_data(config, None))


def test_every_setting_of_the_recipe_and_the_environment_is_shown() -> None:
    environment = {
        "libraries": {"torch": "2"},
        "resumed": [{"git": "def"}, {"git": "<i>"}],
        "values": [None, True, "x", 1],
        "none": [],
        "files": [{"source": "a.en", "target": None, "weight": 2.0}],
    }
    html = page("configuration", environment=environment)
    assert ">cleaning.<wbr>max_<wbr>length<" in html  # where a line may break
    html = html.replace("<wbr>", "")
    settings = CONFIG.model_dump(mode="json")
    for names in (settings["training"], settings["model"], settings["decoding"]):
        assert all(f">{name}<" in html for name in names)
    assert ">seed<" in html and ">libraries.torch<" in html
    assert "Resumed 2 times" in html and "&lt;i&gt;" in html
    assert ">– true x 1<" in html and ">–<" in html and ">source: a.en, weight: 2.0<" in html


def test_an_objective_of_ones_own_is_named() -> None:
    assert "r_drop, in the place of the loss" in page(
        "summary", environment={"objective": "r_drop"}
    )
    assert "objective" not in page("summary")


def test_durations_have_at_most_two_numbers() -> None:
    seconds = [0, 59.4, 59.6, 90, 599.9, 3570, 5400, 180_000]
    words = "0 s, 59 s, 1.0 min, 1.5 min, 10 min, 1 h 00 min, 1 h 30 min, 2 d 2 h"
    assert ", ".join(map(duration, seconds)) == words
