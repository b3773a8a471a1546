"""A share of the sources has the targets of near pairs, never its own; the rest stays."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from nmt.data import fuzzy_repair as module
from nmt.data.corpora.splits import split_files, write_split
from nmt.data.fuzzy_repair import read_validation_matches
from nmt.data.prepared import Prepared, find_prepared, prepare
from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.alignment_model import AlignmentModel
from nmt.data.tokens.context import separators_of, without_context
from nmt.data.tokens.matches import without_matches
from nmt.recipe.config import (
    CleaningConfig,
    Config,
    ContextConfig,
    DataConfig,
    GuidedAlignmentConfig,
    MemoryConfig,
    TermsConfig,
    TokenizerConfig,
    TrainingConfig,
)

NOUNS = ["dog", "cat", "bird", "fish"]
PAIRS = [
    SentencePair(f"the {noun} sees {count} small trees .", f"das {noun} sieht {count} Bäume .")
    for noun in NOUNS
    for count in ("no", "many", "some")
]
PAIRS.append(SentencePair("nothing is like this at all", "nichts ist so wie das"))
ALL = MemoryConfig(share=1.0, minimum=0.6, count=2)


def configure(
    folder: Path, pairs: Sequence[SentencePair], memory: MemoryConfig | None, **settings: Any
) -> Config:
    held_out = [SentencePair("- the dog sees ten small trees .", "das Tier")]
    files: dict[str, Any] = {}
    for name, text in (("train", pairs), ("validation", held_out)):
        write_split(folder, name, ("en", "de"), list(text))
        files[name] = [split_files(folder, [name], ("en", "de"))[name]]
    data = DataConfig(**files, directory=str(folder / "data"), memory=memory, **settings)
    return Config(data=data, tokenizer=TokenizerConfig(kind="char", vocabulary_size=60), seed=3)


def appended(prepared: Prepared) -> list[str]:
    """Return what stands behind each source, the text of all its matches."""
    model, store = prepared.tokenizer.source, prepared.train.source
    rows = [store.sentence(i).tolist() for i in range(len(store.lengths))]
    return model.decode([row[len(without_matches(model, row)) - 1 :] for row in rows])


def prepared_with(folder: Path, pairs: Sequence[SentencePair], **settings: Any) -> Prepared:
    return prepare(configure(folder, pairs, **settings), lambda message: None)


def test_each_source_has_the_targets_of_its_nearest_pairs_and_not_its_own(tmp_path: Path) -> None:
    prepared = prepared_with(tmp_path, PAIRS, memory=ALL)
    for pair, text in zip(PAIRS, appended(prepared), strict=True):
        matches = [other.target for other in PAIRS if other.target in text]
        assert pair.target not in matches
        assert len(matches) == (0 if pair is PAIRS[-1] else 2)
    assert prepared.counts["with_matches"] == len(PAIRS) - 1
    assert prepared.counts["source_tokens"] == len(prepared.train.source.ids)
    plain = prepared.plain_train.source
    texts = prepared.tokenizer.source.decode(
        [plain.sentence(i).tolist() for i in range(len(PAIRS))]
    )
    assert texts == [pair.source for pair in PAIRS]


def test_several_processes_find_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = ALL.model_copy(update={"marks": True})
    monkeypatch.setattr(module, "_AT_ONCE", 3)
    ids, counts = [], []
    for processes in (1, 2):
        monkeypatch.setattr(module, "processes_for", lambda pairs, cost, n=processes: n)
        folder = tmp_path / str(processes)
        folder.mkdir()
        prepared = prepared_with(folder, PAIRS, memory=memory)
        ids.append((prepared.directory / "source.ids.npy").read_bytes())
        counts.append(prepared.counts)
    assert ids[0] == ids[1] and counts[0] == counts[1]


def test_a_pair_with_an_equal_source_gives_no_match(tmp_path: Path) -> None:
    pairs = [SentencePair("the dog runs fast", target) for target in ("A", "B", "C")]
    prepared = prepared_with(tmp_path, [*pairs, *PAIRS], memory=ALL)
    assert appended(prepared)[:3] == ["", "", ""]


def test_the_seed_and_the_pair_alone_decide_which_have_matches(tmp_path: Path) -> None:
    half = MemoryConfig(share=0.5, minimum=0.6)
    having = {}
    for name, pairs in (("one", PAIRS), ("two", list(reversed(PAIRS)))):
        (tmp_path / name).mkdir()
        texts = appended(prepared_with(tmp_path / name, pairs, memory=half))
        having[name] = {pair for pair, text in zip(pairs, texts, strict=True) if text}
    assert having["one"] == having["two"]
    assert 2 <= len(having["one"]) <= len(PAIRS) - 3


def test_texts_of_other_tags_have_no_matches_in_common(tmp_path: Path) -> None:
    config = configure(tmp_path, PAIRS, ALL)
    write_split(tmp_path, "other", ("en", "de"), [SentencePair(PAIRS[0].source + " !", "anders")])
    other = split_files(tmp_path, ["other"], ("en", "de"))["other"]
    train = [*config.data.train, other.model_copy(update={"tags": ["xx"]})]
    data = config.data.model_copy(update={"train": train})
    prepared = prepare(config.model_copy(update={"data": data}), lambda message: None)
    texts = appended(prepared)
    assert texts[-1] == "" and not any("anders" in text for text in texts)


def test_a_source_that_would_be_too_long_stays_plain(tmp_path: Path) -> None:
    short = CleaningConfig(max_length=40)
    prepared = prepared_with(tmp_path, PAIRS, memory=ALL, cleaning=short)
    assert len(prepared.train) == len(PAIRS)
    assert 55 < prepared.train.source.lengths.max() <= 81  # one match fits, two do not


def test_the_matches_of_the_validation_text_are_kept(tmp_path: Path) -> None:
    prepared = prepared_with(tmp_path, PAIRS, memory=ALL)
    [(text, matches)] = read_validation_matches(prepared.directory).items()
    assert text == "the dog sees ten small trees ."  # without its list mark
    assert {match.source for match in matches} < {pair.source for pair in PAIRS}
    assert all("dog" in match.target and match.score > 0.8 for match in matches)


def test_matches_stand_behind_a_sentence_with_its_context_and_have_none(tmp_path: Path) -> None:
    context = ContextConfig(sentences=1, share=1.0)
    prepared = prepared_with(tmp_path, PAIRS, memory=ALL, context=context)
    model, [separator, _] = prepared.tokenizer.source, separators_of(prepared.tokenizer)
    rows = prepared.plain_train.source
    joined = [rows.sentence(i).tolist() for i in range(len(PAIRS))]
    assert [row.count(separator) for row in joined] == [0] + [1] * (len(PAIRS) - 1)
    own = model.decode([without_context(row, separator) for row in joined])
    assert own == [pair.source for pair in PAIRS]
    plain = prepared_with(tmp_path, PAIRS, memory=ALL)
    assert appended(prepared) == appended(plain)


def test_terms_are_put_into_the_sentence_and_not_into_its_matches(tmp_path: Path) -> None:
    glossary = tmp_path / "terms.tsv"
    glossary.write_text("tree\tBaum\nsieht\tsehen\n")
    terms = TermsConfig(share=1.0, source=str(glossary))
    prepared = prepared_with(tmp_path, PAIRS, memory=ALL, terms=terms)
    pieces, store = prepared.tokenizer.source.pieces, prepared.train.source
    rows = ["".join(pieces[i] for i in store.sentence(row)) for row in range(len(PAIRS))]
    plain = appended(prepared_with(tmp_path, PAIRS, memory=ALL))
    assert appended(prepared) == plain
    for pair, row, matches in zip(PAIRS, rows, plain, strict=True):
        own = row.partition("<match")[0]
        assert ("<term>trees<lemma>▁Baum</term>" in own) == ("trees" in pair.source)
        assert row.count("<term>") == own.count("<term>") and bool(matches) == (own != row)


def test_marks_tell_which_words_of_a_match_differ(tmp_path: Path) -> None:
    memory = ALL.model_copy(update={"marks": True})
    prepared = prepared_with(tmp_path, PAIRS, memory=memory)
    pieces, store = prepared.tokenizer.source.pieces, prepared.train.source
    rows = ["".join(pieces[i] for i in store.sentence(row)) for row in range(len(PAIRS))]
    assert any("<differs>" in row for row in rows)
    assert all(row.count("<differs>") == row.count("</differs>") for row in rows)
    assert appended(prepared) == appended(prepared_with(tmp_path, PAIRS, memory=ALL))
    assert prepared.aligner is not None


def test_marks_and_links_have_one_aligner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guided = TrainingConfig(guided_alignment=GuidedAlignmentConfig(links="auto"))
    learn, learnt, links = AlignmentModel.learn, list[str](), dict[str, list[int]]()

    def counted(model: AlignmentModel) -> None:
        learnt.append("once")
        learn(model)

    monkeypatch.setattr(AlignmentModel, "learn", counted)
    for name, memory in (("plain", ALL), ("marks", ALL.model_copy(update={"marks": True}))):
        (tmp_path / name).mkdir()
        config = configure(tmp_path / name, PAIRS, memory).model_copy(update={"training": guided})
        learnt.clear()
        for _ in range(2):
            of_pairs = prepare(config, lambda message: None).train.links
        assert learnt == ["once"]
        assert of_pairs is not None
        links[name] = of_pairs.ids.tolist()
    assert links["marks"] == links["plain"]


@pytest.mark.parametrize(
    "other",
    [
        None,
        MemoryConfig(share=0.9),
        MemoryConfig(share=1.0, minimum=0.6, count=1),
        MemoryConfig(share=1.0, minimum=0.6, marks=True),
    ],
)
def test_other_settings_prepare_other_data(tmp_path: Path, other: MemoryConfig | None) -> None:
    config = configure(tmp_path, PAIRS, ALL)
    made = prepare(config, lambda message: None)
    found = find_prepared(config)
    assert found is not None and found.directory == made.directory
    assert find_prepared(configure(tmp_path, PAIRS, other)) is None
    # the matches of another validation text are others
    (tmp_path / "validation.en").write_text("the cat sees ten small trees .\n")
    assert find_prepared(config) is None
