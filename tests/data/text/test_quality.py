"""The report counts what is there: lengths, unknown symbols, and what leaked."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.config import CleaningConfig, Config, DataConfig, TextPair, TokenizerConfig
from nmt.data.text.parallel_text import SentencePair
from nmt.data.text.quality import BINS, find_leaks, inspect, normalize
from nmt.report.tables import render_quality

TRAIN = [
    SentencePair("A dog sees the house.", "Ein Hund sieht das Haus."),
    SentencePair("The house is small!", "Das Haus ist klein!"),
    SentencePair("A dog eats.", "Ein Hund frisst."),
]


def test_leaks_are_told_apart() -> None:
    held_out = [
        TRAIN[0],
        SentencePair("The house is small!", "Klein ist das Haus!"),
        SentencePair("a dog  EATS", "ein hund frisst"),
        SentencePair("a dog eats", "Ein Hund isst."),
        SentencePair("Nothing like it.", "Nichts dergleichen."),
        TRAIN[0],
    ]
    other = [SentencePair("x", "y")]
    leak, none, empty = find_leaks(TRAIN, {"test": held_out, "a": other, "b": []})
    assert (none.sources, none.sources_normalized, none.sentences) == (0, 0, 1)
    assert (empty.sources, empty.sources_normalized, empty.sentences) == (0, 0, 0)
    assert (leak.sentences, leak.pairs, leak.sources) == (6, 2, 3)
    assert (leak.pairs_normalized, leak.sources_normalized) == (3, 5)
    assert leak.examples == ["A dog sees the house.", "The house is small!"]


@given(st.text())
def test_normalising_twice_is_normalising_once(text: str) -> None:
    once = normalize(text)
    assert normalize(once) in (once, normalize(normalize(once)))
    assert normalize(f" {text.upper()}") == normalize(text.upper())


@pytest.fixture
def config(tmp_path: Path) -> Config:
    def written(name: str, pairs: list[SentencePair]) -> TextPair:
        path = tmp_path / f"{name}.tsv"
        path.write_text("".join(f"{p.source}\t{p.target}\n" for p in pairs), "utf-8")
        return TextPair(file=str(path))

    empty = SentencePair("", "leer")
    data = DataConfig(
        train=[written("train", [*TRAIN * 9, empty])],
        validation=written("validation", [TRAIN[1], SentencePair("A 9 dog.", "Ein 9 Hund.")]),
        directory=str(tmp_path / "data"),
        cleaning=CleaningConfig(duplicates=True),
    )
    return Config(data=data, tokenizer=TokenizerConfig(kind="char", vocabulary_size=60))


def test_report_of_a_small_corpus(config: Config) -> None:
    quality = inspect(config, lambda message: None)
    assert (quality.counts["read"], quality.counts["kept"]) == (28, 3)
    assert (quality.counts["dropped"]["duplicate"], quality.counts["dropped"]["empty"]) == (24, 1)
    # characters, and the mark in front of the first word
    lengths = sorted(len(pair.source) + 1 for pair in TRAIN)
    assert quality.source.tokens == sum(lengths)
    assert [quality.source.percentiles[p] for p in (1, 50, 100)] == lengths
    assert sum(quality.source.histogram) == 3 and len(quality.source.histogram) == len(BINS)
    # the nine is unknown
    characters = sum(len(s) + 1 for s in (TRAIN[1].source, "A 9 dog."))
    assert quality.source.unknown_rate == pytest.approx(1 / characters)
    assert quality.source.tokens_per_word == pytest.approx(characters / 7)
    assert [(leak.split, leak.pairs) for leak in quality.leaks] == [("validation", 1)]
    assert json.loads(json.dumps(quality.as_json()))["target"]["language"] == "de"


def test_the_table_names_rules_examples_and_leaks(config: Config) -> None:
    table = render_quality(inspect(config, lambda message: None))
    for part in (
        "left out: duplicate",
        "train.tsv:4: 'A dog sees the house.' | 'Ein Hund sieht das Haus.'",
        "sentence length in tokens, de",
        "validation: The house is small!",
    ):
        assert part in table
