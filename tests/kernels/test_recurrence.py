"""What stands for the recurrence in training computes the same, also without padding."""

import pytest
import torch

from nmt.data.tokens.batch import PackedSide
from nmt.kernels.recurrence import RowRecurrence, scan
from nmt.kernels.rows import RowContext
from nmt.model.attention import AttentionContext
from nmt.model.recurrence import SimpleRecurrence

D = 6


@pytest.fixture(autouse=True)
def processor() -> None:
    """Let the tests run once: nothing is in C."""


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 31, 64, 200])
def test_all_states_at_once_are_those_one_by_one(length: int) -> None:
    torch.manual_seed(1)
    inputs = torch.randn(2, 3, length, D, dtype=torch.float64, requires_grad=True).unbind()
    gate, candidate = inputs
    layer = SimpleRecurrence(D)
    results = [
        layer.run(gate.sigmoid(), candidate),
        scan(gate.sigmoid(), (1 - gate.sigmoid()) * candidate),
    ]
    torch.testing.assert_close(results[1], results[0])
    upstream = torch.randn_like(results[0])
    one, two = (torch.autograd.grad(result, inputs, upstream) for result in results)
    torch.testing.assert_close(two, one)


def test_sentences_one_behind_the_other_do_not_see_each_other() -> None:
    """As on a GPU; a CPU's way is tested in test_rows.py with a whole model."""
    torch.manual_seed(1)
    lengths = [3, 1, 7, 2]
    sentences = [torch.randn(n, D) for n in lengths]
    layer = RowRecurrence(D)
    positions = torch.cat([torch.arange(n) for n in lengths])
    offsets = torch.tensor([0, 3, 4, 11, 13])
    side = PackedSide(positions=positions, offsets=offsets, longest=max(lengths))
    context = RowContext(queries=side, memory=side, is_causal=True)
    together = layer(torch.cat(sentences), context)
    alone = [layer(sentence[None], AttentionContext(None))[0] for sentence in sentences]
    torch.testing.assert_close(together, torch.cat(alone))
