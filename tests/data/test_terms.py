"""Terms in the sources of prepared pairs: learnt or from a glossary, made once."""

from pathlib import Path

import pytest

from nmt.data import terms as module
from nmt.data.corpora.splits import split_files, write_split
from nmt.data.prepared import Prepared, prepare
from nmt.data.terms import draw_annotations
from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.annotation import Annotation
from nmt.errors import ConfigError, DataError
from nmt.recipe.config import (
    Config,
    DataConfig,
    GuidedAlignmentConfig,
    TermsConfig,
    TokenizerConfig,
    TrainingConfig,
)

NOUNS = {"dogs": "Hunde", "cats": "Katzen", "books": "Bücher", "houses": "Häuser", "men": "Männer"}
VERBS = {"see": "sehen", "hear": "hören", "find": "finden", "have": "haben", "buy": "kaufen"}
PAIRS = [
    SentencePair(f"we {verb} the {noun} .", f"wir {german_verb} die {german} .")
    for verb, german_verb in VERBS.items()
    for noun, german in NOUNS.items()
] * 4


def configure(tmp_path: Path, guided: bool = False, **terms: object) -> Config:
    write_split(tmp_path, "text", ("en", "de"), PAIRS)
    text = split_files(tmp_path, ["text"], ("en", "de"))["text"]
    directory = str(tmp_path / "data")
    asked = TermsConfig.model_validate(terms)
    return Config(
        data=DataConfig(train=[text], validation=[text], directory=directory, terms=asked),
        tokenizer=TokenizerConfig(vocabulary_size=110),
        training=TrainingConfig(guided_alignment=GuidedAlignmentConfig() if guided else None),
    )


def sources(prepared: Prepared) -> list[str]:
    vocabulary, store = prepared.tokenizer.source, prepared.train
    rows = [store.source.sentence(i).tolist()[:-1] for i in range(len(store))]
    return ["".join(vocabulary.pieces[i] for i in row).replace("▁", " ") for row in rows]


@pytest.fixture
def common(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count words as common only if they are in a third of the pairs, as there are few words."""
    monkeypatch.setattr(module, "_COMMON", 0.3)


@pytest.mark.usefixtures("common")
def test_words_that_translate_each_other_are_terms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages: list[str] = []
    config = configure(tmp_path, share=0.5)
    first = prepare(config, messages.append)
    rows = sources(first)
    assert any("<term> books<lemma> Buch</term>" in row for row in rows)
    assert "the<lemma>" not in "".join(rows)
    with_terms = sum("<term>" in row for row in rows)
    assert 0.3 < with_terms / len(PAIRS) < 0.7
    assert f"in the sources of {with_terms} of {len(PAIRS)} pairs" in messages[-1]
    assert first.train.links is None
    monkeypatch.setattr(module, "_make_folder", None)  # would raise
    assert sources(prepare(config, messages.append)) == rows


@pytest.mark.usefixtures("common")
def test_links_follow_the_words_of_the_source(tmp_path: Path) -> None:
    prepared = prepare(configure(tmp_path, guided=True, share=1.0), lambda message: None)
    store, pieces = prepared.train, prepared.tokenizer.source.pieces
    assert store.links is not None
    for i in range(len(store)):
        positions = store.links.sentence(i).tolist()[::2]
        source = [pieces[token] for token in store.source.sentence(i)]
        inside = False
        of_text = set()
        for place, piece in enumerate(source):
            inside = (inside or piece == "<lemma>") and piece != "</term>"
            if not inside and not piece.startswith("<"):
                of_text.add(place)
        assert set(positions) <= of_text


def test_a_glossary_gives_terms_whose_translation_is_there(tmp_path: Path) -> None:
    glossary = tmp_path / "terms.tsv"
    glossary.write_text("dog\tHund\nhear\tlesen\nthe man\tder Mann\n")
    config = configure(tmp_path, share=1.0, source=str(glossary))
    rows = sources(prepare(config, lambda message: None))
    assert any("<term> dogs<lemma> Hund</term>" in row for row in rows)
    assert any("<term> the men<lemma> der Mann</term>" in row for row in rows)
    assert "lesen" not in "".join(rows)
    with pytest.raises(DataError, match="no such file"):
        prepare(configure(tmp_path, source=str(tmp_path / "none")), lambda message: None)


def test_the_seed_decides_which_pairs_have_terms() -> None:
    found = [Annotation(range(i, i + 1), str(i)) for i in range(9)]
    drawn = [draw_annotations(found, 0.4, f"1 {i}") for i in range(500)]
    assert drawn == [draw_annotations(found, 0.4, f"1 {i}") for i in range(500)]
    assert 150 < sum(map(bool, drawn)) < 250
    assert {len(each) for each in drawn} == {0, 1, 2, 3}
    assert all(each == sorted(each, key=lambda one: one.tokens.start) for each in drawn)
    assert draw_annotations([], 1.0, "1") == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sampling": 0.1}, "tokenizer.sampling: 0.1 draws others"),
        ({"shared": False}, "data.terms needs tokenizer.shared: true"),
    ],
)
def test_settings_that_do_not_go_with_terms(change: dict[str, object], message: str) -> None:
    tokenizer = TokenizerConfig.model_validate(change)
    embeddings = {"embeddings": "target"} if "shared" in change else {}
    with pytest.raises((ConfigError, ValueError), match=message):
        Config.model_validate(
            {"data": {"terms": {}}, "tokenizer": tokenizer.model_dump(), "model": embeddings}
        )
