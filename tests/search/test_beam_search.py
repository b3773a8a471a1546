import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.config import DecodingConfig, ModelConfig
from nmt.data.tokens.tokenizer import BOS, EOS, PAD
from nmt.errors import CheckpointError
from nmt.model.transformer import Transformer
from nmt.search import beam_search as beam_search_module
from nmt.search.beam_search import beam_search, length_penalty
from nmt.search.decoding import EncodedSource
from nmt.search.greedy import greedy_search, most_probable, single_hypotheses
from nmt.search.hypothesis import Hypothesis
from tests.search.hypotheses import assert_same

VOCABULARY = 12


@pytest.fixture(scope="module")
def transformer() -> Transformer:
    """Random weights, large enough that every token, EOS included, has its turn."""
    torch.manual_seed(3)
    config = ModelConfig(
        d_model=16, heads=2, d_ff=32, encoder_layers=2, decoder_layers=2, embeddings="separate"
    )
    model = Transformer(config, VOCABULARY, VOCABULARY, PAD).eval()
    torch.nn.init.normal_(model.output_embedding.weight, std=1.0)
    return model


@pytest.fixture(scope="module")
def source() -> Tensor:
    """Twelve sentences of 2 to 9 tokens, EOS included, padded."""
    generator = torch.Generator().manual_seed(5)
    ids = torch.randint(EOS + 1, VOCABULARY, (12, 9), generator=generator)
    for i, row in enumerate(ids):
        end = 1 + i % 8
        row[end] = EOS
        row[end + 1 :] = PAD
    return ids


def without_padding(row: Tensor) -> Tensor:
    return row[row != PAD][None]


def test_length_penalty_is_the_papers_formula() -> None:
    for length, alpha in itertools.product((1, 2, 10, 300), (0.0, 0.6, 1.0)):
        expected = math.pow(5 + length, alpha) / math.pow(5 + 1, alpha)  # Wu et al., Eq. 14
        settings = DecodingConfig(length_penalty=alpha)
        assert length_penalty(float(length), settings) == pytest.approx(expected)
        penalty = length_penalty(torch.tensor([length]), settings)
        assert penalty.item() == pytest.approx(expected, rel=1e-6)


def test_other_normalisations_are_the_length_and_nothing() -> None:
    average = DecodingConfig(length_normalization="average", length_penalty=0.6)
    assert length_penalty(7.0, average) == 7.0
    assert length_penalty(torch.tensor([7, 9]), average).tolist() == [7, 9]
    nothing = DecodingConfig(length_normalization="none", length_penalty=0.6)
    assert length_penalty(7.0, nothing) == 1.0


def exhaustive_search(
    model: Any, source: Tensor, vocabulary_size: int, longest: int, settings: DecodingConfig
) -> list[Hypothesis]:
    """All sequences up to the length limit, best first."""
    allowed = [token for token in range(vocabulary_size) if token not in (PAD, BOS)]
    found, live = [], [((), 0.0)]
    for length in range(1, longest + 1):
        penalty = length_penalty(float(length), settings)
        extended = []
        for tokens, log_p in live:
            cache = model.start(model.encode(source), source)
            for token in (BOS, *tokens):
                logits = model.step(torch.tensor([[token]]), cache)[0, 0]
            log_probabilities = logits.log_softmax(0).tolist()
            extended += [((*tokens, token), log_p + log_probabilities[token]) for token in allowed]
        for tokens, log_p in extended:
            if tokens[-1] == EOS:
                found.append(Hypothesis(tokens[:-1], log_p / penalty))
            elif length == longest:
                found.append(Hypothesis(tokens, log_p / penalty))
        live = [(tokens, log_p) for tokens, log_p in extended if tokens[-1] != EOS]
    return sorted(found, key=lambda hypothesis: -hypothesis.score)


