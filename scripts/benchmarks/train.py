"""How fast a model trains, beside a plain loop around Hugging Face's MarianMTModel, and Marian.

All train a post-norm Transformer of the same size on the same pairs a step, from weights of the
same distribution, with PyTorch's fused Adam, the same dropout and label smoothing 0.1. What differs
is the engine: ours tunes the memory allocator, lets threads compute shares of a step side by side,
and computes the loss in one pass. All gather memory in their first steps, which the clock leaves
out. The loop runs in float32, as it does by default, and in the precision that ours picks; Marian's
own trainer (pymarian), which reads the text and our vocabulary, trains in float32 on a CPU.
Each engine runs in a process of its own, in turn. `share_of_matrix_rate` is what the products of
our steps take of the rate of the machine for one large product.
"""

import argparse
import operator
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from measuring import apart, report
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.profiler import ProfilerActivity, profile

from nmt.data.prepared import Prepared, prepare
from nmt.data.tokens.batch import Batch, collate
from nmt.data.tokens.batches import BatchPlan
from nmt.data.tokens.tokenizer import PAD
from nmt.machine.device import (
    autocast,
    peak_memory,
    pick_device,
    pick_precision,
    reset_peak_memory,
    synchronize,
    use_threads,
)
from nmt.machine.memory import tune_memory
from nmt.machine.processor import available_cores
from nmt.planning.resources import training_operations
from nmt.recipe.config import (
    Config,
    DataConfig,
    DecodingConfig,
    ModelConfig,
    TextPair,
    TokenizerConfig,
    TrainingConfig,
)
from nmt.run.model import LoadedModel, build_model
from nmt.training.schedule import learning_rate
from nmt.training.step_memory import vocabulary_rows
from nmt.training.trainer import Trainer

_MARIAN_STEP = re.compile(r"Cost ([0-9.]+) \* ([0-9,]+) .*Time ([0-9.]+)s")
"""a line of Marian's log: loss per target token, target tokens and seconds of a step"""
SIZES = {
    "tiny": ModelConfig(d_model=128, heads=4, d_ff=512, encoder_layers=3, decoder_layers=3),
    "small": ModelConfig(d_model=256, heads=4, d_ff=1024, encoder_layers=3, decoder_layers=3),
    "base": ModelConfig(),
    "student": ModelConfig(encoder_layers=12, decoder_layers=2),
    "big": ModelConfig(d_model=1024, heads=16, d_ff=4096, dropout=0.3),
}


def recipe(arguments: argparse.Namespace, folder: str) -> Config:
    """What all engines train."""
    text = TextPair(source=str(arguments.source), target=str(arguments.target))
    return Config(
        data=DataConfig(train=[text], validation=[text], directory=f"{folder}/data"),
        tokenizer=TokenizerConfig(vocabulary_size=arguments.vocabulary),
        model=SIZES[arguments.size],
        training=TrainingConfig(
            batch_tokens=arguments.batch_tokens,
            warmup_steps=100,
            peak_learning_rate=5e-4,
            device=arguments.device,
            precision=arguments.precision,
            compile=not arguments.eager,
        ),
        decoding=DecodingConfig(),
    )


@dataclass(frozen=True)
class Engine:
    """A model in training, of whichever program."""

    device: torch.device
    take_step: Callable[[int], tuple[Tensor, int]]
    """takes the step of a number, from 1; returns its summed loss, a scalar, and target tokens"""
    logits: Callable[[Batch], Tensor]
    """(B, T, V) of a batch, without dropout"""


