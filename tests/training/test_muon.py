"""Muon by its definition, and against PyTorch's own."""

from copy import deepcopy

import pytest
import torch
from torch import nn

from nmt.training.muon import Muon, orthogonalize

SHAPES = [(16, 16), (16, 16), (24, 16), (16, 24), (16, 24), (3, 1)]


@pytest.mark.parametrize("shape", [(2, 16, 16), (1, 40, 16), (3, 16, 40)])
@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_singular_values_come_near_one_and_directions_stay(
    shape: tuple[int, ...], scale: float
) -> None:
    torch.manual_seed(1)
    matrices = scale * torch.randn(shape)
    made = orthogonalize(matrices)
    assert made.shape == matrices.shape
    values = torch.linalg.svdvals(made)
    # the smallest directions of a square matrix take more iterations than it is worth
    assert values.max() < 1.3 and values.quantile(0.2) > 0.6
    u, _, v = torch.linalg.svd(matrices, full_matrices=False)
    turned = u.transpose(1, 2) @ made @ v.transpose(1, 2)
    torch.testing.assert_close(
        turned, torch.diag_embed(turned.diagonal(dim1=1, dim2=2)), rtol=0, atol=1e-3
    )


def test_matrices_are_made_orthogonal_each_by_itself() -> None:
    torch.manual_seed(1)
    matrices = torch.randn(3, 8, 8)
    together = orthogonalize(matrices)
    for matrix, made in zip(matrices, together, strict=True):
        torch.testing.assert_close(orthogonalize(matrix[None])[0], made)


def test_a_matrix_of_zeros_gives_no_direction() -> None:
    assert (orthogonalize(torch.zeros(1, 4, 4)) == 0).all()


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_updates_are_those_of_pytorch(weight_decay: float) -> None:
    torch.manual_seed(1)
    ours = [nn.Parameter(torch.randn(shape)) for shape in SHAPES]
    theirs = [nn.Parameter(parameter.detach().clone()) for parameter in ours]
    muon = Muon(ours, lr=0.03, weight_decay=weight_decay)
    expected = torch.optim.Muon(
        theirs, lr=0.03, weight_decay=weight_decay, adjust_lr_fn="match_rms_adamw"
    )
    for _ in range(4):
        for one, other in zip(ours, theirs, strict=True):
            one.grad = torch.randn_like(one)
            other.grad = one.grad.clone()
        muon.step()
        expected.step()
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


def test_a_matrix_without_gradient_stays_and_state_survives_a_round_trip() -> None:
    torch.manual_seed(1)
    still, moved = nn.Parameter(torch.randn(4, 4)), nn.Parameter(torch.randn(4, 4))
    before = still.detach().clone()
    muon = Muon([still, moved], lr=0.1)
    moved.grad = torch.randn(4, 4)
    muon.step()
    assert torch.equal(still, before)
    copy = nn.Parameter(moved.detach().clone())
    resumed = Muon([nn.Parameter(before.clone()), copy], lr=0.1)
    resumed.load_state_dict(deepcopy(muon.state_dict()))
    copy.grad = moved.grad.clone()
    muon.step()
    resumed.step()
    assert torch.equal(copy, moved)