@pytest.mark.parametrize(
    ("alpha", "kind"),
    [(0.0, "gnmt"), (0.6, "gnmt"), (2.0, "gnmt"), (0.6, "average"), (0.6, "none")],
)
def test_a_wide_beam_equals_exhaustive_search(
    table_model: Callable[..., Any], alpha: float, kind: Any
) -> None:
    source = torch.tensor([[4, EOS], [5, PAD], [7, EOS], [8, PAD]])
    settings = DecodingConfig(
        beam_size=400, length_penalty=alpha, length_normalization=kind, max_length_offset=2
    )
    for seed in range(3):
        model = table_model(6, seed)
        found = beam_search(model, source, settings, BOS, EOS, n_best=12)
        for row, n_best in zip(source, found, strict=True):
            alone = without_padding(row)
            longest = alone.shape[1] + 2
            expected = exhaustive_search(model, alone, 6, longest, settings)[:12]
            assert_same(n_best, expected)


@pytest.mark.parametrize("alpha", [0.0, 0.6])
def test_beam_one_is_greedy_search(
    transformer: Transformer, table_model: Callable[..., Any], source: Tensor, alpha: float
) -> None:
    settings = DecodingConfig(beam_size=1, length_penalty=alpha, max_length_offset=6)
    for model in (transformer, table_model(VOCABULARY)):
        beam = [n_best[0] for n_best in beam_search(model, source, settings, BOS, EOS)]
        assert_same(beam, greedy_search(model, source, settings, BOS, EOS), 1e-5)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_a_batch_translates_as_its_sentences_do_alone(
    transformer: Transformer, source: Tensor, beam_size: int
) -> None:
    settings = DecodingConfig(beam_size=beam_size, max_length_offset=8)
    together = beam_search(transformer, source, settings, BOS, EOS, n_best=beam_size)
    reached_eos = 0
    for row, found in zip(source, together, strict=True):
        alone = without_padding(row)
        assert_same(found, beam_search(transformer, alone, settings, BOS, EOS, beam_size)[0])
        reached_eos += len(found[0].tokens) < alone.shape[1] + 8
    assert reached_eos > 0  # the sentences leave the batch at different steps


@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
def test_stopping_early_changes_no_result(
    table_model: Callable[..., Any],
    source: Tensor,
    monkeypatch: pytest.MonkeyPatch,
    alpha: float,
) -> None:
    settings = DecodingConfig(beam_size=3, length_penalty=alpha, max_length_offset=10)
    models = [table_model(VOCABULARY, seed) for seed in range(10)]
    early = [beam_search(m, source, settings, BOS, EOS, n_best=2) for m in models]
    monkeypatch.setattr(
        beam_search_module._Beam,
        "done",
        lambda self, alpha: self.scores.amax(1) == float("-inf"),  # nothing is live any more
    )
    assert early == [beam_search(m, source, settings, BOS, EOS, n_best=2) for m in models]


