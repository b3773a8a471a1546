"""An independent oracle: Hugging Face's MarianMTModel with our weights is the same function.

What searches find with both models is compared in tests/search/test_marian_beam_search.py.
"""

from typing import Any, get_args

import pytest
import torch

from nmt.data.tokens.tokenizer import BOS, PAD
from nmt.recipe.config import Activation
from tests.marian_models import AsMarian
from tests.stand_in_models import small_transformer

V = 19


@pytest.mark.parametrize("activation", get_args(Activation))
def test_logits_equal_those_of_marian(activation: Activation, as_marian: AsMarian) -> None:
    # Marian has no setting for epsilon
    ours = small_transformer(V, d_model=24, activation=activation, layer_norm_epsilon=1e-5)
    source, target_input = torch.randint(4, V, (8, 11)), torch.randint(4, V, (8, 9))
    source[2, 5:] = source[6, 1:] = PAD
    target_input[:, 0] = BOS
    marian: Any = as_marian(ours, 4, activation)
    with torch.inference_mode():
        logits = ours(source, target_input)
        theirs = marian(
            input_ids=source, attention_mask=source != PAD, decoder_input_ids=target_input
        ).logits
    assert logits.std() > 0.1
    assert (logits - theirs).abs().max() < 1e-4
