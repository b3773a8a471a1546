"""What has never run on a GPU, each part once, in less than half of a quarter of an hour.

Heads that are 128 wide, beside float32 and for their speed; a run that is ended and continued while
its steps are CUDA graphs; one process under torchrun; LoRA; and 4,096 sentences translated beside
CTranslate2 and Hugging Face in 16 bits. A part that fails is a row that says why, and the next one
goes on. The text is the demonstration's, so that nothing else is needed. Layers are compiled only
for the speed of the heads: each process would compile them again.

The rows are written into `--out` with machine, versions, date and command.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
import train as training
import translate as translating
from measuring import Sheet, attempt

from nmt.data.corpora import demo_corpus
from nmt.data.tokens.token_store import TokenStore
from nmt.machine.device import pick_device
from nmt.model.transformer import Transformer
from nmt.recipe.config import ModelConfig, TrainingConfig
from nmt.training.prepare import prepare_for_training

LAUNCHER = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "1")
ENGINES = {
    "cuda": {
        "nmt": ("bf16", 16384),
        "ctranslate2": ("float16", 1024),
        "huggingface": ("bf16", 256),
    },
    "cpu": {"nmt": ("fp32", 4096), "ctranslate2": ("float32", 64), "huggingface": ("fp32", 64)},
}
"""kind and batch size of each engine that translates"""
_STEPS = {
    "wide heads": ["--batch-tokens", "25000", "--warm-up", "40", "--steps", "30"],
    "tiny wide heads": ["--batch-tokens", "300", "--warm-up", "1", "--steps", "1"],
}
training.SIZES["wide heads"] = ModelConfig(heads=4)
training.SIZES["tiny wide heads"] = ModelConfig(
    d_model=128, heads=1, d_ff=128, encoder_layers=1, decoder_layers=1
)


def heads_beside_float32(arguments: argparse.Namespace, folder: str) -> dict[str, Any]:
    """Loss and gradients of one batch in bf16, relative to those in float32."""
    device = pick_device(arguments.device)
    sizes = training.SIZES[arguments.size].model_copy(update={"dropout": 0.0})
    torch.manual_seed(1)
    model = Transformer(sizes, 1000, 1000).to(device)
    sides = [[torch.randint(4, 1000, (n,)).tolist() for n in range(2, 100)] for _ in range(2)]
    store, pairs = TokenStore.of(*sides), np.arange(98)
    found = []
    for precision in ("fp32", "bf16"):
        objective = prepare_for_training(model, TrainingConfig(compile=False), precision)
        loss = objective(objective.build_batch(store, pairs)).total
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        found.append((loss.item(), torch.cat([each.double().flatten() for each in gradients])))
    (exact_loss, exact), (loss_in_bf16, in_bf16) = found
    return {
        "head_width": sizes.d_model // sizes.heads,
        "storage": objective.storage,
        "loss_error": abs(loss_in_bf16 / exact_loss - 1),
        "gradient_error": ((in_bf16 - exact).norm() / exact.norm()).item(),
    }


def heads_speed(arguments: argparse.Namespace, folder: str) -> dict[str, Any]:
    """Training steps of a model with such heads."""
    demo_corpus.write(Path(folder))
    options = ["--source", f"{folder}/train.en", "--target", f"{folder}/train.de"]
    options += ["--size", arguments.size, "--precision", arguments.precision]
    options += ["--device", arguments.device, "--vocabulary", "300", *_STEPS[arguments.size]]
    return training.nmt(training.make_parser().parse_args(options), folder)


def run_training(
    arguments: argparse.Namespace,
    run: Path,
    steps: int,
    *settings: str,
    launcher: tuple[str, ...] = (),
) -> dict[int, float]:
    """Train a run of the demonstration's corpus to a step; returns the losses of its steps."""
    half = arguments.run_steps // 2
    settings = (
        *("training.optimizer=adam", "training.peak_learning_rate=1e-3"),
        *("training.warmup_steps=20", "training.cooldown_steps=0", "training.log_every=1"),
        *("training.validation_metric=loss", f"training.validate_every={half}"),
        *(f"training.checkpoint_every={half}", "training.average_checkpoints=1"),
        *("training.compile=false", f"training.device={arguments.device}"),
        *(f"training.precision={arguments.precision}", f"data.directory={run.parent}/data"),
        f"training.max_steps={steps}",
        *settings,
    )
    command = [sys.executable, *launcher, "-m", "nmt", "train", "--config", "demo.yaml"]
    command += ["--run-dir", str(run), *(part for each in settings for part in ("--set", each))]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    sys.stderr.write(ended.stderr)
    lines = ended.stderr.splitlines()
    if ended.returncode or any("without CUDA graphs" in line for line in lines):
        raise RuntimeError(f"nmt train: {' '.join(lines[-3:])}")
    return {record["step"]: record["loss"] for record in records(run, "train")}