def test_early_stopping_ends_at_as_many_hypotheses_as_the_beam_is_wide(
    table_model: Callable[..., Any], source: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = DecodingConfig(beam_size=3, length_normalization="average", max_length_offset=30)
    early = exact.model_copy(update={"early_stopping": True})
    counts: list[int] = []
    extend = beam_search_module._Beam.extend

    def counted(self: Any, *arguments: Any) -> Tensor:
        # one that is done may wait for others before it leaves, but searches no further
        assert (self.scores[self.ended_count >= 3] == float("-inf")).all() or not counting
        counts.append(len(self.sentences))
        parents: Tensor = extend(self, *arguments)
        return parents

    monkeypatch.setattr(beam_search_module._Beam, "extend", counted)
    models = [table_model(VOCABULARY, seed) for seed in range(10)]
    counting = False
    slow = [beam_search(model, source, exact, BOS, EOS, n_best=3) for model in models]
    work, counting = sum(counts), True
    counts.clear()
    fast = [beam_search(model, source, early, BOS, EOS, n_best=3) for model in models]
    assert sum(counts) < 0.8 * work
    pairs = [pair for all_of in zip(slow, fast, strict=True) for pair in zip(*all_of, strict=True)]
    assert all(len(found) == 3 and found[0].score <= best[0].score for best, found in pairs)
    assert 0 < sum(best[0] == found[0] for best, found in pairs) < len(pairs)


def test_hypotheses_come_best_first_and_differ(transformer: Transformer, source: Tensor) -> None:
    settings = DecodingConfig(beam_size=5, max_length_offset=4)
    for n_best in beam_search(transformer, source, settings, BOS, EOS, n_best=5):
        scores = [hypothesis.score for hypothesis in n_best]
        assert scores == sorted(scores, reverse=True)
        assert len({hypothesis.tokens for hypothesis in n_best}) == len(n_best) > 1


def test_the_score_is_the_penalised_log_probability(
    transformer: Transformer, source: Tensor
) -> None:
    settings = DecodingConfig(beam_size=4, length_penalty=0.6, max_length_offset=8)
    found = beam_search(transformer, source, settings, BOS, EOS)
    for row, (best,) in zip(source, found, strict=True):
        alone = without_padding(row)
        is_cut = len(best.tokens) == alone.shape[1] + 8
        target = [*best.tokens] if is_cut else [*best.tokens, EOS]
        logits = transformer(alone, torch.tensor([[BOS, *target[:-1]]]))[0]
        log_p = logits.log_softmax(1)[range(len(target)), target].sum().item()
        assert best.score == pytest.approx(log_p / ((5 + len(target)) / 6) ** 0.6, abs=1e-4)


def test_padding_and_begin_are_never_generated(
    table_model: Callable[..., Any], source: Tensor
) -> None:
    model = table_model(VOCABULARY)  # its PAD and BOS have the highest logits nearly always
    settings = DecodingConfig(max_length_offset=10)
    found = beam_search(model, source, settings, BOS, EOS, n_best=4)
    found += [[h] for h in greedy_search(model, source, settings, BOS, EOS)]
    assert not {PAD, BOS, EOS} & {t for n_best in found for h in n_best for t in h.tokens}


@pytest.mark.parametrize("beam_size", [1, 3])
def test_each_sentence_ends_at_its_own_limit(
    table_model: Callable[..., Any], source: Tensor, beam_size: int
) -> None:
    model = table_model(VOCABULARY)
    model.table[:, EOS] = -50.0  # never ends by itself
    settings = DecodingConfig(beam_size=beam_size, max_length_offset=3)
    found = beam_search(model, source, settings, BOS, EOS)
    limits = (source != PAD).sum(1) + 3
    assert [len(n_best[0].tokens) for n_best in found] == limits.tolist()
    greedy = greedy_search(model, source, settings, BOS, EOS)
    assert [len(hypothesis.tokens) for hypothesis in greedy] == limits.tolist()


def test_a_beam_wider_than_the_vocabulary_is_allowed(table_model: Callable[..., Any]) -> None:
    settings = DecodingConfig(beam_size=50, max_length_offset=1)
    (found,) = beam_search(table_model(5), torch.tensor([[4]]), settings, BOS, EOS, n_best=50)
    # UNK and one word in two places, EOS after none or one of them, or cut after two
    assert len(found) == 1 + 2 + 4


def test_no_sentences_give_no_translations(transformer: Transformer, source: Tensor) -> None:
    nothing, settings = source[:0], DecodingConfig()
    assert beam_search(transformer, nothing, settings, BOS, EOS) == []
    assert greedy_search(transformer, nothing, settings, BOS, EOS) == []


def test_scores_that_are_not_numbers_are_refused(
    table_model: Callable[..., Any], source: Tensor
) -> None:
    model = table_model(VOCABULARY)
    model.table[:] = float("nan")
    with pytest.raises(CheckpointError, match="not numbers.*earlier checkpoint"):
        beam_search(model, source, DecodingConfig(), BOS, EOS)
    with pytest.raises(CheckpointError, match="not numbers.*earlier checkpoint"):
        greedy_search(model, source, DecodingConfig(), BOS, EOS)


def test_a_model_can_be_trained_after_a_search() -> None:
    config = ModelConfig(d_model=8, heads=2, d_ff=8, encoder_layers=1, decoder_layers=1)
    model = Transformer(config, VOCABULARY, VOCABULARY, PAD).eval()
    source = torch.full((1, 520), EOS + 1)  # the positional table grows during the search
    settings = DecodingConfig(max_length_offset=1)
    with torch.inference_mode():
        encoded = EncodedSource(source, model.encode(source), torch.tensor([3]))
    single_hypotheses(model, encoded, settings, BOS, EOS, most_probable)
    beam_search(model, source[:, :3], settings, BOS, EOS)
    model.train()
    model(source, source[:, :4]).sum().backward()
    assert model.target_embedding.weight.grad is not None
