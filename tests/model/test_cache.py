"""What the cache remembers, and for whom."""

import pytest
import torch
from torch import Tensor

from nmt.model.cache import (
    LENGTHS_MULTIPLE,
    STEPS_PER_COMPACTION,
    DecoderCache,
    LayerCache,
    leaving_sentences,
    remaining_sentences,
)


def cache_of(sentences: int) -> DecoderCache:
    """One layer, one head, width one: every cross key says whose it is."""
    cross = torch.arange(sentences).float().view(-1, 1, 1, 1)
    mask = torch.ones(sentences, 1, 1, 1, dtype=torch.bool)
    return DecoderCache([LayerCache(cross, -cross)], mask)


def step(cache: DecoderCache, *keys: float) -> tuple[Tensor, Tensor]:
    """One step of every sentence with these keys of its hypotheses: all keys, and who sees them."""
    mask, stored = cache.advance(len(keys))
    new = torch.tensor(keys).expand(len(cache.source_mask), -1)[:, None, :, None]
    key, value = stored[0].append(new, -new)
    assert torch.equal(value, -key)
    assert mask.shape[3] == key.shape[2]
    assert key.shape[2] % LENGTHS_MULTIPLE == 0
    return key[:, 0, :, 0], mask


def seen(cache: DecoderCache, *keys: float) -> list[list[float]]:
    """What each hypothesis of the first sentence attends to in this step."""
    stored, mask = step(cache, *keys)
    return [stored[0][row].tolist() for row in mask[0, 0]]


def test_one_hypothesis_attends_to_all_that_is_stored() -> None:
    cache = cache_of(sentences=2)
    for t in range(3 * LENGTHS_MULTIPLE + 1):
        assert seen(cache, float(t)) == [list(map(float, range(t + 1)))]
    assert cache.length == cache.stored == 3 * LENGTHS_MULTIPLE + 1


def test_hypotheses_attend_to_their_ancestors_and_to_themselves() -> None:
    cache = cache_of(sentences=1)
    step(cache, 1.0)
    cache.continue_hypotheses(torch.tensor([[0, 0]]))
    assert seen(cache, 2.0, 3.0) == [[1, 2], [1, 3]]
    cache.continue_hypotheses(torch.tensor([[1, 1]]))
    assert seen(cache, 4.0, 5.0) == [[1, 3, 4], [1, 3, 5]]
    cache.continue_hypotheses(torch.tensor([[1, 0]]))
    assert seen(cache, 6.0, 7.0) == [[1, 3, 5, 6], [1, 3, 4, 7]]


def test_positions_without_descendants_are_cleared_away() -> None:
    cache = cache_of(sentences=2)
    cache.continue_hypotheses(torch.tensor([[0, 0], [0, 0]]))
    for t in range(10 * STEPS_PER_COMPACTION):
        step(cache, float(t), t + 0.5)
        cache.continue_hypotheses(torch.tensor([[0, 0], [1, 1]]))
    living, room = 10 * STEPS_PER_COMPACTION, 2 * STEPS_PER_COMPACTION + LENGTHS_MULTIPLE
    assert cache.stored <= cache.layers[0].key.shape[2] <= living + room


def test_what_stands_in_the_room_is_never_attended_to_and_is_numbers() -> None:
    """Attention multiplies it by zero, which of what is not a number would not be zero."""
    cache = cache_of(sentences=3)
    for t in range(5 * LENGTHS_MULTIPLE):
        keys, mask = step(cache, float(t))
        assert keys.isfinite().all()
        assert int(mask.sum()) == 3 * (t + 1)
    assert cache.layers[0].cross_key.shape[2] == cache.source_mask.shape[3] == LENGTHS_MULTIPLE
    assert int(cache.source_mask.sum()) == 3
    assert int(cache.layers[0].cross_key[:, :, 1:].count_nonzero()) == 0


@pytest.mark.parametrize("done", [[4], [0, 5], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5], []])
def test_sentences_that_remain_stay_in_their_places_but_for_the_holes(done: list[int]) -> None:
    is_done = torch.zeros(6, dtype=torch.bool)
    is_done[done] = True
    places = remaining_sentences(is_done)
    assert sorted(places.tolist()) == [n for n in range(6) if n not in done]
    stay = [n for n in range(len(places)) if n not in done]
    assert places[stay].tolist() == stay


def test_a_batch_takes_few_sizes_as_its_sentences_end() -> None:
    done = torch.zeros(100, dtype=torch.bool)
    sizes = set()
    for place in torch.randperm(100, generator=torch.Generator().manual_seed(1)).tolist():
        done[place] = True
        leaving = leaving_sentences(done)
        assert not (leaving & ~done).any()
        going_on, size = int((~done).sum()), int((~leaving).sum())
        assert going_on <= size <= 1.25 * going_on
        sizes.add(size)
    assert sorted(sizes) == [
        *range(8),  # 0, 1, 2, 3, 4, 5, 6, 7
        *range(8, 16, 2),
        *range(16, 32, 4),
        *range(32, 64, 8),
        *(64, 80, 96, 100),
    ]


@pytest.mark.parametrize("kept", [[0, 5, 2, 3, 4], [1, 2, 3, 4, 5], [0, 1], [3]])
def test_kept_sentences_keep_their_own_whether_few_or_many_move(kept: list[int]) -> None:
    cache = cache_of(sentences=6)
    step(cache, 1.0)
    before = cache.layers[0].key.clone()
    cache.keep_sentences(torch.tensor(kept))
    step(cache, 2.0)
    layer = cache.layers[0]
    assert len(cache.source_mask) == len(cache.ancestor_mask) == len(layer.key) == len(kept)
    assert layer.cross_key[:, 0, 0, 0].tolist() == kept
    assert torch.equal(layer.cross_value, -layer.cross_key)
    assert torch.equal(layer.key[:, :, 0], before[kept][:, :, 0])
