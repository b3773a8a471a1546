"""The chapter on data: the counts of the prepared data, if they are still there."""

import re
from pathlib import Path

import pytest

from nmt.config import Config
from nmt.data.prepared import Prepared, prepare
from nmt.report.page.corpus import data_chapter
from nmt.report.page.template import render


@pytest.fixture
def config(tmp_path: Path) -> Config:
    pairs = [("a dog", "ein Hund"), ("", "leer <b>"), ("a b c d e", "a b c d e f g h i")]
    for side, name in enumerate(("en", "de")):
        lines = [f"{pair[side]}\n" for pair in pairs * 4]
        (tmp_path / f"train.{name}").write_text("".join(lines), "utf-8")
    files = {"source": str(tmp_path / "train.en"), "target": str(tmp_path / "train.de")}
    data = {"train": files, "validation": files, "directory": str(tmp_path / "data")}
    tokenizer = {"kind": "char", "vocabulary_size": 40}
    return Config.model_validate({"data": data, "tokenizer": tokenizer})


@pytest.fixture
def prepared(config: Config) -> Prepared:
    return prepare(config, lambda message: None)


def chapter(config: Config, fingerprint: str | None) -> str:
    return render("data.html", {"data": data_chapter(config, fingerprint)})


def rows(html: str) -> list[list[str]]:
    lines = re.findall(r"<tr>(.*?)</tr>", html, re.DOTALL)
    return [re.findall(r"<t[dh][^>]*>([^<]*)<", line) for line in lines]


def test_what_was_cleaned_and_how_long_sentences_are(config: Config, prepared: Prepared) -> None:
    html = chapter(config, prepared.fingerprint)
    found = rows(html)
    assert ["read", "12", "100.00%"] in found
    assert ["left out: empty", "4", "33.33%"] in found
    assert ["learnt from", "8", "66.67%"] in found
    longest = [
        str(int(side.lengths.max()) - 1) for side in (prepared.train.source, prepared.train.target)
    ]
    assert ["longest", *longest] in found
    assert "train.en:2" in html and "leer &lt;b&gt;" in html


def test_every_sentence_is_in_the_histogram_of_its_language(
    config: Config, prepared: Prepared
) -> None:
    for chart in chapter(config, prepared.fingerprint).split("<figure")[1:]:
        counts = [int(row[2]) for row in rows(chart)]
        assert sum(counts) == len(prepared.train) == 8


def test_without_the_prepared_data_it_says_where_they_were(config: Config) -> None:
    assert "0123456789abcdef; `nmt prepare` makes them" in chapter(config, "0123456789abcdef")
    assert "does not say what the run was trained on" in chapter(config, None)
