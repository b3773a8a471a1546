"""Section 3.4: one matrix in, times sqrt(d_model), and the same matrix out."""

import math

import torch

from nmt.model.embedding import TokenEmbedding


def test_embedding_is_a_row_times_the_root_of_the_width() -> None:
    embedding = TokenEmbedding(11, 16)
    ids = torch.tensor([[3, 0, 10], [3, 3, 1]])
    torch.testing.assert_close(embedding(ids), embedding.weight[ids] * math.sqrt(16))


def test_logits_are_products_with_every_row() -> None:
    embedding = TokenEmbedding(11, 16)
    x = torch.randn(2, 5, 16)
    torch.testing.assert_close(embedding.logits(x), x @ embedding.weight.T)


def test_initial_embeddings_have_unit_variance_once_scaled() -> None:
    torch.manual_seed(1)
    embedding = TokenEmbedding(1000, 100)
    # the standard error of a standard deviation over n normal draws is 1 / sqrt(2 n)
    assert abs(embedding(torch.arange(1000)).std().item() - 1) < 5 / math.sqrt(2e5)
    assert abs(embedding.weight.mean().item()) < 5 * 0.1 / math.sqrt(1e5)