def take_steps(engine: Engine, arguments: argparse.Namespace) -> dict[str, Any]:
    """Speed after the steps of the warm-up, and how far the loss fell."""
    losses, tokens, ends = [], [], [time.perf_counter()]
    for number in range(1, arguments.warm_up + arguments.steps + 1):
        loss, count = engine.take_step(number)
        losses.append(loss)
        tokens.append(count)
        if number in (arguments.warm_up, arguments.warm_up + arguments.steps):
            synchronize(engine.device)  # a GPU is waited for where the clock starts and stops
        ends.append(time.perf_counter())
    seconds = ends[-1] - ends[arguments.warm_up]
    per_token = [loss.item() / count for loss, count in zip(losses, tokens, strict=True)]
    return {
        "tokens_per_second": sum(tokens[arguments.warm_up :]) / seconds,
        "losses": [round(loss, 3) for loss in per_token[:: -max(1, len(per_token) // 5)][::-1]],
        "seconds": seconds,
    }


def matrix_rate(device: torch.device, precision: str) -> float:
    """Operations a second of a large square matrix product: what the machine can do at best."""
    size = 8192 if device.type == "cuda" else 2048
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    one, other = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    seconds = []
    for _ in range(10):
        start = time.perf_counter()
        (one @ other)[0, 0].item()  # waits for a GPU
        seconds.append(time.perf_counter() - start)
    return 2.0 * size**3 / min(seconds)


def our_trainer(arguments: argparse.Namespace, folder: str) -> tuple[Trainer, Prepared]:
    """This toolkit's own trainer at step 0, without validation."""
    config = recipe(arguments, folder)
    device = pick_device(arguments.device)
    use_threads("auto")
    tune_memory()
    prepared = prepare(config, lambda message: None)
    torch.manual_seed(1)
    model = build_model(config, prepared.tokenizer).to(device).train()
    loaded = LoadedModel(config, prepared.tokenizer, model, Path(folder))
    precision = pick_precision(arguments.precision, device)
    return Trainer(loaded, prepared.train, None, precision), prepared  # type: ignore[arg-type]


def our_engine(trainer: Trainer) -> Engine:
    """The trainer as an engine; its steps must be taken in their order."""

    def take_step(number: int) -> tuple[Tensor, int]:
        computed = trainer.stepper.take()
        return computed.loss, computed.tokens

    def logits(batch: Batch) -> Tensor:
        with autocast(trainer.device, trainer.precision):
            return trainer.model.eval()(batch.source, batch.target_input)

    return Engine(trainer.device, take_step, logits)


def nmt(arguments: argparse.Namespace, folder: str) -> dict[str, Any]:
    """What this toolkit measures of itself."""
    trainer, prepared = our_trainer(arguments, folder)
    device, precision = trainer.device, trainer.precision
    reset_peak_memory(device)
    measured = take_steps(our_engine(trainer), arguments)
    measured["device_megabytes"] = peak_memory(device) / 1e6
    if arguments.profile:
        print_profile(trainer, device)
    lengths = prepared.train.source.lengths, prepared.train.target.lengths
    ratio = float(lengths[0].mean() / lengths[1].mean())
    speed = measured["tokens_per_second"]
    rate = matrix_rate(device, precision)
    rows = vocabulary_rows(trainer.model)
    operations = training_operations(trainer.config.model, rows, ratio * speed, speed)
    return {
        **measured,
        "precision": precision,
        "matrix_teraflops": rate / 1e12,
        "share_of_matrix_rate": operations / rate,
    }


def print_profile(trainer: Trainer, device: torch.device, steps: int = 3) -> None:
    """Print the operations of a few further steps, those that take longest first."""
    on_cpu = device.type == "cpu"
    trainer.gradient_computer.set_cpu_shards(1)  # the profiler sees nothing of the other threads
    with profile(activities=[ProfilerActivity.CPU if on_cpu else ProfilerActivity.CUDA]) as found:
        for _ in range(steps):
            trainer.stepper.take()
        synchronize(device)
    microseconds = operator.attrgetter(f"self_{'cpu' if on_cpu else 'device'}_time_total")
    operations = sorted(found.key_averages(), key=microseconds, reverse=True)
    total = sum(map(microseconds, operations))
    for each in operations[:30]:
        print(
            f"{microseconds(each) / total:6.1%} {microseconds(each) / 1e3 / steps:8.2f} ms a step "
            f"{each.count // steps:5} times  {each.key[:90]}"
        )


def huggingface_model(
    sizes: ModelConfig, vocabulary_size: int
) -> tuple[nn.Module, Callable[[Batch], Tensor]]:
    """A MarianMTModel with weights of the distribution of ours, and its logits of a batch."""
    from marian_model import marian_model

    model: Any = marian_model(sizes, vocabulary_size)
    for module in model.modules():
        if isinstance(module, nn.Linear) and module is not model.lm_head:
            nn.init.xavier_uniform_(module.weight)
    nn.init.normal_(model.get_input_embeddings().weight, std=sizes.d_model**-0.5)

    def logits(batch: Batch) -> Tensor:
        output = model(
            input_ids=batch.source,
            attention_mask=batch.source != PAD,
            decoder_input_ids=batch.target_input,
            use_cache=False,
        )
        found: Tensor = output.logits
        return found

    return model, logits


def plain_loop(
    arguments: argparse.Namespace,
    folder: str,
    precision: str,
    build: Callable[[ModelConfig, int], tuple[nn.Module, Callable[[Batch], Tensor]]],
) -> Engine:
    """The loop that a user of another program's model writes."""
    config = recipe(arguments, folder)
    device = pick_device(arguments.device)
    use_threads("auto")
    prepared = prepare(config, lambda message: None)
    store = prepared.train
    torch.manual_seed(1)
    model, logits = build(config.model, prepared.tokenizer.target.size)
    model = model.to(device)
    optimizer = torch.optim.Adam(
        model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9, fused=True
    )
    plan = BatchPlan(store.source.lengths, store.target.lengths, arguments.batch_tokens, seed=1)

    def take_step(number: int) -> tuple[Tensor, int]:
        model.train()
        batch = collate(store, plan.step(number)).to(device)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(number, config)
        with autocast(device, precision):
            loss = cross_entropy(
                logits(batch).flatten(0, 1),
                batch.target_output.flatten(),
                ignore_index=PAD,
                label_smoothing=0.1,
                reduction="sum",
            )
        (loss / batch.tokens).backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach(), batch.tokens

    def logits_without_dropout(batch: Batch) -> Tensor:
        model.eval()
        with autocast(device, precision):
            return logits(batch)

    return Engine(device, take_step, logits_without_dropout)


def huggingface(arguments: argparse.Namespace, folder: str, precision: str) -> dict[str, Any]:
    """What the loop around Hugging Face's model measures."""
    engine = plain_loop(arguments, folder, precision, huggingface_model)
    return {**take_steps(engine, arguments), "precision": precision}


def marian(arguments: argparse.Namespace, folder: str) -> dict[str, Any]:
    """Marian's trainer on the same text, vocabulary and size, with threads that share each step."""
    from pymarian import Trainer as MarianTrainer

    config = recipe(arguments, folder)
    sizes = config.model
    vocabulary = prepare(config, lambda message: None).directory / "tokenizer" / "tokenizer.model"
    run = Path(tempfile.mkdtemp(dir=folder))  # Marian goes on with a model that is there
    spm, log = run / "vocabulary.spm", run / "log"
    shutil.copyfile(vocabulary, spm)
    options: dict[str, Any] = {
        "type": "transformer",
        "model": run / "model.npz",
        "train_sets": [arguments.source, arguments.target],
        "vocabs": [spm, spm],
        "dim_emb": sizes.d_model,
        "transformer_dim_ffn": sizes.d_ff,
        "transformer_heads": sizes.heads,
        "enc_depth": sizes.encoder_layers,
        "dec_depth": sizes.decoder_layers,
        "transformer_dropout": sizes.dropout,
        "tied_embeddings_all": True,
        "label_smoothing": 0.1,
        "mini_batch_words": arguments.batch_tokens // available_cores(),  # of each thread
        "max_length": 256,
        "learn_rate": config.training.peak_learning_rate,
        "lr_warmup": config.training.warmup_steps,
        "optimizer_params": [0.9, 0.98, 1e-9],
        "after_batches": arguments.warm_up + arguments.steps,
        "disp_freq": 1,
        "disp_label_counts": True,
        "sync_sgd": True,
        "cpu_threads": available_cores(),
        "workspace": 2000,
        "seed": 1,
        "log": log,
        "quiet": True,
    }
    MarianTrainer(**options).train()
    steps = [match.groups() for match in _MARIAN_STEP.finditer(log.read_text("utf-8"))]
    timed = steps[arguments.warm_up :]
    tokens = sum(int(labels.replace(",", "")) for _, labels, _ in timed)
    seconds = sum(float(time) for _, _, time in timed)
    costs = [float(cost) for cost, _, _ in steps]
    return {
        "tokens_per_second": tokens / seconds,
        "losses": [round(cost, 3) for cost in costs[:: -max(1, len(costs) // 5)][::-1]],
        "seconds": seconds,
        "precision": "fp32",
    }


def make_parser() -> argparse.ArgumentParser:
    """The options of this benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--source", type=Path, required=True, help="source side of a real corpus")
    parser.add_argument("--target", type=Path, required=True, help="its target side")
    parser.add_argument("--against", choices=["huggingface", "marian"], help="what to compare with")
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--vocabulary", type=int, default=8000)
    parser.add_argument("--batch-tokens", type=int, default=4096)
    parser.add_argument("--warm-up", type=int, default=12, help="steps before the clock starts")
    parser.add_argument("--steps", type=int, default=24, help="steps that are timed")
    parser.add_argument("--rounds", type=int, default=1, help="times that each engine runs")
    parser.add_argument("--eager", action="store_true", help="on a GPU: ours without compilation")
    parser.add_argument("--folder", help="where the prepared text is kept for the next call")
    parser.add_argument("--profile", action="store_true", help="also print what ours spends on")
    parser.add_argument("--device", default="auto", choices=["auto", "cpu", "cuda"])
    parser.add_argument("--precision", default="auto", choices=["auto", "fp32", "bf16"])
    return parser


def others(arguments: argparse.Namespace, folder: str, precision: str) -> Iterator[dict[str, Any]]:
    """What the programs of --against measure."""
    if arguments.against == "marian":
        yield apart(marian, arguments, folder)
    elif arguments.against == "huggingface":
        for each in dict.fromkeys(["fp32", precision]):
            yield apart(huggingface, arguments, folder, each)


def main() -> None:
    """Measure the engines in turn."""
    arguments = make_parser().parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or temporary
        prepare(recipe(arguments, folder), lambda message: None)
        for number in range(arguments.rounds):
            ours = apart(nmt, arguments, folder)
            report("train", size=arguments.size, engine="nmt", round=number, **ours)
            for theirs in others(arguments, folder, ours["precision"]):
                ratio = ours["tokens_per_second"] / theirs["tokens_per_second"]
                theirs = {"engine": arguments.against, **theirs, "nmt_speed_over_it": ratio}
                report("train", size=arguments.size, round=number, **theirs)


if __name__ == "__main__":
    main()
