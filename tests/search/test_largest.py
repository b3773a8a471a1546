"""Two stages find what one does."""

import pytest
import torch

from nmt.search.largest import BLOCK, WORTH_IT, largest


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("columns", [7, BLOCK * WORTH_IT * 5, BLOCK * WORTH_IT * 5 + 11])
@pytest.mark.parametrize("k", [1, 5])
def test_the_largest_of_each_row_and_their_columns(
    columns: int, k: int, dtype: torch.dtype
) -> None:
    x = torch.randn(9, columns, generator=torch.Generator().manual_seed(k)).to(dtype)
    values, places = largest(x, k)
    assert torch.equal(values, x.topk(k).values)
    assert torch.equal(x.gather(1, places), values)
    assert all(len(set(row)) == k for row in places.tolist())


def test_the_largest_may_stand_beside_each_other_in_a_block_or_at_the_end() -> None:
    columns = BLOCK * WORTH_IT * 4 + 3
    blocks = columns // BLOCK
    x = torch.zeros(2, columns)
    x[0, [5, 5 + blocks, 5 + 2 * blocks, 5 + 9 * blocks]] = torch.tensor([4.0, 3.0, 2.0, 1.0])
    x[1, -3:] = torch.tensor([1.0, 3.0, 2.0])
    assert largest(x, 4)[1][0].tolist() == [5, 5 + blocks, 5 + 2 * blocks, 5 + 9 * blocks]
    assert largest(x, 3)[1][1].tolist() == [columns - 2, columns - 1, columns - 3]


def test_rows_of_impossible_and_of_no_numbers_stay_what_they_are() -> None:
    x = torch.full((2, BLOCK * WORTH_IT), float("-inf"))
    x[1] = float("nan")
    values, _ = largest(x, 1)
    assert values[0].item() == float("-inf")
    assert values[1].isnan().item()
