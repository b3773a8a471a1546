"""What each encoder layer knows of a sentence: a linear probe on the mean of its hidden states.

    python scripts/examples/probing.py RUN past_present.txt

Reads a task of SentEval (Conneau et al., 2018): `tr`, `va` or `te`, a label and a sentence a line,
with tabs between. Learns from `tr`, and prints the accuracy on `te` of the embeddings (layer 0) and
of each layer.
"""

import sys

import torch
from torch import Tensor
from torch.nn.functional import one_hot

import nmt

RIDGE = 1.0  # strength of the regularisation of a probe
BATCH = 64  # sentences


@torch.inference_mode()
def mean_states(run: nmt.LoadedModel, sentences: list[str]) -> Tensor:
    """Return the mean state of each sentence in each layer: (layers + 1, sentences, D)."""
    means = []
    for start in range(0, len(sentences), BATCH):
        part = sentences[start : start + BATCH]
        batch, record = run.batch(part), nmt.StateRecord()
        run.model.encode(batch.source, states=record)
        is_token = batch.source_mask[:, :, None]
        states = torch.stack(list(record.encoder))  # (layers + 1, B, S, D)
        means.append((states * is_token).sum(2) / is_token.sum(1))
    return torch.cat(means, 1).double().cpu()


def accuracy(x: Tensor, labels: Tensor, is_training: Tensor) -> float:
    """Return the share of right labels of a ridge regression on what is not training: x (N, D)."""
    x = torch.cat(((x - x.mean(0)) / (x.std(0) + 1e-9), torch.ones(len(x), 1)), 1)
    train, goal = x[is_training], one_hot(labels[is_training]).double()
    gram = train.T @ train + RIDGE * torch.eye(train.shape[1])
    scores = x[~is_training] @ torch.linalg.solve(gram, train.T @ goal)
    return (scores.argmax(1) == labels[~is_training]).double().mean().item()


def main(path: str, task: str) -> None:
    """Print a line for each layer."""
    with open(task, encoding="utf-8") as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines if not line.startswith("va\t")]
    names = sorted({label for _, label, _ in rows})
    labels = torch.tensor([names.index(label) for _, label, _ in rows])
    is_training = torch.tensor([part == "tr" for part, _, _ in rows])
    layers = mean_states(nmt.open_run(path), [sentence for _, _, sentence in rows])
    for layer, x in enumerate(layers):
        print(f"layer {layer}: {accuracy(x, labels, is_training):.1%}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
