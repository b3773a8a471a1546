"""The Transformer of "Attention Is All You Need" (Vaswani et al., 2017): ids in, logits out.

This is the paper and its decoding cache, nothing else. What computes the same faster takes the
place of these modules in `nmt.training.prepare` and `nmt.inference.prepare`.

Shapes, by letter, in every docstring and comment of this package:

    B  sentences in the batch            D  d_model, the width of the residual stream
    S  source positions                  H  attention heads
    T  target positions                  K  d_k = d_v = D / H, the width of one head
    V  entries of the vocabulary         F  d_ff, the inner width of the feed-forward network
    N  sentences still being decoded     k  hypotheses of a sentence that are continued
"""
