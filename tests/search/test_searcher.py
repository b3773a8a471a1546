"""Beams that cannot work are refused, and only sentences that need it are searched again."""

from typing import Any

import pytest

from nmt.errors import ConfigError
from nmt.recipe.config import DecodingConfig
from nmt.run.model import LoadedModel
from nmt.search import searcher
from nmt.search.constrained_search import constrained_search
from nmt.search.lexical_constraints import LexicalConstraints, SpelledConstraints, Spelling
from nmt.search.searcher import Searcher, check_beam_size, widest_beam
from nmt.search.sentence_search import SentenceSearch
from nmt.search.step_decoder import StepDecoder
from nmt.translation.line import Line, Terminology
from nmt.translation.translator import Translator


def test_a_beam_as_wide_as_the_vocabulary_is_allowed_and_a_wider_one_refused(
    random_run: LoadedModel,
) -> None:
    size = random_run.tokenizer.target.size
    check_beam_size(random_run, DecodingConfig(beam_size=size), None)
    with pytest.raises(ConfigError, match=f"wider than the vocabulary of {size} .*at most {size}"):
        check_beam_size(random_run, DecodingConfig(beam_size=size + 1), None)


def test_the_width_that_a_refusal_names_is_allowed_and_grows_with_memory(
    random_run: LoadedModel,
) -> None:
    widths = [widest_beam(random_run, memory) for memory in (1e5, 1e6, 1e7)]
    assert widths == sorted(set(widths))
    for widest, memory in zip(widths, (1e5, 1e6, 1e7), strict=True):
        with pytest.raises(ConfigError, match=f"needs more memory.*at most {widest}$"):
            check_beam_size(random_run, DecodingConfig(beam_size=widest + 1), memory)
        check_beam_size(random_run, DecodingConfig(beam_size=widest), memory)


def test_only_sentences_whose_translation_breaks_constraints_are_searched_with_them(
    random_run: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[int] = []

    def recorded(decoder: StepDecoder, searches: list[SentenceSearch]) -> Any:
        searched.append(len(searches))
        return constrained_search(decoder, searches)

    monkeypatch.setattr(searcher, "constrained_search", recorded)
    translator = Translator(random_run, DecodingConfig(beam_size=2, max_length_offset=12))
    text = translator
    lines = ["A dog sleeps.", "Two men read.", "Her small cat"]
    free = text.translate(lines)
    assert text.translate(lines, forbidden=["Rhabarber"]) == free
    ended = sum(not t.is_truncated for t in translator.translations(lines))
    assert sum(searched) == len(lines) - ended
    [term, *_] = free[0].split()
    searched.clear()
    with_term = text.translate(lines, forbidden=[term])
    assert term not in with_term[0].split()
    assert sum(searched) >= 1


def test_beam_search_is_left_out_for_a_sentence_whose_greedy_translation_lacks_a_term(
    random_run: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[tuple[int, int]] = []  # beam and number of sentences of each search
    search = Searcher._unconstrained_search

    def recorded(self: Searcher, sources: Any, n_best: int, settings: DecodingConfig) -> Any:
        searched.append((settings.beam_size, len(sources.ids)))
        return search(self, sources, n_best, settings)

    monkeypatch.setattr(Searcher, "_unconstrained_search", recorded)
    translator = Translator(random_run, DecodingConfig(beam_size=3, max_length_offset=12))
    sources = ["A dog sleeps.", "Her small cat"]
    lines = [Line(n, text, Terminology.of(terms=["Hund"])) for n, text in enumerate(sources)]
    found = [best.text for best, *_ in translator.pipeline().translate(lines)]
    assert searched == [(1, 2)] and all("Hund" in text for text in found)
    searched.clear()
    translator.translate(sources, forbidden=["Rhabarber"])
    assert searched == [(3, 2)]  # a forbidden word is hardly ever met


@pytest.mark.parametrize(
    ("text", "is_met"),
    [
        ("Der Hund und die Katze", True),
        ("Der Hund", False),
        ("die Katze, der Hund-Katze, Hund", True),  # its first place is inside another word
        ("Der hund und die Katze", False),  # a term is written as asked
        ("Die Hundehütte und die Katze", False),  # and is a whole word
        ("Der Hund und die Katze im Haus", False),
    ],
)
def test_a_text_meets_constraints_if_it_has_the_terms_and_no_forbidden_word(
    random_run: LoadedModel, text: str, is_met: bool
) -> None:
    asked = LexicalConstraints(terms=("Hund", "die Katze"), forbidden=("haus",))
    spelling = Spelling(random_run.tokenizer)
    assert SpelledConstraints.spell(asked, spelling).are_met_by(text) == is_met
    twice = LexicalConstraints(terms=("Hund", "Hund"))
    assert not SpelledConstraints.spell(twice, spelling).are_met_by(text)


def test_every_way_to_translate_refuses_too_wide_a_beam(random_run: LoadedModel) -> None:
    translator = Translator(random_run, DecodingConfig(beam_size=5000))
    with pytest.raises(ConfigError, match="a beam of 5000"):
        translator.translations(["a dog"])
    with pytest.raises(ConfigError, match="a beam of 5000"):
        translator.translate("a dog")
