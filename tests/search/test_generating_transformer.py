"""`from nmt import Transformer`: the paper's model by keywords, and what `generate` writes."""

import pickle
import re
from collections.abc import Callable
from typing import Any, get_args, get_type_hints

import pytest
import torch
from torch import Tensor

import nmt
from nmt import AttentionRecord, Transformer, transformer_base, transformer_big
from nmt.data.tokens.tokenizer import BOS, EOS, PAD
from nmt.errors import ConfigError, DataError
from nmt.model.transformer import Transformer as PaperTransformer
from nmt.recipe.config import DecodingConfig, ModelConfig
from nmt.run.checkpoint import weights_digest
from nmt.search.beam_search import beam_search
from nmt.search.generating_transformer import Sizes

V = 23
B, S, T = 4, 6, 5
SMALL: Sizes = {"d_model": 16, "heads": 4, "d_ff": 24, "encoder_layers": 2, "decoder_layers": 1}


def make(seed: int = 1, **others: Any) -> Transformer:
    """A model in training mode whose untrained distributions are not sharp."""
    torch.manual_seed(seed)
    sizes: dict[str, Any] = {**SMALL, **others}
    model = Transformer(V, **sizes)
    with torch.no_grad():
        model.output_embedding.weight.mul_(0.6)
    return model


@pytest.fixture
def model() -> Transformer:
    return make(dropout=0.5)


@pytest.fixture
def source() -> Tensor:
    ids = torch.randint(4, V, (B, S), generator=torch.Generator().manual_seed(2))
    ids[1, 3:] = PAD
    return ids


def sizes_of(model: Transformer) -> dict[str, float]:
    network: Any = model
    layer = network.encoder.layers[0]
    return {
        "d_model": network.source_embedding.weight.shape[1],
        "heads": layer.self_attention.heads,
        "d_ff": layer.feed_forward.inner.out_features,
        "layers": len(network.encoder.layers) + len(network.decoder.layers),
        "dropout": network.dropout.p,
    }


def test_base_and_big_are_table_3_and_keywords_go_over_them() -> None:
    with torch.device("meta"):  # sizes without the memory
        base, big = transformer_base(37_000), transformer_big(37_000)
        other = transformer_big(50, dropout=0.1, encoder_layers=1)
        narrow = transformer_base(50, d_model=64)
    table = {"d_model": 512, "heads": 8, "d_ff": 2048, "layers": 12, "dropout": 0.1}
    of_big = table | {"d_model": 1024, "heads": 16, "d_ff": 4096, "dropout": 0.3}
    assert sizes_of(base) == table and sizes_of(big) == of_big
    parameters = [sum(p.numel() for p in m.parameters()) for m in (base, big)]
    assert [round(n / 1e6, 1) for n in parameters] == [63.1, 214.2]
    assert sizes_of(other) == of_big | {"layers": 7, "dropout": 0.1}
    assert sizes_of(narrow)["d_model"] == 64


def test_the_keywords_are_the_settings_of_a_recipe() -> None:
    """Names and types of `Sizes` are those of `ModelConfig`, of which they are a typed list."""
    for name, field in ModelConfig.model_fields.items():
        hint = get_type_hints(Sizes)[name]
        assert hint is field.annotation or get_args(hint) == get_args(field.annotation)
    assert list(get_type_hints(Sizes)) == list(ModelConfig.model_fields)


def test_it_is_the_model_of_the_paper_in_one_pass_and_step_by_step(source: Tensor) -> None:
    model = make().eval()
    same = PaperTransformer(ModelConfig(**SMALL), V, V, PAD).eval()
    same.load_state_dict(model.state_dict())
    target = torch.cat((torch.full((B, 1), BOS), source[:, : T - 1]), dim=1)
    record, expected = AttentionRecord(), AttentionRecord()
    logits, memory = model(source, target, attention=record), model.encode(source)
    assert logits.shape == (B, T, V) and memory.shape == (B, S, 16)
    assert torch.equal(logits, same(source, target, expected))
    assert all(map(torch.equal, record.cross, expected.cross)) and len(record.encoder) == 2
    assert torch.equal(memory, same.encode(source))
    assert torch.equal(model.decode(target, memory, source), logits)
    cache = model.start(memory, source)
    steps = [model.step(target[:, t : t + 1], cache) for t in range(T)]
    torch.testing.assert_close(torch.cat(steps, dim=1), logits)


