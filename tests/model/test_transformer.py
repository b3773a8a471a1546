"""Properties of the whole model, whatever its weights."""

import copy
import math
from collections.abc import Iterator
from typing import Any, get_args

import pytest
import torch
from torch import Tensor, nn

from nmt.model.attention import AttentionContext, AttentionRecord, StateRecord
from nmt.model.cache import LENGTHS_MULTIPLE, LayerCache
from nmt.model.masks import padding_mask
from nmt.model.transformer import Transformer
from nmt.recipe.config import ModelConfig, Norm
from tests.stand_in_models import small_transformer

PAD, V = 0, 23
NEWER = {"norm_kind": "rms", "positions": "rotary", "feed_forward": "gated", "activation": "swish"}
B, S, T = 3, 7, 6


@pytest.fixture(
    params=[*({"norm": norm} for norm in get_args(Norm)), {"decoder": "ssru"}, NEWER], ids=str
)
def model(request: pytest.FixtureRequest) -> Iterator[Transformer]:
    """Dropout is configured, so that a test in evaluation mode shows that it is off."""
    with torch.inference_mode():
        yield small_transformer(V, **request.param)


def random_ids(*shape: int, seed: int = 2) -> Tensor:
    return torch.randint(1, V, shape, generator=torch.Generator().manual_seed(seed))


def padded(ids: Tensor, columns: int) -> Tensor:
    return nn.functional.pad(ids, (0, columns), value=PAD)


def test_future_tokens_never_change_past_logits(model: Transformer) -> None:
    source, target = random_ids(B, S), random_ids(B, T)
    logits = model(source, target)
    for t in range(T - 1):
        changed = target.clone()
        changed[:, t + 1 :] = random_ids(B, T - t - 1, seed=3 + t)
        assert torch.equal(model(source, changed)[:, : t + 1], logits[:, : t + 1])
        assert not torch.allclose(model(source, changed)[:, t + 1 :], logits[:, t + 1 :])


def test_neither_padding_nor_other_sentences_of_the_batch_change_logits(
    model: Transformer,
) -> None:
    long, short = random_ids(1, S), random_ids(1, 3, seed=4)
    target = random_ids(2, T)
    batch = model(torch.cat((long, padded(short, S - 3))), padded(target, 4))[:, :T]
    alone = torch.cat((model(long, target[:1]), model(short, target[1:])))
    torch.testing.assert_close(batch, alone, rtol=0, atol=1e-5)


def test_every_source_token_and_its_place_matter(model: Transformer) -> None:
    source, target = random_ids(1, S), random_ids(1, T)
    logits = model(source, target)
    swapped = source[:, [1, 0, *range(2, S)]]
    assert source[0, 0] != source[0, 1]
    assert (model(swapped, target) - logits).abs().max() > 1e-2
    for s in range(S):
        changed = source.clone()
        changed[:, s] = changed[:, s] % (V - 1) + 1
        assert (model(changed, target) - logits).abs().max() > 1e-2


@pytest.mark.parametrize("seed", range(3))
def test_whatever_hypotheses_continue_and_leave_each_step_is_that_of_a_full_pass(
    model: Transformer, seed: int
) -> None:
    """Parents are drawn at random; positions are cleared away several times on the way."""
    random, beam, length = torch.Generator().manual_seed(seed), 3, 40
    source = random_ids(4, S, seed=seed)
    source[2, 3:] = PAD
    cache = model.start(model.encode(source), source)
    history = torch.full((4, 1, 0), PAD)
    for step in range(length):
        latest = torch.randint(1, V, history.shape[:2], generator=random)
        history = torch.cat((history, latest[:, :, None]), dim=2)
        logits = model.step(latest, cache)
        beams = history.shape[1]
        expected = model(source.repeat_interleave(beams, dim=0), history.flatten(0, 1))[:, -1]
        torch.testing.assert_close(logits.flatten(0, 1), expected, rtol=0, atol=1e-5)
        parents = torch.randint(0, beams, (len(source), beam), generator=random)
        history = history.gather(1, parents[:, :, None].expand(-1, -1, step + 1))
        cache.continue_hypotheses(parents)
        if step in (6, 13):
            kept = torch.tensor([0, 2, 3])[: len(source) - 1]
            source, history = source[kept], history[kept]
            cache.keep_sentences(kept)
    assert cache.length == length and cache.used < 0.6 * length * beam
    for layer in cache.layers:
        if isinstance(layer, LayerCache):
            assert layer.key.shape[2] % LENGTHS_MULTIPLE == 0
        else:
            assert layer.state.shape == (
                2,
                beam,
                model.decoder.layers[0].cross_attention.query.in_features,
            )  # it does not grow
        assert layer.cross_key.shape[2] % LENGTHS_MULTIPLE == 0
        assert len(layer.cross_key) == len(cache.source_mask) == 2  # one copy for all hypotheses


