"""How fast a model trains and learns, beside loops around the models of Hugging Face and eole.

It is written for a GPU that is at hand for a quarter of an hour, and takes less than half of that.
Each program trains the base model in bf16 for `--seconds` after its warm-up, on the same pairs in
the same steps of `--batch-tokens`, with the same Adam and learning rates. After every `--every`
steps the clock stops for the loss of the validation pairs, without smoothing. `seconds_to_loss` is
how long a program had trained, its warm-up and compilation included, when it came down to
`loss_reached`: the lowest validation loss that all of them reached.

A program that fails or is missing is a row that says why. The rows are written into `--out` with
machine, versions, date and command.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from eole_model import eole_model
from measuring import Sheet, attempt
from torch.nn.functional import cross_entropy
from train import (
    Engine,
    huggingface_model,
    make_parser,
    our_engine,
    our_trainer,
    plain_loop,
    recipe,
)

from nmt.data.prepared import prepare
from nmt.data.text.parallel_text import read_pairs
from nmt.data.tokens.batch import Batch, collate
from nmt.data.tokens.batches import micro_batches
from nmt.data.tokens.token_store import TokenStore
from nmt.data.tokens.tokenizer import PAD
from nmt.machine.device import peak_memory, reset_peak_memory, synchronize

_VALIDATION_BATCH_TOKENS = 4096


def validation_batches(arguments: argparse.Namespace, folder: str) -> list[Batch]:
    """The validation pairs in the vocabulary of all programs."""
    tokenizer = prepare(recipe(arguments, folder), lambda message: None).tokenizer
    pairs = list(read_pairs(arguments.validation_source, arguments.validation_target))
    store = TokenStore.of(
        tokenizer.source.encode([pair.source for pair in pairs]),
        tokenizer.target.encode([pair.target for pair in pairs]),
    )
    lengths = store.source.lengths, store.target.lengths
    parts = micro_batches(np.arange(len(store)), *lengths, _VALIDATION_BATCH_TOKENS)
    return [collate(store, rows) for rows in parts]


@torch.inference_mode()
def validation_loss(engine: Engine, batches: list[Batch]) -> float:
    """Nats per target token."""
    total = 0.0
    for batch in batches:
        on_device = batch.to(engine.device)
        logits = engine.logits(on_device).float().flatten(0, 1)
        target = on_device.target_output.flatten()
        total += cross_entropy(logits, target, ignore_index=PAD, reduction="sum").item()
    return total / sum(batch.tokens for batch in batches)


def train_for_seconds(program: str, arguments: argparse.Namespace, folder: str) -> dict[str, Any]:
    """Train until the time is up; `curve` has seconds and validation loss."""
    engine = PROGRAMS[program](arguments, folder)
    batches = validation_batches(arguments, folder)
    reset_peak_memory(engine.device)
    number, tokens, seconds, curve = 0, 0, 0.0, []
    warm_up: tuple[float, int] | None = None
    while warm_up is None or seconds < warm_up[0] + arguments.seconds:
        start, losses, counts = time.perf_counter(), [], []
        for _ in range(arguments.every if warm_up else arguments.warm_up):
            number += 1
            loss, count = engine.take_step(number)
            losses.append(loss)
            counts.append(count)
        synchronize(engine.device)
        seconds += time.perf_counter() - start
        tokens += sum(counts)
        warm_up = warm_up or (seconds, tokens)
        curve.append((round(seconds, 2), round(validation_loss(engine, batches), 4)))
    return {
        "tokens_per_second": (tokens - warm_up[1]) / (seconds - warm_up[0]),
        "steps": number,
        "tokens_a_step": round(tokens / number),
        "warm_up_seconds": warm_up[0],
        "training_loss": torch.stack(losses).sum().item() / sum(counts),
        "validation_loss": curve[-1][1],
        "device_megabytes": peak_memory(engine.device) / 1e6,
        "curve": curve,
    }


def nmt(arguments: argparse.Namespace, folder: str) -> Engine:
    """This toolkit's trainer."""
    return our_engine(our_trainer(arguments, folder)[0])


def huggingface(arguments: argparse.Namespace, folder: str) -> Engine:
    """A plain loop around Hugging Face's MarianMTModel."""
    return plain_loop(arguments, folder, arguments.precision, huggingface_model)


def eole(arguments: argparse.Namespace, folder: str) -> Engine:
    """The same loop around eole's model."""
    return plain_loop(arguments, folder, arguments.precision, eole_model)


def seconds_to_loss(curve: list[tuple[float, float]], loss: float) -> float | None:
    """When a straight line between the points of a curve first comes down to `loss`, or None."""
    before = None
    for seconds, found in curve:
        if found <= loss:
            if before is None or before[1] == found:
                return seconds
            share = (before[1] - loss) / (before[1] - found)
            return before[0] + share * (seconds - before[0])
        before = seconds, found
    return None


PROGRAMS = {"nmt": nmt, "huggingface": huggingface, "eole": eole}


def options() -> argparse.Namespace:
    """The options of the command, with tiny values if asked."""
    parser = make_parser()
    parser.description = __doc__
    parser.set_defaults(size="base", vocabulary=37000, batch_tokens=25000, warm_up=60)
    parser.set_defaults(device="cuda", precision="bf16")
    parser.add_argument("--validation-source", type=Path, required=True)
    parser.add_argument("--validation-target", type=Path, required=True)
    parser.add_argument("--programs", nargs="+", choices=PROGRAMS, default=list(PROGRAMS))
    parser.add_argument("--seconds", type=float, default=60, help="of training, of each program")
    parser.add_argument("--limit", type=float, default=160, help="seconds of a program in all")
    parser.add_argument("--every", type=int, default=50, help="steps between validations")
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", ".")))
    parser.add_argument("--tiny", action="store_true", help="small numbers, to try the script")
    arguments = parser.parse_args()
    if arguments.tiny:
        tiny = {"size": "tiny", "vocabulary": 300, "batch_tokens": 300, "warm_up": 2}
        vars(arguments).update(tiny, seconds=1.0, every=2)
    return arguments


def main() -> None:
    """Train with each program, one after the other."""
    arguments = options()
    sheet = Sheet("neighbours", arguments.out, arguments.device)
    with tempfile.TemporaryDirectory() as folder:
        prepare(recipe(arguments, folder), lambda message: None)
        for name in arguments.programs:
            measured = attempt(train_for_seconds, name, arguments, folder, limit=arguments.limit)
            sheet.add(program=name, size=arguments.size, precision=arguments.precision, **measured)
    curves = [row["curve"] for row in sheet.rows if "curve" in row]
    if curves:
        reached = max(min(loss for _, loss in curve) for curve in curves)
        for row in sheet.rows:
            if "curve" in row:
                row |= {
                    "loss_reached": reached,
                    "seconds_to_loss": round(seconds_to_loss(row["curve"], reached) or 0.0, 2),
                }
        sheet.write()
        print(sheet.table())


if __name__ == "__main__":
    main()