def records(run: Path, event: str) -> list[dict[str, Any]]:
    """What a run has recorded of one kind."""
    lines = (run / "metrics.jsonl").read_text("utf-8").splitlines()
    return [record for record in map(json.loads, lines) if record["event"] == event]


def compared(run: Path, losses: dict[int, float]) -> dict[str, Any]:
    """Speed at the end, and how far the losses are from those of the run "whole"."""
    expected = {each["step"]: each["loss"] for each in records(run.parent / "whole", "train")}
    return {
        "steps": len(losses),
        "loss": losses[max(losses)],
        "largest_difference": max(abs(losses[step] - expected[step]) for step in losses),
        "tokens_per_second": records(run, "train")[-1]["tokens_per_second"],
    }


def trained_twice(arguments: argparse.Namespace, folder: str) -> dict[str, Any]:
    """The run that the next parts are compared with, and once more: what chance changes."""
    run_training(arguments, Path(folder, "whole"), arguments.run_steps)
    run = Path(folder, "again")
    return compared(run, run_training(arguments, run, arguments.run_steps))


def resumed(arguments: argparse.Namespace, folder: str) -> dict[str, Any]:
    """The same run, ended in the middle and then continued."""
    run = Path(folder, "resumed")
    run_training(arguments, run, arguments.run_steps // 2)
    return compared(run, run_training(arguments, run, arguments.run_steps))


def one_process(arguments: argparse.Namespace, folder: str) -> dict[str, Any]:
    """The same run as the only process under torchrun."""
    run = Path(folder, "one")
    losses = run_training(arguments, run, arguments.run_steps, launcher=LAUNCHER)
    return compared(run, losses)


def lora(arguments: argparse.Namespace, folder: str) -> dict[str, Any]:
    """An adapter beside the weights of the run "whole"."""
    run, parent = Path(folder, "lora"), Path(folder, "whole")
    settings = f"training.initialize_from={parent}", "training.lora.rank=8"
    losses = run_training(arguments, run, arguments.run_steps // 2, *settings)
    return {
        "steps": len(losses),
        "loss": losses[max(losses)],
        "validation_loss": records(run, "validation")[-1]["loss"],
        "validation_loss_before": records(parent, "validation")[-1]["loss"],
        "tokens_per_second": records(run, "train")[-1]["tokens_per_second"],
    }


def translated(arguments: argparse.Namespace, engine: str) -> dict[str, Any]:
    """Translating with random weights, ids in and ids out, at one batch size."""
    device = pick_device(arguments.device).type
    kind, batch = ENGINES[device][engine]
    sizes = translating.BATCH_TOKENS if engine == "nmt" else translating.BATCH_SENTENCES
    sizes[device] = (batch,)
    options = ["--device", arguments.device, "--size", "tiny" if arguments.tiny else "base"]
    options += ["--sentences", str(arguments.sentences), "--latency-sentences", "0"]
    parsed = translating.make_parser().parse_args(options)
    return {"kind": kind, **getattr(translating, engine)(parsed, kind)}


PARTS = {
    "heads beside float32": (heads_beside_float32, ""),
    "speed with these heads": (heads_speed, ""),
    "trained twice": (trained_twice, ""),
    "ended and resumed": (resumed, ""),
    "one process of torchrun": (one_process, ""),
    "LoRA": (lora, ""),
    **{f"translating: {engine}": (translated, engine) for engine in ENGINES["cuda"]},
}
"""what a part measures, and the engine if there are several"""


def options() -> argparse.Namespace:
    """The options of the command, together with those of the benchmarks that it calls."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda", choices=["cpu", "cuda"])
    parser.add_argument("--precision", default="bf16", choices=["bf16", "fp32"])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--sentences", type=int, default=4096, help="that are translated")
    parser.add_argument("--limit", type=float, default=120, help="seconds of a part")
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", ".")))
    parser.add_argument("--tiny", action="store_true", help="small numbers, to try the script")
    arguments = parser.parse_args()
    arguments.size, arguments.run_steps = "wide heads", 200
    if arguments.tiny:
        arguments.size, arguments.run_steps, arguments.sentences = "tiny wide heads", 4, 4
    return arguments


def main() -> None:
    """Run the parts, one after the other."""
    arguments = options()
    sheet = Sheet("never_run", arguments.out, arguments.device)
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.parts:
            function, engine = PARTS[name]
            what = engine or folder
            sheet.add(part=name, **attempt(function, arguments, what, limit=arguments.limit))
    print(sheet.table())


if __name__ == "__main__":
    main()