def test_record_holds_the_attention_of_every_layer(model: Transformer) -> None:
    record = AttentionRecord()
    source, target = random_ids(B, S), random_ids(B, T)
    assert torch.equal(model(source, target, record), model(source, target))
    assert [w.shape for w in record.encoder] == [(B, 4, S, S)] * 2
    in_decoder = 0 if model.decoder.layers[0].recurrence else 3
    assert [w.shape for w in record.decoder] == [(B, 4, T, T)] * in_decoder
    assert [w.shape for w in record.cross] == [(B, 4, T, S)] * 3
    for weights in (*record.encoder, *record.decoder, *record.cross):
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))
    assert all((weights.triu(1) == 0).all() for weights in record.decoder)


def test_record_holds_the_output_of_every_layer(model: Transformer) -> None:
    states, source, target = StateRecord(), random_ids(B, S), random_ids(B, T)
    logits = model(source, target, states=states)
    assert torch.equal(logits, model(source, target))
    assert [x.shape for x in states.encoder] == [(B, S, 16)] * 3
    assert [x.shape for x in states.decoder] == [(B, T, 16)] * 4
    rotation = model.positions.rotation(S)
    context = AttentionContext(padding_mask(source, PAD), rotation=rotation)
    assert torch.equal(model.encoder.layers[1](states.encoder[1], context), states.encoder[2])
    memory = model.encoder.norm(states.encoder[-1])
    assert torch.equal(memory, model.encode(source))
    assert torch.equal(
        model.output_embedding.logits(model.decoder.norm(states.decoder[-1])), logits
    )


def test_gradients_of_what_is_recorded_are_those_of_the_pass() -> None:
    model, states, attention = small_transformer(V), StateRecord(), AttentionRecord()
    loss = model(random_ids(B, S), random_ids(B, T), attention, states).square().sum()
    recorded = [*states.decoder, *states.encoder]
    recorded += [*attention.encoder, *attention.decoder, *attention.cross]
    gradients = torch.autograd.grad(loss, recorded)
    assert all(gradient.abs().sum() > 0 for gradient in gradients)
    last = states.decoder[-1].detach().requires_grad_()
    after = model.output_embedding.logits(model.decoder.norm(last)).square().sum()
    torch.testing.assert_close(torch.autograd.grad(after, last)[0], gradients[3])


def test_without_source_eos_the_last_token_of_a_source_is_not_read() -> None:
    model = small_transformer(V, source_eos=False)
    source, target = random_ids(B, S), random_ids(B, T)
    source[1, S - 2 :] = PAD  # the last token of this one is that before
    other = source.clone()
    other[0, S - 1], other[1, S - 3] = 7, 9
    assert not torch.equal(source, other)
    torch.testing.assert_close(model(source, target), model(other, target))
    cut = model(source[:1, : S - 1], target[:1])
    assert not torch.allclose(cut, model(source[:1], target[:1]))
    reads_all = small_transformer(V)
    shorter = reads_all(source[:1, : S - 1], target[:1])
    torch.testing.assert_close(model(source[:1], target[:1]), shorter)
    single = random_ids(B, 1)
    torch.testing.assert_close(model(single, target), reads_all(single, target))


