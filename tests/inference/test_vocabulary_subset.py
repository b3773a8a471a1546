"""A narrow vocabulary changes nothing but which logits there are."""

from typing import Literal

import pytest
import torch

from nmt.config import DecodingConfig, ModelConfig
from nmt.inference.int8 import Int8Linear
from nmt.inference.prepare import is_supported, prepare_for_inference
from nmt.inference.vocabulary_subset import restrict_vocabulary
from nmt.model.transformer import Transformer
from nmt.search.beam_search import beam_search

BOS, EOS = 2, 3
IDS = torch.tensor([0, 1, 2, 3, 7, 11, 12, 30, 49])


@pytest.mark.parametrize("embeddings", ["shared", "target", "separate"])
@pytest.mark.parametrize("precision", [None, "fp32", "bf16", "int8"])
def test_logits_are_those_of_the_whole_vocabulary(
    embeddings: Literal["shared", "target", "separate"], precision: str | None
) -> None:
    if precision == "int8" and not is_supported(Int8Linear, torch.float32):
        pytest.skip("this PyTorch multiplies no 8-bit integers")
    torch.manual_seed(1)
    config = ModelConfig(d_model=32, heads=4, d_ff=48, embeddings=embeddings)
    model = Transformer(config, 50, 50).eval()
    if precision:
        model = prepare_for_inference(model, precision)
    narrow = restrict_vocabulary(model, IDS)
    source, places = torch.randint(4, 50, (3, 6)), torch.tensor([[2], [5], [8]])
    with torch.inference_mode():
        caches = [each.start(each.encode(source), source) for each in (model, narrow)]
        whole = model.step(IDS[places], caches[0])
        part = narrow.step(places, caches[1])
    tolerance = 0.05 if precision == "bf16" else 1e-4
    torch.testing.assert_close(part, whole[:, :, IDS], atol=tolerance, rtol=tolerance)


def test_a_search_with_shortlist_finds_the_same_where_nothing_that_it_needs_is_left_out() -> None:
    torch.manual_seed(2)
    config = ModelConfig(d_model=32, heads=4, d_ff=48, encoder_layers=2, decoder_layers=2)
    model, settings = Transformer(config, 50, 50).eval(), DecodingConfig(max_length_offset=8)
    source = torch.randint(4, 50, (5, 6))
    expected = beam_search(model, source, settings, BOS, EOS)
    needed = {token for (best,) in expected for token in best.tokens}
    ids = torch.tensor(sorted({0, 1, BOS, EOS, *needed, *range(20, 50)}))
    found = beam_search(restrict_vocabulary(model, ids), source, settings, BOS, EOS)
    same = sum(
        ids[list(one.tokens)].tolist() == list(two.tokens)
        for (one,), (two,) in zip(found, expected, strict=True)
    )
    assert same >= 3  # log P is among fewer tokens, which the penalty may weigh otherwise
