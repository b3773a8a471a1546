"""The decoders that a search in Python drives, by the C library and by PyTorch, agree."""

import random
from typing import Any

import numpy as np
import pytest
import torch

from nmt.data.tokens.batch import collate_source
from nmt.data.tokens.tokenizer import BOS, EOS
from nmt.errors import NonFiniteScoresError
from nmt.recipe.config import DecodingConfig
from nmt.run.model import LoadedModel
from nmt.search.constrained_search import constrained_search
from nmt.search.constrained_sentence import ConstrainedSentence
from nmt.search.hypothesis import Hypothesis
from nmt.search.lexical_constraints import LexicalConstraints, SpelledConstraints, Spelling
from nmt.search.sentence_search import SentenceSearch
from nmt.search.step_decoder import StepDecoder, StepRows
from nmt.search.torch_steps import TorchSteps
from tests.search.test_native_search import (
    VOCABULARY,
    assert_same_results,
    native,
    needs_library,
    sentences,
)
from tests.search.test_native_search import random_run as with_random_weights

STEPS, WIDTH = 9, 4
WORD_ENDS = np.arange(VOCABULARY) % 7 == 3


def decoders(loaded: LoadedModel, sources: list[list[int]]) -> tuple[StepDecoder, StepDecoder]:
    search = native(loaded)
    in_c = search.start(search.encode(sources), WIDTH, STEPS, WORD_ENDS)
    return in_c, TorchSteps(loaded.model, collate_source(sources), WORD_ENDS)


NONE = np.array([], int)


def first_rows(count: int) -> StepRows:
    return StepRows(np.arange(count), np.zeros(count, int), np.full(count, BOS), NONE, NONE)


def random_rows(chance: random.Random, before: StepRows) -> StepRows:
    """Some continuations of each sentence, in another number and order; some sentences leave."""
    rows = []
    sentences = before.sentences.tolist()
    for n in sorted(set(sentences)):
        count = sentences.count(n)
        for _ in range(chance.randint(n % 3 > 0, WIDTH)):
            rows.append((n, chance.randrange(count), chance.randrange(EOS + 1, VOCABULARY)))
    sentences, parents, tokens = np.array(rows).T
    return StepRows(sentences, parents, tokens, NONE, NONE)


def ask_for_some(chance: random.Random, rows: StepRows) -> StepRows:
    """The rows, with some tokens after random ones that are asked for, in a random order."""
    asked = np.array([chance.randrange(len(rows.tokens)) for _ in range(50)])
    tokens = np.array([chance.randrange(VOCABULARY) for _ in asked])
    return rows._replace(asked_rows=asked, asked_tokens=tokens)


@needs_library
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"norm": "pre", "decoder_layers": 1},
        {"decoder_layers": 3, "activation": "swish", "start_embedding": "zero"},
        {"decoder": "ssru"},
    ],
    ids=["post-norm", "one layer", "three layers", "ssru"],
)
def test_both_compute_the_same_whatever_the_search_chooses(changes: dict[str, Any]) -> None:
    chance, sources = random.Random(7), sentences()
    in_c, in_torch = decoders(with_random_weights(**changes), sources)
    rows = first_rows(len(sources))
    for _ in range(STEPS):
        rows = ask_for_some(chance, rows)
        one, two = (decoder.step(rows, 5, attention=True) for decoder in (in_c, in_torch))
        whole = in_c.log_p(range(len(rows.tokens)))
        np.testing.assert_allclose(whole, in_torch.log_p(range(len(rows.tokens))), atol=2e-4)
        np.testing.assert_allclose(one.best_log_p, two.best_log_p, atol=2e-4)
        found = np.take_along_axis(whole, one.best_tokens, 1)
        np.testing.assert_array_equal(found, one.best_log_p)
        for scores in (one, two):
            np.testing.assert_allclose(scores.end_log_p, whole[:, WORD_ENDS].max(1), atol=2e-4)
            expected = whole[rows.asked_rows, rows.asked_tokens]
            np.testing.assert_allclose(scores.asked_log_p, expected, atol=2e-4)
        np.testing.assert_array_equal(in_c.log_p([2, 0]), whole[[2, 0]])
        np.testing.assert_array_equal(one.attended, two.attended)
        rows = random_rows(chance, rows)


@needs_library
def test_a_row_has_no_more_best_tokens_than_the_vocabulary_entries() -> None:
    for decoder in decoders(with_random_weights(), sentences(2)):
        scores = decoder.step(first_rows(2), 1000, attention=False)
        assert scores.best_tokens.shape == decoder.log_p([0, 1]).shape == (2, VOCABULARY)
        assert sorted(scores.best_tokens[1].tolist()) == list(range(VOCABULARY))


@needs_library
def test_scores_that_are_not_numbers_are_an_error() -> None:
    loaded = with_random_weights()
    with torch.no_grad():
        loaded.model.output_embedding.weight[9] = float("nan")
    for decoder in decoders(loaded, sentences(2)):
        with pytest.raises(NonFiniteScoresError):
            decoder.step(first_rows(1), 3, attention=False)


@needs_library
@pytest.mark.parametrize("beam_size", [1, 4])
def test_a_constrained_search_finds_the_same_with_both(
    random_run: LoadedModel, beam_size: int
) -> None:
    spelling = Spelling(random_run.tokenizer)
    loaded = with_random_weights(vocabulary=random_run.tokenizer.target.size)
    asked = [
        LexicalConstraints(("Hund", "ein")),
        LexicalConstraints((), ("a", "e"), prefix="der "),
        LexicalConstraints(("Hund",), source_spans=(range(1, 3),)),
        LexicalConstraints(),
    ]
    sources = sentences(len(asked))
    pieces = [f"▁{i}" for i in range(9)]
    own = [
        ConstrainedSentence(SpelledConstraints.spell(one, spelling, pieces), spelling)
        for one in asked
    ]
    settings = DecodingConfig(beam_size=beam_size, max_length_offset=8)
    limits = [settings.max_target_length(len(source)) for source in sources]

    def searches() -> list[SentenceSearch]:
        pairs = zip(own, limits, strict=True)
        return [SentenceSearch(one, limit, settings, n_best=beam_size) for one, limit in pairs]

    def found(decoder: StepDecoder) -> list[list[Hypothesis]]:
        return constrained_search(decoder, searches())

    library, ends = native(loaded), spelling.word_ends
    longest = max(one.limit for one in searches())
    in_c = found(library.start(library.encode(sources), 32, longest, ends))
    assert_same_results(in_c, found(TorchSteps(loaded.model, collate_source(sources), ends)))


@needs_library
def test_searches_of_some_sources_share_what_is_encoded() -> None:
    search, sources = native(with_random_weights()), sentences()
    encoded = search.encode(sources)
    some = encoded.select([7, 2, 9]).select([2, 0])
    settings = DecodingConfig(beam_size=2, max_length_offset=8)
    found = search.search(some, settings, 2)
    assert found == search.search(search.encode([sources[9], sources[7]]), settings, 2)
    del encoded
    decoder = search.start(some, 1, 2, WORD_ENDS)
    alone, _ = decoders(with_random_weights(), [sources[7]])
    rows = StepRows(np.array([1]), np.array([0]), np.array([BOS]), NONE, NONE)
    one = decoder.step(rows, 5, attention=False)
    other = alone.step(first_rows(1), 5, attention=False)
    np.testing.assert_array_equal(one.best_log_p, other.best_log_p)
