"""A memory's exact matches are returned as they are; similar ones stand behind the source."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest

from nmt.data.text.parallel_text import SentencePair
from nmt.data.text.protected_text import USUAL_PATTERNS, ProtectedText
from nmt.data.tokens.context import CONTEXT
from nmt.data.tokens.matches import match_symbols
from nmt.data.tokens.token_store import TokenStore
from nmt.data.tokens.vocabulary import learn_vocabulary
from nmt.errors import ConfigError
from nmt.memory.match import Match
from nmt.recipe.config import (
    CleaningConfig,
    Config,
    ContextConfig,
    DataConfig,
    MemoryConfig,
    TokenizerConfig,
)
from nmt.run.model import LoadedModel
from nmt.search.searcher import Searcher
from nmt.translation.line import Line, Terminology, Translation, numbered_lines
from nmt.translation.memory_matches import MemoryUse, can_repair, check_direction
from nmt.translation.request import TranslationRequest
from nmt.translation.spans import linked_words
from nmt.translation.translator import Translator
from tests.stand_in_models import Copier


@dataclass(frozen=True)
class StandInMemory:
    """Has some pairs; what has the first word of a text is 0.8 like it."""

    pairs: dict[str, str]
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    """the searches: text and text before"""
    similarity: float = 0.8

    def search(
        self, text: str, count: int = 1, minimum: float = 0.5, before: str | None = None
    ) -> list[Match]:
        self.asked.append((text, before))
        found = []
        for i, (source, target) in enumerate(self.pairs.items()):
            is_similar = source.split()[:1] == text.split()[:1]
            score = 1.0 if source == text else self.similarity if is_similar else 0
            if score >= minimum:
                found.append(Match(source, target, score, i, same_context=before == "before"))
        return sorted(found, key=lambda match: -match.score)[:count]


class InOrder:
    """Stands for an aligner."""

    def align(self, pairs: TokenStore, rows: Any) -> list[list[tuple[int, int]]]:
        return [[(i, i) for i in range(pairs.source.lengths[row] - 1)] for row in rows]


MEMORY = StandInMemory({"a dog": "EIN HUND", "a cat": "EINE KATZE", "some {x} here": "HIER {x}"})
USE = MemoryUse((MEMORY,))


@pytest.fixture(scope="module")
def repairing_run() -> LoadedModel:
    """A run that translates every source into itself, and what stands behind it, too."""
    data = DataConfig(memory=MemoryConfig())
    config = TokenizerConfig(
        kind="char", vocabulary_size=300, byte_fallback=True, normalization="identity"
    )
    pairs = [SentencePair("ein kleiner Hund </s>", "a small dog 123 .")]
    tokenizer = learn_vocabulary(pairs, config, [], match_symbols(data))
    model: Any = Copier(tokenizer.target.size)
    return LoadedModel(Config(data=data), tokenizer, model, Path("run"))


def translated(loaded: LoadedModel, *lines: str | Line, **request: Any) -> list[list[Translation]]:
    asked = TranslationRequest(**{"memory": USE, **request})
    numbered = [
        Line(i, each) if isinstance(each, str) else each for i, each in enumerate(lines, start=1)
    ]
    return list(Translator(loaded).pipeline(asked).translate(numbered))


def texts(rows: list[list[Translation]]) -> list[str]:
    return [best.text for best, *_ in rows]


@pytest.mark.parametrize("document", [False, True])
def test_a_plain_model_returns_exact_matches_and_translates_the_rest(
    copying_run: LoadedModel, document: bool
) -> None:
    rows = translated(copying_run, "a dog", "a dog runs", "", "  a cat ", document=document)
    assert texts(rows) == ["EIN HUND", "a dog runs", "", "  EINE KATZE "]
    matches = [best.match for best, *_ in rows]
    assert [match and (match.kind, match.score) for match in matches] == [
        ("exact-match", 1.0),
        None,
        None,
        ("exact-match", 1.0),
    ]
    assert len(cast(Any, copying_run.model).batches) == 1  # one line is searched


def test_a_model_trained_with_matches_gets_those_of_similar_sentences(
    repairing_run: LoadedModel,
) -> None:
    rows = translated(repairing_run, "a bird", "no bird", "a dog")
    assert texts(rows) == ["a bird EIN HUND EINE KATZE", "no bird", "EIN HUND"]
    [[first], [second], [third]] = rows
    assert first.match is not None and (first.match.kind, first.match.score) == ("fuzzy-match", 0.8)
    assert second.match is None
    assert third.match is not None and third.match.score == 1


def test_an_exact_match_may_be_one_of_the_similar_sentences(repairing_run: LoadedModel) -> None:
    use = replace(USE, exact=False)
    assert texts(translated(repairing_run, "a dog", memory=use)) == ["a dog EIN HUND EINE KATZE"]


@pytest.mark.parametrize(
    ("terms", "text"),
    [
        (Terminology.of({"dog": "HUND"}), "EIN HUND"),
        (Terminology.of(terms=["KÖTER"]), "KÖTER"),
        (Terminology.of(forbidden=["HUND"]), "a dog"),
        (Terminology.of(prefix="EIN"), None),
    ],
)
def test_an_exact_match_that_breaks_the_terms_is_not_returned(
    copying_run: LoadedModel, terms: Terminology, text: str | None
) -> None:
    [[found]] = translated(copying_run, Line(1, "a dog", terms))
    assert (found.match is not None) == (text == "EIN HUND")
    assert text is None or found.text == text or "KÖTER" in found.text


def test_each_sentence_of_a_line_has_its_own_matches(copying_run: LoadedModel) -> None:
    memory = StandInMemory({"A dog runs.": "EIN HUND.", "A dog runs. No cat does.": "BEIDE"})
    use = MemoryUse((memory,))
    rows = translated(
        copying_run, "A dog runs. It runs.", "A dog runs. No cat does.", document=True, memory=use
    )
    assert texts(rows) == ["EIN HUND. It runs.", "BEIDE"]
    assert rows[0][0].match is None and rows[1][0].match is not None


def test_matches_stand_behind_a_sentence_with_its_context() -> None:
    """A line with an exact match is context of the next one; both together are limited."""
    data = DataConfig(
        memory=MemoryConfig(),
        context=ContextConfig(sides="source"),
        cleaning=CleaningConfig(max_length=18),
    )
    config = TokenizerConfig(kind="char", vocabulary_size=300, byte_fallback=True)
    pairs = [SentencePair("a small dog 123 .", "EIN HUND KATZE")]
    symbols = [*match_symbols(data), CONTEXT]
    tokenizer = learn_vocabulary(pairs, config, symbols=symbols)
    model: Any = Copier(tokenizer.target.size)
    loaded = LoadedModel(Config(data=data), tokenizer, model, Path("run"))
    found = texts(translated(loaded, "a dog", "a birds", "", "a birds", document=True))
    assert found == ["EIN HUND", "a dog a birds EIN HUND", "", "a birds EIN HUND EINE KATZE"]


def test_a_model_that_has_learnt_marks_gets_them(repairing_run: LoadedModel) -> None:
    """The same function makes them as in training; the stand-in aligner links words in order."""
    data = DataConfig(memory=MemoryConfig(marks=True))
    config = TokenizerConfig(kind="word", vocabulary_size=17)
    pairs = [SentencePair("a dog cat bird", "EIN HUND EINE KATZE")]
    tokenizer = learn_vocabulary(pairs, config, symbols=match_symbols(data))
    model, aligner = cast(Any, Copier(tokenizer.target.size)), cast(Any, InOrder())
    loaded = LoadedModel(Config(data=data), tokenizer, model, Path("run"), aligner=aligner)
    assert can_repair(loaded) and not can_repair(replace(loaded, aligner=None))
    [[found]] = translated(loaded, "a bird")
    pieces = [tokenizer.source.pieces[i].strip("▁") for i in found.tokens]
    assert " ".join(pieces) == (
        "a bird <match-middle> EIN <differs> HUND </differs> "
        "<match-middle> EINE <differs> KATZE </differs>"
    )


def test_links_stay_inside_source_and_translation(repairing_run: LoadedModel) -> None:
    rows = translated(repairing_run, "a bird", "a dog", alignments=True)
    for source, [found] in zip(("a bird", "a dog"), rows, strict=True):
        assert found.match is not None and found.alignment is not None
        for link in found.alignment.links:
            assert link.source[1] <= len(source) and link.target[1] <= len(found.text)
        assert (0, 0) in linked_words(found.alignment.links, source, found.text)
    assert texts(rows) == ["a bird EIN HUND EINE KATZE", "EIN HUND"]


def test_protected_parts_stay_in_exact_and_in_similar_matches(repairing_run: LoadedModel) -> None:
    protected = ProtectedText(USUAL_PATTERNS)
    rows = translated(repairing_run, "some {x} here", "some {x} there", protected=protected)
    assert texts(rows)[0] == "HIER {x}"
    assert "1" not in texts(rows)[1] and "{x}" in texts(rows)[1]


def test_a_kept_part_that_the_exact_match_lacks_is_not_lost(copying_run: LoadedModel) -> None:
    line = Line(1, "a dog", protected=((2, 5),))
    [[found]] = translated(copying_run, line)
    assert "dog" in found.text and found.match is None


def test_a_text_of_several_translations_has_its_exact_match_alone(
    copying_run: LoadedModel,
) -> None:
    rows = translated(copying_run, "a dog", n_best=2)
    assert texts(rows) == ["EIN HUND"] and len(rows[0]) == 1


def test_the_match_of_the_best_memory_is_taken() -> None:
    use = MemoryUse((StandInMemory({"a b": "X"}), StandInMemory({"a c": "Y", "a": "X"})))
    found = use.search("a", 3, 0.5, None)
    assert [(match.target, match.score) for match in found] == [("X", 1.0), ("Y", 0.8)]


def test_a_tag_is_no_part_of_what_is_looked_for(byte_tokenizer: object) -> None:
    config = TokenizerConfig(kind="char", vocabulary_size=60)
    pairs = [SentencePair("a dog", "EIN HUND")] * 3
    tokenizer = learn_vocabulary(pairs, config, [">>fr<<"])
    model: Any = Copier(tokenizer.target.size)
    loaded = LoadedModel(Config(), tokenizer, model, Path("run"))
    assert texts(translated(loaded, ">>fr<< a dog", ">>fr<<a cat")) == ["EIN HUND", "EINE KATZE"]


@pytest.mark.parametrize(
    ("languages", "to", "fits"),
    [
        (("en", "de"), None, True),
        (("en-CA", "de_AT"), None, True),
        (("de", "en"), None, False),
        (("en", "fr"), None, False),
        (("en", "fr"), "fr", True),
    ],
)
def test_a_memory_of_other_languages_is_refused(
    copying_run: LoadedModel, languages: tuple[str, str], to: str | None, fits: bool
) -> None:
    if fits:
        check_direction(languages, copying_run, to, "m.db")
        return
    with pytest.raises(ConfigError, match=r"m\.db: the memory is .*the model translates en-de"):
        check_direction(languages, copying_run, to, "m.db")


def test_a_model_repairs_if_recipe_and_vocabulary_are_made_for_it(
    copying_run: LoadedModel, repairing_run: LoadedModel
) -> None:
    assert can_repair(repairing_run)
    assert not can_repair(copying_run)
    assert not can_repair(replace(copying_run, config=repairing_run.config))


@pytest.mark.parametrize("document", [False, True])
def test_each_text_is_searched_once(copying_run: LoadedModel, document: bool) -> None:
    memory = StandInMemory({"a dog": "EIN HUND"})
    rows = translated(
        copying_run, "no bird", "a dog", "a cat", document=document, memory=MemoryUse((memory,))
    )
    assert texts(rows) == ["no bird", "EIN HUND", "a cat"]
    assert memory.asked == [("no bird", None), ("a dog", "no bird"), ("a cat", "a dog")]


@dataclass
class Lessons:
    """Notes the pairs that a model is to learn from, and lets it learn nothing."""

    of_batches: list[list[str]] = field(default_factory=list)

    def adapt(self, searcher: Searcher, matches: Sequence[Match]) -> Searcher:
        self.of_batches.append([match.target for match in matches])
        return searcher


@pytest.mark.parametrize(("similarity", "learnt"), [(0.8, [["EIN HUND", "EINE KATZE"]]), (0.6, [])])
def test_a_model_learns_from_pairs_that_are_similar_enough(
    repairing_run: LoadedModel, similarity: float, learnt: list[list[str]]
) -> None:
    """It may read less similar ones behind the source."""
    use, lessons = MemoryUse((replace(MEMORY, similarity=similarity),)), Lessons()
    rows = translated(repairing_run, "a bird", "no bird", memory=use, adapt=lessons.adapt)
    assert texts(rows) == ["a bird EIN HUND EINE KATZE", "no bird"]
    assert lessons.of_batches == learnt


def test_sentences_of_a_document_learn_from_the_pairs_near_them(copying_run: LoadedModel) -> None:
    memory = StandInMemory({"a dog": "EIN HUND", "a cat": "EINE KATZE", "some fox": "EIN FUCHS"})
    lines = ["no bird", "a dog", *["no bird"] * 14, "some fox runs", "no bird", *["no bird"] * 16]
    asked = {"document": True, "memory": MemoryUse((memory,))}
    lessons = Lessons()
    rows = translated(copying_run, *lines, adapt=lessons.adapt, adapt_document=True, **asked)
    assert texts(rows) == [*lines[:1], "EIN HUND", *lines[2:]]
    near = {tuple(each) for each in lessons.of_batches}
    # the lines 1 to 16; the fox's own pair, and that of all lines near it, of which there is one
    assert near == {("EIN HUND",), ("EIN FUCHS",)}
    lessons = Lessons()
    translated(copying_run, *lines, adapt=lessons.adapt, **asked)
    assert lessons.of_batches == [["EIN FUCHS"]]
    with pytest.raises(ConfigError, match="`adapt_document`.* is for documents; give one"):
        translated(copying_run, "a dog", adapt=lessons.adapt, adapt_document=True)


def test_without_a_memory_nothing_changes(repairing_run: LoadedModel) -> None:
    rows = Translator(repairing_run).pipeline().translate(numbered_lines(["a dog", "a bird"]))
    assert [best.text for best, *_ in rows] == ["a dog", "a bird"]
