"""One table of Marian's names serves both directions, and what nmt cannot compute is named."""

from typing import Any

import pytest
import torch

from nmt.errors import ExchangeError
from nmt.exchange.marian_names import read_config, to_marian, to_ours
from nmt.model.transformer import Transformer
from tests.exchange.marian_packages import MarianReference, options_for, random_weights

ROWS = 11
SHAPES: list[dict[str, Any]] = [
    {},
    {"output_omit_bias": True, "transformer_ffn_activation": "relu"},
    {"tied_embeddings_all": False, "tied_embeddings": True, "dim_vocabs": [9, ROWS]},
    {"tied_embeddings_all": False, "dim_vocabs": [9, ROWS], "transformer_ffn_activation": "gelu"},
    {"tied_embeddings_all": False, "tied_embeddings_src": True, "tied_embeddings": True},
    {"transformer_decoder_autoreg": "rnn", "dec_cell": "ssru", "layer_normalization": False},
]


@pytest.mark.parametrize("changes", SHAPES)
def test_weights_go_to_our_names_and_back_bit_for_bit(changes: dict[str, Any]) -> None:
    options = options_for(ROWS, **changes)
    config = read_config(options, "model.npz")
    weights = random_weights(options, config)
    ours = to_ours(weights, options, config, "model.npz")
    model = Transformer(config, options["dim-vocabs"][0], ROWS)
    shapes = {name: parameter.shape for name, parameter in model.named_parameters()}
    assert {name: weight.shape for name, weight in ours.items()} == shapes
    back = to_marian(ours, options, config)
    assert back.keys() == weights.keys()
    assert all(torch.equal(back[name], weights[name]) for name in weights)


def test_our_model_computes_what_marian_does() -> None:
    options = options_for(ROWS)
    config = read_config(options, "model.npz")
    weights = random_weights(options, config)
    model = Transformer(config, ROWS, ROWS, padding=8, bos=9).double().eval()
    model.load_state_dict(to_ours(weights, options, config, "model.npz"), strict=False)
    source, target = [3, 4, 5, 3, 6, 0], [2, 3, 7, 1, 0]
    logits = model(torch.tensor([source]), torch.tensor([[9, *target[:-1]]]))[0]
    # our table of positions is rounded to float32
    torch.testing.assert_close(
        logits, MarianReference(weights, options).logits(source, target), atol=1e-5, rtol=0
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"type": "s2s"}, "the model has type: 's2s'; nmt reads only 'transformer'"),
        ({"transformer_decoder_autoreg": "average-attention"}, "autoreg: 'average-attention'"),
        ({"transformer_decoder_autoreg": "rnn", "dec_cell": "gru"}, "dec-cell: 'gru'; .* 'ssru'"),
        ({"transformer_rnn_projection": True}, "transformer-rnn-projection: True"),
        ({"transformer_tied_layers": [1, 1]}, r"transformer-tied-layers: \[1, 1\]"),
        ({"transformer_ffn_depth": 3}, "transformer-ffn-depth: 3; nmt reads only 2"),
        ({"transformer_decoder_dim_ffn": 4}, "transformer-decoder-dim-ffn: 4"),
        ({"transformer_train_position_embeddings": True}, "train-position-embeddings: True"),
        ({"transformer_postprocess": "dar"}, "transformer-postprocess: 'dar'"),
        ({"transformer_preprocess": "n"}, "transformer-preprocess: 'n'"),
        ({"lemma_dim_emb": 8}, "lemma-dim-emb: 8"),
        ({"right_left": True}, "right-left: True"),
        ({"tied_embeddings_all": False, "tied_embeddings_src": True}, "tied-embeddings-src"),
        ({"dim_emb": "wide"}, "'d_model': input should be a valid integer"),
        ({"transformer_heads": 3}, "a multiple of heads"),
    ],
)
def test_what_nmt_cannot_compute_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ExchangeError, match=message):
        read_config(options_for(ROWS, **changes), "model.npz")


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("encoder_l1_self_Wq", None, "the weight encoder_l1_self_Wq is missing"),
        ("decoder_l1_rnn_W", (8, 8), "decoder_l1_rnn_W is none that nmt knows"),
        ("encoder_l1_ffn_W1", (12, 8), r"has the shape \(12, 8\), but the options say \(8, 12\)"),
        ("Wemb", (ROWS + 1, 8), r"Wemb has the shape \(12, 8\), but the options say \(11, 8\)"),
    ],
)
def test_a_wrong_weight_is_named(name: str, shape: tuple[int, int] | None, message: str) -> None:
    options = options_for(ROWS)
    config = read_config(options, "model.npz")
    weights = random_weights(options, config)
    weights.pop(name, None)
    if shape:
        weights[name] = torch.zeros(shape)
    with pytest.raises(ExchangeError, match=message):
        to_ours(weights, options, config, "model.npz")


@pytest.mark.parametrize("sizes", [None, [11], [11, "11"], [True, 11]])
def test_sizes_of_vocabularies_are_checked(sizes: object) -> None:
    options = options_for(ROWS)
    config = read_config(options, "model.npz")
    weights = random_weights(options, config)
    with pytest.raises(ExchangeError, match="dim-vocabs is .*, expected two sizes"):
        to_ours(weights, {**options, "dim-vocabs": sizes}, config, "model.npz")


def test_a_number_of_layers_without_end_is_refused_at_once() -> None:
    options = options_for(ROWS)
    weights = random_weights(options, read_config(options, "model.npz"))
    endless = {**options, "enc-depth": 1000}
    with pytest.raises(ExchangeError, match="the options speak of 1,000"):
        to_ours(weights, endless, read_config(endless, "model.npz"), "model.npz")
