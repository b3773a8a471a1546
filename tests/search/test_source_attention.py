"""Coverage is Eq. 15 of attention that does not depend on the batch, and ranks translations."""

import math

import pytest
import torch

from nmt.data.tokens.tokenizer import EOS, PAD
from nmt.recipe.config import DecodingConfig
from nmt.run.model import LoadedModel
from nmt.search.hypothesis import Hypothesis
from nmt.search.source_attention import (
    UNSEEN,
    batch_of_pairs,
    coverage,
    rank_by_coverage,
    teacher_forced_attention,
)
from nmt.translation.scoring import force_decode
from nmt.translation.translator import Translator


def test_it_is_equation_15_without_padding_and_the_end_of_the_source() -> None:
    source = torch.tensor([[7, 8, 9, EOS, PAD]])
    target = torch.tensor([[5, EOS, PAD]])
    weights = torch.tensor([[[0.5, 0.2, 0.0, 0.3, 0], [0.7, 0.1, 0.0, 0.2, 0], [1.0] * 5]])
    expected = math.log(1.0) + math.log(0.3) + math.log(UNSEEN)
    assert coverage(weights, source, target).tolist() == pytest.approx([expected])


def test_the_better_covered_translation_comes_first(random_run: LoadedModel) -> None:
    ids = random_run.tokenizer.source.encode(["a small dog"])[0]
    found = [Hypothesis((), -1.0), Hypothesis(tuple(range(10, 30)), -1.5)]
    batch = batch_of_pairs([ids, ids], [h.tokens for h in found])
    _, weights = teacher_forced_attention(random_run.model, batch)
    values = coverage(weights, batch.source, batch.target_output).tolist()
    for batch_tokens in (1, 4096):  # each alone, and both together
        settings = DecodingConfig(coverage_penalty=10, batch_tokens=batch_tokens)
        [ranked] = rank_by_coverage(random_run.model, [ids], [found], settings)
        assert [h.tokens for h in ranked] == [found[1].tokens, ()]
        assert ranked[1].score == pytest.approx(-1.0 + 10 * values[0], rel=1e-4)


def test_attention_is_the_same_however_rows_are_padded(random_run: LoadedModel) -> None:
    sources = random_run.tokenizer.source.encode(["a dog", "a much longer sentence"])
    together, _ = force_decode(random_run.model, batch_of_pairs(sources, [(5, 6), (7, 8, 9, 10)]))
    alone, _ = force_decode(random_run.model, batch_of_pairs(sources[:1], [(5, 6)]))
    assert together[0, :2].tolist() == alone[0].tolist()


def test_without_beta_nothing_changes(random_run: LoadedModel) -> None:
    plain = random_run.config.decoding
    texts = ["a small dog", "", "the cat"]
    none = Translator(random_run, plain.model_copy(update={"coverage_penalty": 0.0}))
    strong = Translator(random_run, plain.model_copy(update={"coverage_penalty": 50.0}))
    assert list(none.translations(texts)) == list(Translator(random_run, plain).translations(texts))
    assert list(strong.translations(texts)) != list(none.translations(texts))
