"""Terms, forbidden words and beginnings hold whatever the model thinks of them."""

import os
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import regex
import torch

from nmt.data.text.lines import read_lines
from nmt.data.text.parallel_text import SentencePair
from nmt.data.text.words import has_any
from nmt.data.tokens.tokenizer import EOS, PAD
from nmt.data.tokens.vocabulary import learn_vocabulary
from nmt.errors import CheckpointError, DataError
from nmt.evaluation.metrics import bleu
from nmt.recipe.config import DecodingConfig, TokenizerConfig
from nmt.run.model import LoadedModel, load_model
from nmt.search.beam_search import beam_search
from nmt.search.constrained_search import choose, constrained_search
from nmt.search.constrained_sentence import ConstrainedSentence
from nmt.search.lexical_constraints import LexicalConstraints, SpelledConstraints, Spelling
from nmt.search.sentence_search import (
    WIDEST_BEAM,
    Candidates,
    SentenceSearch,
    beam_width,
)
from nmt.search.torch_steps import TorchSteps
from nmt.translation.line import Line, Terminology
from nmt.translation.translator import Translator
from tests.search.plain_search import assert_same
from tests.stand_in_models import table_model

Asked = Sequence[LexicalConstraints]
SOURCE = torch.tensor([[5, 6, 3], [9, 3, 0], [7, 8, 3]])


def search(
    loaded: LoadedModel, asked: Asked, model: Any, beam: int = 3, n_best: int = 1, **changes: Any
) -> Any:
    spelling = Spelling(loaded.tokenizer)
    own = [ConstrainedSentence(SpelledConstraints.spell(one, spelling), spelling) for one in asked]
    settings = DecodingConfig(beam_size=beam, max_length_offset=8, **changes)
    source = SOURCE[: len(own)]
    limits = [settings.max_target_length(length) for length in (source != PAD).sum(1).tolist()]
    pairs = zip(own, limits, strict=True)
    searches = [SentenceSearch(one, limit, settings, n_best) for one, limit in pairs]
    return constrained_search(TorchSteps(model, source, spelling.word_ends), searches)


def count(term: str, text: str) -> int:
    return len(regex.findall(rf"(?<!\w){regex.escape(term)}(?!\w)", text))


@pytest.mark.parametrize(
    ("changes", "probable"),
    [({}, []), ({"min_length": 100}, [EOS]), ({"no_repeat_ngram": 2}, [7, 8])],
)
@pytest.mark.parametrize("beam", [1, 2, 5])
@pytest.mark.parametrize("seed", range(4))
def test_without_constraints_it_is_beam_search_if_no_hypothesis_ends_early(
    random_run: LoadedModel, beam: int, seed: int, changes: dict[str, Any], probable: list[int]
) -> None:
    model = table_model(random_run.tokenizer.target.size, seed)
    model.table[:, probable] += 5  # what the settings forbid would be found without them
    found = search(random_run, [LexicalConstraints()] * 3, model, beam, beam, **changes)
    settings = DecodingConfig(beam_size=beam, max_length_offset=8, **changes)
    expected = beam_search(model, SOURCE, settings, beam)
    for rows in zip(found, expected, strict=True):
        assert_same(*rows)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("beam", [1, 4])
def test_a_model_of_noise_writes_what_it_must_and_not_what_it_must_not(
    random_run: LoadedModel, beam: int, seed: int
) -> None:
    model = table_model(random_run.tokenizer.target.size, seed)
    constraints = [
        LexicalConstraints(("Hund", "Hund", "ein d"), prefix="du "),
        LexicalConstraints((), ("a", "e", "i"), prefix="Ж"),
        LexicalConstraints(("kl😀", "n"), ("e",)),
    ]
    for own, found in zip(constraints, search(random_run, constraints, model, beam), strict=True):
        [text] = random_run.tokenizer.target.decode([found[0].tokens])
        assert text.startswith(own.prefix)
        assert all(count(term, text) >= own.terms.count(term) for term in own.terms), text
        assert not own.forbidden or not has_any(own.forbidden, text), text


