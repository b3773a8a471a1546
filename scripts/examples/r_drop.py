"""R-Drop (Liang et al., 2021, arXiv 2106.14448) as an objective of one's own.

    python scripts/examples/r_drop.py demo.yaml runs/r-drop

Each batch passes the model twice, with other dropout. Added to the sum of both losses is how far
the two distributions of a token are apart: (KL(p || q) + KL(q || p)) / 2, with the weight ALPHA.
All of it is halved here, so that the loss compares with that of a plain training. The term stands
in metrics.jsonl and in the report.
"""

import sys

from torch import nn

import nmt

ALPHA = 5.0  # the paper's for translation
SMOOTHING = 0.1


def r_drop(model: nn.Module, batch: nmt.Batch) -> nmt.Loss:
    """Return the mean of both losses, and the distance as the term `r_drop`."""
    twice = [model(batch.source, batch.target_input) for _ in range(2)]  # each (B, T, V)
    first, second = (nmt.Loss.of_logits(logits, batch.target_output, SMOOTHING) for logits in twice)
    log_p, log_q = (logits.float().log_softmax(-1) for logits in twice)
    # KL(p || q) + KL(q || p) is the sum over the vocabulary of (p - q) (log p - log q)
    distance = ((log_p.exp() - log_q.exp()) * (log_p - log_q)).sum(-1) / 2  # (B, T)
    loss = nmt.Loss(
        (first.total + second.total) / 2, (first.cross_entropy + second.cross_entropy) / 2
    )
    return loss.plus("r_drop", (distance * batch.target_mask).sum(), ALPHA / 2)


def main(recipe: str, path: str) -> None:
    """Train with dropout, and translate a sentence."""
    config = nmt.read_config(recipe, {"model.dropout": 0.1})
    run = nmt.train(config, path, nmt.Callbacks(objective=r_drop))
    print(nmt.load(run).translate("The old dog sleeps."))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
