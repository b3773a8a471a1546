"""True = may attend."""

import torch

from nmt.model.masks import causal_mask, padding_mask


def test_padding_mask_allows_exactly_the_real_tokens() -> None:
    ids = torch.tensor([[7, 8, 5], [9, 5, 5]])
    mask = padding_mask(ids, padding=5)
    assert mask.shape == (2, 1, 1, 3)
    assert mask.dtype == torch.bool
    assert mask[:, 0, 0].tolist() == [[True, True, False], [True, False, False]]


def test_causal_mask_allows_exactly_the_past_and_the_present() -> None:
    mask = causal_mask(6)
    assert mask.shape == (1, 1, 6, 6)
    assert mask.dtype == torch.bool
    expected = [[s <= t for s in range(6)] for t in range(6)]
    assert mask[0, 0].tolist() == expected