@pytest.mark.parametrize("prefix", ["Hund" * 60, "ab" * 120, "Hunde der Hundehund", "é" * 90])
def test_a_long_word_can_be_the_prefix(random_run: LoadedModel, prefix: str) -> None:
    model = table_model(random_run.tokenizer.target.size, 1)
    [[found]] = search(random_run, [LexicalConstraints(prefix=prefix)], model)
    [text] = random_run.tokenizer.target.decode([found.tokens])
    if "é" not in prefix:  # which the vocabulary lacks
        assert text.startswith(prefix)


def test_a_sentence_gives_the_same_alone_and_in_a_batch(random_run: LoadedModel) -> None:
    constraints = [LexicalConstraints(("Hund",)), LexicalConstraints(("a", "b", "c"))]
    together = search(random_run, constraints, random_run.model)
    alone = search(random_run, constraints[:1], random_run.model)
    assert together[0][0].tokens == alone[0][0].tokens


def test_scores_that_are_not_numbers_are_an_error(
    random_run: LoadedModel,
) -> None:
    model = table_model(random_run.tokenizer.target.size)
    model.table[:] = float("nan")
    with pytest.raises(CheckpointError, match="not numbers"):
        search(random_run, [LexicalConstraints(("a",))], model)


def test_constraints_that_exclude_each_other_are_named(random_run: LoadedModel) -> None:
    config = TokenizerConfig(kind="word", vocabulary_size=8)
    tokenizer = learn_vocabulary([SentencePair("a b c", "d b a")], config)
    constraints = LexicalConstraints(("a", "b"), ("a b", "b a", "c", "d", "⁇"))
    with pytest.raises(DataError, match="no translation meets all of this"):
        search(replace(random_run, tokenizer=tokenizer), [constraints], table_model(8))


def test_the_beam_goes_round_the_banks_the_most_met_first() -> None:
    missing = np.array([2, 2, 2, 2, 0, 1, 0, 0])
    scores = np.array([-1.0, -3, -2, -4, -50, -20, -3, -2])
    sentences, zeros = np.array([0] * 6 + [1] * 2), np.zeros(8)
    candidates = Candidates(sentences, zeros, zeros, scores, zeros, missing)
    chosen = choose(candidates, np.array([4, 1]))
    found = list(zip(missing[chosen].tolist(), scores[chosen].tolist(), strict=True))
    assert found == [(0, -50), (1, -20), (2, -1), (2, -2), (0, -2)]


@pytest.mark.parametrize(("terms", "width"), [(0, 4), (3, 4), (9, 10), (500, WIDEST_BEAM)])
def test_the_beam_has_room_for_all_banks(terms: int, width: int) -> None:
    spelled: Any = SimpleNamespace(term_length=terms)
    assert beam_width(spelled, 4) == width


@pytest.mark.slow
def test_500_terms_are_honoured_and_do_not_lower_bleu(
    test_data: Path, random_run: LoadedModel
) -> None:
    """By an untrained model; NMT_TEST_RUN names a run of multi30k.yaml, whose BLEU is compared."""
    sources, references = (
        list(read_lines(test_data / "multi30k" / f"test_2016_flickr.{language}.xz"))
        for language in ("en", "de")
    )
    path = os.environ.get("NMT_TEST_RUN")
    translator = Translator(load_model(path, torch.device("cpu")) if path else random_run)
    free = [translation.text for translation in translator.translations(sources)]
    chance = random.Random(1)
    asked: list[tuple[int, str]] = []
    for i, (reference, text) in enumerate(zip(references, free, strict=True)):
        words = [w for w in regex.findall(r"\w{3,}", reference) if not count(w, text)]
        if words and len(asked) < 500:
            asked.append((i, chance.choice(words)))
    lines = [Line(i, sources[i], Terminology.of(terms=[term])) for i, term in asked]
    forced = [best.text for best, *_ in translator.pipeline().translate(lines)]
    honoured = sum(count(term, text) > 0 for (_, term), text in zip(asked, forced, strict=True))
    assert honoured == 500
    if path:
        wanted = [references[i] for i, _ in asked]
        before = bleu([free[i] for i, _ in asked], wanted, confidence=False).value
        assert bleu(forced, wanted, confidence=False).value >= before - 1
