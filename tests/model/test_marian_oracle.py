"""An independent oracle: Hugging Face's MarianMTModel with our weights is the same function."""

from typing import Any, get_args

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from nmt.config import Activation, DecodingConfig, ModelConfig
from nmt.model.transformer import Transformer
from nmt.search.decoding import EncodedSource
from nmt.search.sampling import most_probable, single_hypotheses
from tests.marian_models import AsMarian

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


@pytest.fixture(scope="module", params=get_args(Activation))
def activation(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def ours(activation: str) -> Transformer:
    """A model that learns to count on from a number: varied output, and no weight is neutral."""
    torch.manual_seed(5)
    config = CONFIG.model_copy(update={"activation": activation})
    model = Transformer(config, VOCABULARY, VOCABULARY, padding=PAD)
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
def marian(ours: Transformer, activation: str, as_marian: AsMarian) -> torch.nn.Module:
    return as_marian(ours, CONFIG.heads, activation)


@pytest.fixture(scope="module")
def source() -> Tensor:
    torch.manual_seed(6)
    return random_source(rows=8)


def test_logits_equal_those_of_marian(ours: Transformer, marian: Any, source: Tensor) -> None:
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
    ours: Transformer, marian: Any, source: Tensor
) -> None:
    with torch.inference_mode():
        limits = torch.full((len(source),), LENGTH)
        encoded = EncodedSource(source, ours.encode(source), limits)
        settings = DecodingConfig()
        greedy = single_hypotheses(ours, encoded, settings, most_probable)
        theirs = marian.generate(
            input_ids=source,
            attention_mask=source != PAD,
            num_beams=1,
            do_sample=False,
            max_new_tokens=LENGTH,
            suppress_tokens=[PAD, BOS],
        )
    translations = [list(hypothesis.tokens) for hypothesis in greedy]
    assert len({tuple(tokens) for tokens in translations}) > 1
    assert translations == [_between_start_and_end(tokens) for tokens in theirs.tolist()]


def _between_start_and_end(tokens: list[int]) -> list[int]:
    end = tokens.index(EOS) if EOS in tokens else len(tokens)
    return tokens[1:end]