def test_it_is_that_class_with_its_weights_under_the_same_names() -> None:
    model, same = make(), PaperTransformer(ModelConfig(**SMALL), V, V, PAD)
    assert isinstance(model, PaperTransformer)
    assert list(model.state_dict()) == list(same.state_dict())
    copy = pickle.loads(pickle.dumps(model))
    assert weights_digest(copy) == weights_digest(model)
    old = {f"network.{name}": weight for name, weight in model.state_dict().items()}
    other = make(seed=2)
    assert weights_digest(other) != weights_digest(model)
    other.load_state_dict(old)
    assert weights_digest(other) == weights_digest(model)
    assert all(name.startswith("network.") for name in old)


def test_one_vocabulary_shares_all_embeddings_and_two_share_those_of_the_target() -> None:
    one = make()
    assert one.source_embedding is one.target_embedding is one.output_embedding
    two = Transformer(V, V, **SMALL)
    assert two.source_embedding is not two.target_embedding is two.output_embedding
    shared = Transformer(V, V, embeddings="shared", d_model=64, encoder_layers=1)
    assert shared.source_embedding is shared.target_embedding


@pytest.mark.parametrize("temperature", [0.0, 0.7, 3.0])
def test_generate_depends_on_its_seed_alone(source: Tensor, temperature: float) -> None:
    model = make(dropout=0.5)
    first = model.generate(source, 12, temperature)
    torch.manual_seed(99)
    assert torch.equal(model.generate(source, 12, temperature), first)
    others = [model.generate(source, 12, temperature, seed=seed) for seed in (2, 3)]
    assert all(torch.equal(other, first) for other in others) is (temperature == 0)


def test_temperature_zero_is_greedy_search_and_the_least_temperatures_are_close(
    source: Tensor,
) -> None:
    model = make().eval()
    settings = DecodingConfig(beam_size=1, max_length_offset=4)
    best = beam_search(model, source[:1], settings)[0][0]
    greedy = model.generate(source, S + 4)
    assert [token for token in greedy[0].tolist() if token != PAD] == list(best.tokens)
    for asked in ({"temperature": 1e-6}, {"top_k": 1}, {"top_p": 1e-9}):
        settings_of: dict[str, Any] = {"temperature": 1.0, **asked}
        assert torch.equal(model.generate(source, S + 4, **settings_of), greedy)


def test_a_translation_ends_at_eos_or_max_length_and_padding_follows(source: Tensor) -> None:
    ends = make().generate(source, 40, temperature=1.0)
    assert ends.shape[0] == B and ends.shape[1] <= 40
    assert not ((ends == EOS) | (ends == BOS)).any()
    after = (ends == PAD).long()
    assert (after.diff(dim=1) >= 0).all()  # nothing is written after the end
    assert (after.sum(1) > 0).any()  # and at least one of them has ended
    for length in (1, 3):
        assert make().generate(source, length, temperature=0.5).shape[1] <= length


def test_a_translation_may_be_empty_and_no_sentences_give_none() -> None:
    model = make()
    norm: Any = model.decoder.layers[0].feed_forward_sublayer.norm
    torch.nn.init.zeros_(norm.weight)
    with torch.no_grad():  # the decoder's output is then its bias: EOS is always the best
        norm.bias.copy_(1000 * model.output_embedding.weight[EOS])
    assert model.generate(torch.tensor([[4], [5]])).shape == (2, 0)
    assert model.generate(torch.empty(0, 3, dtype=torch.int64)).shape == (0, 0)


@pytest.mark.parametrize("training", [True, False])
def test_generate_leaves_the_mode_of_each_module_as_it_was(source: Tensor, training: bool) -> None:
    model = make().train(training)
    model.encoder.eval()  # frozen
    before = [module.training for module in model.modules()]
    model.generate(source, 2)
    with pytest.raises(DataError):
        model.generate(source[0])
    assert [module.training for module in model.modules()] == before


def test_what_is_generated_can_be_learnt_from(model: Transformer, source: Tensor) -> None:
    ids = model.generate(source, 5, temperature=1.0)
    model(source, ids).sum().backward()
    assert model.source_embedding.weight.grad is not None


