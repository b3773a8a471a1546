"""A training loop of one's own: the data and the model of a recipe, PyTorch's AdamW, a run.

    python scripts/examples/own_loop.py demo.yaml runs/own --steps 300

What it writes is a run: `nmt translate`, `eval-bleu`, `average`, `export`, `serve` and `report`
take it.
"""

import argparse
from itertools import islice
from pathlib import Path

import torch

import nmt


def main() -> None:
    """Train, and save a checkpoint after each third of the steps."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recipe")
    parser.add_argument("path")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--rate", type=float, default=2e-3)
    options = parser.parse_args()
    if Path(options.path).exists():
        parser.error(f"{options.path} exists; choose another path")

    config = nmt.read_config(options.recipe)
    data = nmt.prepare(config)
    torch.manual_seed(config.seed)
    model = nmt.build_model(config, data.tokenizer)
    optimizer = torch.optim.AdamW(model.parameters(), options.rate, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, options.rate, options.steps)
    batches = data.batches(config.training.batch_tokens, config.seed)
    for step, batch in enumerate(islice(batches, options.steps), start=1):
        logits = model(batch.source, batch.target_input)  # (B, T, V)
        loss = nmt.Loss.of_logits(logits, batch.target_output, config.training.label_smoothing)
        (loss.total / batch.tokens).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if (options.steps - step) % -(-options.steps // 3) == 0:
            print(f"step {step}: {loss.cross_entropy.item() / batch.tokens:.3f} nats per token")
            nmt.save_run(model, data.tokenizer, config, options.path, step)


if __name__ == "__main__":
    main()
