"""The k largest of many numbers, for example the best next tokens of a vocabulary."""

import torch
from torch import Tensor

BLOCK = 16
"""columns that share one maximum"""
WORTH_IT = 64
"""blocks per wanted number from which on it is faster than `torch.topk`"""


def largest(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest of each row (R, V), largest first, and their columns: both (R, k).

    The result is that of `torch.topk`, which is slow for wide rows on a CPU. The k largest are in
    the k blocks with the largest maxima, so only these are searched. A block is every (V / 16)th
    column, because maxima over whole rows are computed at the speed of memory.
    """
    rows, columns = x.shape
    blocks = columns // BLOCK
    if x.device.type != "cpu" or blocks < WORTH_IT * k:
        values, indices = x.topk(k)
        return values, indices
    blocked = x[:, : blocks * BLOCK].unflatten(1, (BLOCK, blocks))
    best = blocked.amax(1).topk(k).indices  # (R, k)
    candidates = blocked.gather(2, best[:, None].expand(-1, BLOCK, -1)).flatten(1)  # (R, 16 k)
    places = torch.arange(BLOCK, device=x.device)[:, None] * blocks  # (16, 1)
    columns_of = (places + best[:, None]).flatten(1)  # (R, 16 k)
    rest = torch.arange(blocks * BLOCK, columns, device=x.device)
    candidates = torch.cat((candidates, x[:, blocks * BLOCK :]), dim=1)
    columns_of = torch.cat((columns_of, rest.expand(rows, -1)), dim=1)
    values, positions = candidates.topk(k)
    return values, columns_of.gather(1, positions)
