"""Faster modules that take the place of those of the paper, each beside its kernel.

`nmt.training.prepare` and `nmt.inference.prepare` put them into a copy of a model:

    MultiHeadAttention    fused_attention (PyTorch's kernel), attention (C), packed_attention (GPU)
    FeedForward           relu, linear (C)
    Sublayer              norm (C)
    nn.Dropout            dropout (C)
    the softmax           cross_entropy (C, or compiled for a GPU)
    rows with padding     rows: the real tokens alone, side by side
"""
