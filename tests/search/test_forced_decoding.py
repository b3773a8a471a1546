"""The C library finds the attention and log P of given targets that PyTorch finds."""

import numpy as np
import pytest

from nmt.data.tokens.tokenizer import EOS
from nmt.recipe.config import Config, GuidedAlignmentConfig, ModelConfig, TrainingConfig
from nmt.run.model import LoadedModel, build_model
from nmt.search.forced_decoding import force_decode_in_c
from nmt.search.searcher import Searcher
from nmt.translation.scoring import force_decode_pairs

GUIDED = [
    None,
    *(GuidedAlignmentConfig(layer=layer) for layer in (1, 2, 3)),
    GuidedAlignmentConfig(layer=3, position="predicts"),
]


@pytest.mark.parametrize("guided", GUIDED)
@pytest.mark.parametrize("batch_tokens", [7, 4096])
def test_it_agrees_with_pytorch(
    random_run: LoadedModel, guided: GuidedAlignmentConfig | None, batch_tokens: int
) -> None:
    config = Config(
        model=ModelConfig(d_model=64, heads=2, d_ff=64, encoder_layers=1, decoder_layers=3),
        training=TrainingConfig(guided_alignment=guided),
    )
    model = build_model(config, random_run.tokenizer).eval()
    loaded = LoadedModel(config, random_run.tokenizer, model, random_run.path)
    settings = config.decoding.model_copy(update={"batch_tokens": batch_tokens})
    searcher = Searcher(loaded, settings)
    if searcher.native is None:
        pytest.skip("no C library")
    random = np.random.default_rng(1)
    sources, targets = (
        [[*random.integers(4, 30, n).tolist(), EOS] for n in lengths]
        for lengths in ((3, 1, 9, 5), (4, 8, 0, 5))
    )
    found = force_decode_in_c(searcher.native, sources, targets, batch_tokens, guided)
    expected = force_decode_pairs(sources, targets, searcher)
    for one, other in zip(found, expected, strict=True):
        assert one.attended == other.attended
        assert one.log_p == pytest.approx(other.log_p, abs=1e-4)
