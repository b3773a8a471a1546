"""The decoders that a search in Python drives, by the C library and by PyTorch, agree."""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from nmt.config import DecodingConfig
from nmt.data.tokens.batch import collate_source
from nmt.data.tokens.tokenizer import BOS, EOS
from nmt.errors import NonFiniteScoresError
from nmt.run_directory import LoadedModel
from nmt.search.constrained_search import constrained_search
from nmt.search.constrained_sentence import ConstrainedSentence
from nmt.search.hypothesis import Hypothesis
from nmt.search.lexical_constraints import LexicalConstraints, SpelledConstraints, Spelling
from nmt.search.sentence_search import SentenceSearch
from nmt.search.step_decoder import StepDecoder, StepRow
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


def decoders(loaded: LoadedModel, sources: list[list[int]]) -> tuple[StepDecoder, StepDecoder]:
    in_c = native(loaded).start(sources, WIDTH, STEPS)
    return in_c, TorchSteps(loaded.model, collate_source(sources))


def random_rows(chance: random.Random, before: Sequence[StepRow]) -> list[StepRow]:
    """Some continuations of each sentence, in another number and order; some sentences leave."""
    rows = []
    for n in sorted({row.sentence for row in before}):
        count = sum(row.sentence == n for row in before)
        for _ in range(chance.randint(n % 3 > 0, WIDTH)):
            rows.append(StepRow(n, chance.randrange(count), chance.randrange(EOS + 1, VOCABULARY)))
    return rows


@needs_library
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"norm": "pre", "decoder_layers": 1},
        {"decoder_layers": 3, "activation": "swish", "start_embedding": "zero"},
    ],
    ids=["post-norm", "one layer", "three layers"],
)
def test_both_compute_the_same_whatever_the_search_chooses(changes: dict[str, Any]) -> None:
    chance, sources = random.Random(7), sentences()
    in_c, in_torch = decoders(with_random_weights(**changes), sources)
    rows = [StepRow(n, 0, BOS) for n in range(len(sources))]
    for _ in range(STEPS):
        one, two = (decoder.step(rows, 5, attention=True) for decoder in (in_c, in_torch))
        np.testing.assert_allclose(one.log_p, two.log_p, atol=2e-4)
        np.testing.assert_allclose(one.best_log_p, two.best_log_p, atol=2e-4)
        found = np.take_along_axis(one.log_p, one.best_tokens, 1)
        np.testing.assert_array_equal(found, one.best_log_p)
        assert one.attended == two.attended
        rows = random_rows(chance, rows)


@needs_library
def test_a_row_has_no_more_best_tokens_than_the_vocabulary_entries() -> None:
    for decoder in decoders(with_random_weights(), sentences(2)):
        scores = decoder.step([StepRow(0, 0, BOS), StepRow(1, 0, BOS)], 1000, attention=False)
        assert scores.best_tokens.shape == scores.log_p.shape == (2, VOCABULARY)
        assert sorted(scores.best_tokens[1].tolist()) == list(range(VOCABULARY))


@needs_library
def test_scores_that_are_not_numbers_are_an_error() -> None:
    loaded = with_random_weights()
    with torch.no_grad():
        loaded.model.output_embedding.weight[9] = float("nan")
    for decoder in decoders(loaded, sentences(2)):
        with pytest.raises(NonFiniteScoresError):
            decoder.step([StepRow(0, 0, BOS)], 3, attention=False)


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

    in_c = found(native(loaded).start(sources, 32, max(one.limit for one in searches())))
    assert_same_results(in_c, found(TorchSteps(loaded.model, collate_source(sources))))
