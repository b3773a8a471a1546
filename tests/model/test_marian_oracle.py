"""An independent oracle: Hugging Face's MarianMTModel with our weights is the same function.

Marian is the post-norm Transformer with one embedding matrix. Its position table keeps all sines
before all cosines where ours interleaves them as the paper does, so the width D is permuted once:
whatever reads or writes the residual stream is permuted with it.
"""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from nmt.config import DecodingConfig, ModelConfig
from nmt.decoding.greedy import greedy_search
from nmt.model.transformer import Transformer

PAD, BOS, EOS = 0, 2, 3
VOCABULARY, WIDTH, LENGTH = 19, 24, 20
CONFIG = ModelConfig(
    d_model=WIDTH,
    heads=4,
    d_ff=32,
    encoder_layers=2,
    decoder_layers=3,
    embeddings="shared",
    # Marian's layer norm has this epsilon and no setting for it
    layer_norm_epsilon=1e-5,
)
PERMUTATION = torch.cat((torch.arange(0, WIDTH, 2), torch.arange(1, WIDTH, 2)))


def linear(ours: torch.nn.Linear, name: str, reads: bool, writes: bool) -> dict[str, Tensor]:
    """One linear map for Marian; `reads` and `writes` say which side is the residual stream."""
    weight, bias = ours.weight.data, ours.bias.data
    weight = weight[:, PERMUTATION] if reads else weight
    weight, bias = (weight[PERMUTATION], bias[PERMUTATION]) if writes else (weight, bias)
    return {f"{name}.weight": weight, f"{name}.bias": bias}


def attention(ours: torch.nn.Module, name: str) -> dict[str, Tensor]:
    return {
        **linear(ours.query, f"{name}.q_proj", reads=True, writes=False),
        **linear(ours.key, f"{name}.k_proj", reads=True, writes=False),
        **linear(ours.value, f"{name}.v_proj", reads=True, writes=False),
        **linear(ours.output, f"{name}.out_proj", reads=False, writes=True),
    }


def norm(ours: torch.nn.LayerNorm, name: str) -> dict[str, Tensor]:
    return {
        f"{name}.weight": ours.weight.data[PERMUTATION],
        f"{name}.bias": ours.bias.data[PERMUTATION],
    }


def layer(ours: torch.nn.Module, name: str) -> dict[str, Tensor]:
    """An encoder or decoder layer in Marian's names."""
    state = {
        **attention(ours.self_attention, f"{name}.self_attn"),
        **norm(ours.self_attention_sublayer.norm, f"{name}.self_attn_layer_norm"),
        **linear(ours.feed_forward.inner, f"{name}.fc1", reads=True, writes=False),
        **linear(ours.feed_forward.outer, f"{name}.fc2", reads=False, writes=True),
        **norm(ours.feed_forward_sublayer.norm, f"{name}.final_layer_norm"),
    }
    if hasattr(ours, "cross_attention"):
        state |= attention(ours.cross_attention, f"{name}.encoder_attn")
        state |= norm(ours.cross_attention_sublayer.norm, f"{name}.encoder_attn_layer_norm")
    return state


def marian_state(model: Transformer) -> dict[str, Tensor]:
    """All of our weights in Marian's names and order of the width."""
    state = {"model.shared.weight": model.target_embedding.weight.data[:, PERMUTATION]}
    for name, stack in (("encoder", model.encoder), ("decoder", model.decoder)):
        for number, ours in enumerate(stack.layers):
            state |= layer(ours, f"model.{name}.layers.{number}")
    return state


@pytest.fixture(scope="module")
def ours() -> Transformer:
    """A model that learns to count on from a number: varied output, and no weight is neutral."""
    torch.manual_seed(5)
    model = Transformer(CONFIG, VOCABULARY, VOCABULARY, padding=PAD)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(100):
        source = random_source(rows=16)
        count = 4 + (source[:, :1] + torch.arange(8)) % (VOCABULARY - 4)
        target_input = F.pad(count, (1, 0), value=BOS)
        target_output = F.pad(count, (0, 1), value=EOS)
        logits = model(source, target_input)
        loss = F.cross_entropy(logits.flatten(0, 1), target_output.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


def random_source(rows: int) -> Tensor:
    """Sentences of 1 to 11 tokens, ended by EOS and padded: (rows, 11)."""
    ids = torch.randint(4, VOCABULARY, (rows, 11))
    end = torch.randint(0, 11, (rows, 1))
    position = torch.arange(11)
    return ids.masked_fill(position == end, EOS).masked_fill(position > end, PAD)


@pytest.fixture(scope="module")
def marian(ours: Transformer) -> torch.nn.Module:
    from transformers import MarianConfig, MarianMTModel

    config = MarianConfig(
        vocab_size=VOCABULARY,
        d_model=WIDTH,
        encoder_layers=CONFIG.encoder_layers,
        decoder_layers=CONFIG.decoder_layers,
        encoder_attention_heads=CONFIG.heads,
        decoder_attention_heads=CONFIG.heads,
        encoder_ffn_dim=CONFIG.d_ff,
        decoder_ffn_dim=CONFIG.d_ff,
        activation_function="relu",
        scale_embedding=True,
        share_encoder_decoder_embeddings=True,
        tie_word_embeddings=True,
        max_position_embeddings=64,
        dropout=0.0,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        decoder_start_token_id=BOS,
        forced_eos_token_id=None,
    )
    model = MarianMTModel(config).eval()
    missing, unexpected = model.load_state_dict(marian_state(ours), strict=False)
    assert not unexpected
    tied_or_computed = ("embed_tokens.weight", "embed_positions.weight", "lm_head.weight")
    assert all(name.endswith((*tied_or_computed, "final_logits_bias")) for name in missing)
    model.tie_weights()
    return model


@pytest.fixture(scope="module")
def source() -> Tensor:
    torch.manual_seed(6)
    return random_source(rows=8)


def test_logits_equal_those_of_marian(
    ours: Transformer, marian: torch.nn.Module, source: Tensor
) -> None:
    torch.manual_seed(7)
    target_input = torch.randint(4, VOCABULARY, (len(source), 9))
    target_input[:, 0] = BOS
    with torch.inference_mode():
        logits = ours(source, target_input)
        theirs = marian(
            input_ids=source, attention_mask=source != PAD, decoder_input_ids=target_input
        ).logits
    assert logits.std() > 0.1
    assert (logits - theirs).abs().max() < 1e-4


def test_greedy_output_equals_that_of_marian(
    ours: Transformer, marian: torch.nn.Module, source: Tensor
) -> None:
    with torch.inference_mode():
        limits = torch.full((len(source),), LENGTH)
        greedy = greedy_search(ours, source, DecodingConfig(), BOS, EOS, max_lengths=limits)
        theirs = marian.generate(
            input_ids=source,
            attention_mask=source != PAD,
            num_beams=1,
            do_sample=False,
            max_new_tokens=LENGTH,
            suppress_tokens=[PAD, BOS],
        )
    translations = [list(hypothesis.tokens) for hypothesis in greedy]
    assert len({tuple(tokens) for tokens in translations}) > 2
    assert translations == [_between_start_and_end(tokens) for tokens in theirs.tolist()]


def _between_start_and_end(tokens: list[int]) -> list[int]:
    end = tokens.index(EOS) if EOS in tokens else len(tokens)
    return tokens[1:end]
