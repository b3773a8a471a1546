"""Which sentences stay in a batch, and where; test_transformer.py tests the steps with a cache."""

import pytest
import torch

from nmt.model.cache import leaving_sentences, remaining_sentences


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
