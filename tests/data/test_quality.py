"""The report counts what is there: lengths, unknown symbols, and what leaked."""

import json
from dataclasses import astuple
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.data.quality import BINS, find_leaks, inspect
from nmt.data.text.contamination import normalize
from nmt.data.text.parallel_text import SentencePair
from nmt.recipe.config import CleaningConfig, Config, DataConfig, TextPair, TokenizerConfig
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
    leaks = find_leaks(TRAIN, {"test": held_out, "a": [SentencePair("x", "y")], "b": []})
    assert [astuple(leak) for leak in leaks] == [
        ("test", 6, 2, 3, 3, 5, ["A dog sees the house.", "The house is small!"]),
        ("a", 1, 0, 0, 0, 0, []),
        ("b", 0, 0, 0, 0, 0, []),
    ]


@given(st.text())
def test_normalising_twice_is_normalising_once(text: str) -> None:
    once = normalize(text)
    assert normalize(once) in (once, normalize(normalize(once)))
    assert normalize(f" {text.upper()}") == normalize(text.upper())


def test_report_of_a_small_corpus_and_its_table(tmp_path: Path) -> None:
    def written(name: str, pairs: list[SentencePair]) -> TextPair:
        path = tmp_path / f"{name}.tsv"
        path.write_text("".join(f"{p.source}\t{p.target}\n" for p in pairs), "utf-8")
        return TextPair(file=str(path))

    data = DataConfig(
        train=[written("train", [*TRAIN * 9, SentencePair("", "leer")])],
        validation=[
            written("one", [TRAIN[1]]),
            written("two", [SentencePair("A 9 dog.", "Ein 9 Hund.")]),
        ],
        directory=str(tmp_path / "data"),
        cleaning=CleaningConfig(duplicates=True),
    )
    tokenizer = TokenizerConfig(kind="char", vocabulary_size=60)
    quality = inspect(Config(data=data, tokenizer=tokenizer), lambda message: None)
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
    assert quality.source.unknown == quality.target.unknown == {"9": 1}
    assert quality.source.tokens_per_word == pytest.approx(characters / 7)
    assert [(leak.split, leak.pairs) for leak in quality.leaks] == [("validation", 1)]
    assert json.loads(json.dumps(quality.as_json()))["target"]["language"] == "de"
    table = render_quality(quality)
    for part in (
        "left out: duplicate",
        "train.tsv:4: 'A dog sees the house.' | 'Ein Hund sieht das Haus.'",
        "sentence length in tokens, de",
        "validation: The house is small!",
        "vocabulary lacks, and how often\n  in the held-out en text: 9 (U+0039) 1\n  in the held",
    ):
        assert part in table