# -- parameters -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("embeddings", "matrices"), [("shared", 1), ("target", 2), ("separate", 3)]
)
def test_tied_weights_are_one_tensor_and_named_once(embeddings: str, matrices: int) -> None:
    model = small_transformer(V, embeddings=embeddings)
    sides = (model.source_embedding, model.target_embedding, model.output_embedding)
    assert len({side.weight.data_ptr() for side in sides}) == matrices
    assert (model.target_embedding is model.output_embedding) == (matrices < 3)
    assert (model.target_embedding is model.source_embedding) == (matrices == 1)
    names = [name for name, _ in model.named_parameters() if "embedding" in name]
    assert len(names) == matrices


def test_every_parameter_has_a_gradient() -> None:
    model = small_transformer(V, norm="pre", embeddings="separate")
    model(random_ids(B, S), random_ids(B, T)).square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())


def layer_parameters(d: int, d_ff: int, layers: int) -> int:
    """The paper's layers with their biases: attention 4 d^2, feed-forward 2 d d_ff, norms 2 d."""
    attention = 4 * (d * d + d)
    feed_forward = 2 * d * d_ff + d_ff + d
    norm = 2 * d
    encoder = attention + feed_forward + 2 * norm
    decoder = 2 * attention + feed_forward + 3 * norm
    return layers * (encoder + decoder)


@pytest.mark.parametrize(
    ("d_model", "heads", "d_ff", "millions", "tolerance"),
    [(512, 8, 2048, 65, 0.03), (1024, 16, 4096, 213, 0.015)],
    ids=["base", "big"],
)
def test_parameter_count_is_that_of_the_paper(
    d_model: int, heads: int, d_ff: int, millions: int, tolerance: float
) -> None:
    config = ModelConfig(d_model=d_model, heads=heads, d_ff=d_ff)
    vocabulary = 37_000
    with torch.device("meta"):
        model = Transformer(config, vocabulary, vocabulary)
    count = sum(p.numel() for p in model.parameters())
    assert count == layer_parameters(d_model, d_ff, layers=6) + vocabulary * d_model
    assert abs(count / (millions * 1e6) - 1) < tolerance


@pytest.mark.parametrize("gain", [1.0, 0.5])
def test_matrices_start_glorot_uniform_and_biases_at_zero(gain: float) -> None:
    torch.manual_seed(1)
    config = ModelConfig(
        d_model=64, d_ff=128, encoder_layers=2, decoder_layers=2, initialization_gain=gain
    )
    matrices = [m for m in Transformer(config, V, V).modules() if isinstance(m, nn.Linear)]
    assert len(matrices) == 2 * (4 + 2) + 2 * (8 + 2)
    for linear in matrices:
        bound = gain * math.sqrt(6 / (linear.in_features + linear.out_features))
        assert linear.weight.abs().max() <= bound
        # uniform on [-a, a] has the standard deviation a / sqrt(3)
        assert abs(linear.weight.std().item() / (bound / math.sqrt(3)) - 1) < 0.05
        assert (linear.bias == 0).all()


@pytest.mark.parametrize("name", ["dropout", "attention_dropout", "activation_dropout"])
def test_each_dropout_of_the_model_acts_only_in_training(name: str) -> None:
    model = small_transformer(9, **{"dropout": 0.0, name: 0.5}).train()
    ids = torch.randint(1, 9, (2, 5))
    assert not torch.equal(model(ids, ids), model(ids, ids))
    model.eval()
    assert torch.equal(model(ids, ids), model(ids, ids))


@pytest.mark.parametrize("change", [{}, *({name: value} for name, value in NEWER.items())], ids=str)
def test_gradients_are_those_of_float64(change: dict[str, Any]) -> None:
    model, source, target = small_transformer(V, **change), random_ids(B, S), random_ids(B, T)
    exact = copy.deepcopy(model).double()
    for each in (model, exact):
        each(source, target).log_softmax(2).square().mean().backward()
    for (name, weight), other in zip(model.named_parameters(), exact.parameters(), strict=True):
        assert weight.grad is not None and other.grad is not None, name
        torch.testing.assert_close(weight.grad.double(), other.grad, rtol=1e-3, atol=1e-6)
