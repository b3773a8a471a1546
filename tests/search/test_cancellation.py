"""Every search ends at its next step once nobody waits for it."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch

from nmt.recipe.config import DecodingConfig, Sampling
from nmt.search.beam_search import beam_search
from nmt.search.cancellation import Cancellation, SearchCancelled, check_not_cancelled
from nmt.search.constrained_search import constrained_search
from nmt.search.constrained_sentence import ConstrainedSentence
from nmt.search.lexical_constraints import LexicalConstraints, SpelledConstraints
from nmt.search.sampling import draw, greedy_search
from nmt.search.sentence_search import SentenceSearch
from tests.search.test_lexical_constraints import learnt
from tests.search.test_native_search import native, needs_library, random_run, translated

ENDLESS = DecodingConfig(beam_size=4, max_length_factor=1.0, max_length_offset=100_000)
LONG = DecodingConfig(beam_size=8, min_length=20_000, max_length_offset=20_000)
SOURCE = torch.tensor([[4, 5, 6, 3]])


@pytest.fixture
def cancelled() -> Cancellation:
    cancellation = Cancellation()
    cancellation.cancel()
    return cancellation


def test_nothing_is_cancelled_outside_of_a_block(cancelled: Cancellation) -> None:
    check_not_cancelled()
    with pytest.raises(SearchCancelled), cancelled.of_searches():
        check_not_cancelled()
    check_not_cancelled()


@pytest.mark.parametrize("kind", ["beam", "greedy", "sampling", "constrained"])
def test_every_search_ends_at_its_next_step(cancelled: Cancellation, kind: str) -> None:
    model: Any = random_run().model
    no_decoder: Any = None
    searches: dict[str, Callable[[], object]] = {
        "beam": lambda: beam_search(model, SOURCE, ENDLESS, 1),
        "greedy": lambda: greedy_search(model, SOURCE, ENDLESS),
        "sampling": lambda: draw(model, SOURCE, ENDLESS, Sampling(), [1], 1),
        "constrained": lambda: constrained_search(no_decoder, [constrained_sentence()]),
    }
    with pytest.raises(SearchCancelled), cancelled.of_searches():
        searches[kind]()


def constrained_sentence() -> SentenceSearch:
    spelling = learnt(vocabulary_size=85)
    spelled = SpelledConstraints.spell(LexicalConstraints(prefix="Hund"), spelling)
    return SentenceSearch(ConstrainedSentence(spelled, spelling), 9, ENDLESS, 1)


@needs_library
def test_the_library_ends_at_its_next_step(cancelled: Cancellation) -> None:
    with pytest.raises(SearchCancelled), cancelled.of_searches():
        translated(native(random_run()), SOURCE.tolist(), LONG, 1)


@needs_library
def test_another_thread_ends_the_search_of_the_library() -> None:
    search = native(random_run())
    cancellation = Cancellation()
    threading.Timer(0.1, cancellation.cancel).start()
    start = time.monotonic()
    with pytest.raises(SearchCancelled), cancellation.of_searches():
        translated(search, SOURCE.tolist(), LONG, 1)
    assert time.monotonic() - start < 5