def test_special_ids_may_be_others(source: Tensor) -> None:
    model = Transformer(V, padding=20, bos=21, eos=22, **SMALL)
    ids = model.generate(source.clamp(1, 19), 6, temperature=1.0)
    assert not ((ids == 21) | (ids == 22)).any()


@pytest.mark.parametrize(
    ("arguments", "keywords", "message"),
    [
        ((V,), {"num_heads": 2}, "unknown key 'num_heads'; did you mean 'heads'"),
        ((V,), {"heads": 3}, "d_model must be even and a multiple of heads, got d_model: 512"),
        ((V,), {"dropout": 1.5}, "'dropout': input should be less than 1, got 1.5"),
        ((0,), {}, "source_vocabulary_size is 0, expected a whole number above 0"),
        ((V, 2.5), {}, "target_vocabulary_size is 2.5, expected a whole number above 0"),
        ((V, 30), {"embeddings": "shared"}, "got 23 source and 30 target entries; write"),
        ((3,), {}, "eos is 3, which is no entry of a vocabulary of 3"),
        ((V, 40), {"padding": 30}, "padding is 30, which is no entry of a vocabulary of 23"),
        ((V,), {"bos": EOS}, "padding, bos and eos must differ, got 0, 3 and 3"),
    ],
)
def test_impossible_models_are_refused(
    arguments: tuple[Any, ...], keywords: dict[str, Any], message: str
) -> None:
    for maker in (Transformer, transformer_base):
        if maker is transformer_base and {"bos", "padding"} & keywords.keys():
            continue
        with pytest.raises(ConfigError, match=f"^Transformer: .*{message}"):
            maker(*arguments, **keywords)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_length": 0}, "max_length is 0, expected a whole number from 1 to 1,000,000"),
        ({"max_length": 2**63}, "max_length is 9223372036854775808, expected a whole number"),
        ({"max_length": 2.5}, "max_length is 2.5, expected a whole number from 1 to 1,000,000"),
        ({"temperature": -0.1}, "'temperature': input should be greater than or equal to"),
        ({"temperature": float("nan")}, "'temperature': input should be a finite number"),
        ({"temperature": 1e7}, "'temperature': input should be less than or equal to 1000000"),
        ({"temperature": "0.7"}, "'temperature': input should be a valid number, got '0.7'"),
        ({"temperature": 1.0, "top_k": 0}, "'top_k': input should be greater than or equal to 1"),
        ({"temperature": 1.0, "top_p": 1.1}, "'top_p': input should be less than or equal to 1"),
        ({"temperature": 1.0, "top_p": 0}, "'top_p': input should be greater than 0, got 0"),
        ({"seed": -1}, "'seed': input should be greater than or equal to 0, got -1"),
        ({"top_k": 3}, "temperature is 0, expected above 0 with top_k or top_p"),
    ],
)
def test_impossible_settings_of_generate_are_refused(
    model: Transformer, source: Tensor, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match="^generate: " + re.escape(message)):
        model.generate(source, **settings)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda ids: ids[0], r"has the shape \(6,\) .*a single sentence is source\[None\]"),
        (lambda ids: ids.float(), "has .* the type torch.float32, expected ids"),
        (lambda ids: ids.tolist(), "is of type list, expected a tensor of ids"),
        (lambda ids: ids + 40, r"has the id \d+, expected 0 to 22; encode it with"),
        (lambda ids: -ids - 1, r"has the id -\d+, expected 0 to 22"),
        (lambda ids: ids * 0, "has a row without a token"),
        (lambda ids: ids[:, :0], "has a row without a token"),
        (lambda ids: ids.to("meta"), r"is on meta and the model on cpu; give source.to\('cpu'\)"),
    ],
)
def test_a_source_that_is_none_is_refused(
    model: Transformer, source: Tensor, change: Callable[[Tensor], Any], message: str
) -> None:
    with pytest.raises(DataError, match=f"^generate: source {message}"):
        model.generate(change(source))


def test_a_name_that_the_package_has_not_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'nmt' has no attribute 'Transfomer'"):
        nmt.Transfomer  # noqa: B018
