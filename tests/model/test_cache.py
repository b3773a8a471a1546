"""What the cache remembers, and for whom."""

import torch

from nmt.model.cache import DecoderCache, LayerCache


def cache_of(rows: int, sentences: int) -> DecoderCache:
    """One layer, one head, width one: every key says whose it is."""
    cross = torch.arange(sentences).float().view(-1, 1, 1, 1)
    layer = LayerCache(cross, -cross)
    key = torch.arange(rows).float().view(-1, 1, 1, 1)
    layer.append(key, -key)
    return DecoderCache([layer], torch.ones(sentences, 1, 1, 1, dtype=torch.bool))


def test_append_returns_all_positions_so_far() -> None:
    layer = cache_of(rows=2, sentences=2).layers[0]
    new = torch.tensor([7.0, 8.0]).view(2, 1, 1, 1)
    key, value = layer.append(new, -new)
    assert key.flatten(1).tolist() == [[0, 7], [1, 8]]
    assert torch.equal(value, -key)


def test_reorder_moves_hypotheses_and_leaves_sentences() -> None:
    cache = cache_of(rows=4, sentences=2)
    cache.reorder(torch.tensor([3, 3, 0]))
    layer = cache.layers[0]
    assert layer.key is not None and layer.value is not None
    assert layer.key.flatten().tolist() == [3, 3, 0]
    assert torch.equal(layer.value, -layer.key)
    assert layer.cross_key.flatten().tolist() == [0, 1]


def test_keep_sentences_drops_the_encoder_side_of_the_others() -> None:
    cache = cache_of(rows=3, sentences=3)
    cache.keep_sentences(torch.tensor([0, 2]))
    layer = cache.layers[0]
    assert len(cache.source_mask) == 2
    assert layer.cross_key.flatten().tolist() == [0, 2]
    assert torch.equal(layer.cross_value, -layer.cross_key)
    assert layer.key is not None and len(layer.key) == 3


def test_reorder_before_the_first_step_is_harmless() -> None:
    cache = DecoderCache([LayerCache(torch.ones(1), torch.ones(1))], torch.ones(1))
    cache.reorder(torch.tensor([0, 0]))
    assert cache.layers[0].key is None
