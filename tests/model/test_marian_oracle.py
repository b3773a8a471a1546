"""An independent oracle: Hugging Face's MarianMTModel with our weights is the same function.

What searches find with both models is compared in tests/search/test_marian_beam_search.py.
"""

from typing import Any, get_args

import pytest
import torch
from torch import nn

from nmt.config import Activation, ModelConfig
from nmt.data.tokens.tokenizer import BOS, PAD
from nmt.model.transformer import Transformer
from tests.marian_models import AsMarian

V, HEADS = 19, 4


@pytest.mark.parametrize("activation", get_args(Activation))
def test_logits_equal_those_of_marian(activation: Activation, as_marian: AsMarian) -> None:
    torch.manual_seed(5)
    config = ModelConfig(
        d_model=24,
        heads=HEADS,
        d_ff=32,
        encoder_layers=2,
        decoder_layers=3,
        activation=activation,
        layer_norm_epsilon=1e-5,  # Marian has no setting for it
    )
    ours = Transformer(config, V, V, PAD).eval()
    for name, parameter in ours.named_parameters():
        if parameter.dim() == 1:  # biases and gains that are not neutral
            nn.init.normal_(parameter, mean=float(name.endswith("norm.weight")), std=0.3)
    source, target_input = torch.randint(4, V, (8, 11)), torch.randint(4, V, (8, 9))
    source[2, 5:] = source[6, 1:] = PAD
    target_input[:, 0] = BOS
    marian: Any = as_marian(ours, HEADS, activation)
    with torch.inference_mode():
        logits = ours(source, target_input)
        theirs = marian(
            input_ids=source, attention_mask=source != PAD, decoder_input_ids=target_input
        ).logits
    assert logits.std() > 0.1
    assert (logits - theirs).abs().max() < 1e-4
