"""A whole training run: prepare, build or resume, train, average, choose the best weights."""

import sys
from collections.abc import Callable
from pathlib import Path

import torch

from nmt.checkpoint import average_weights, load_weights, put_weights, save_checkpoint
from nmt.config import Config
from nmt.data.corpora import resolve
from nmt.data.parallel_text import read_pairs
from nmt.data.prepared import Prepared, prepare
from nmt.device import keep_freed_memory, pick_device, pick_precision, use_threads
from nmt.run_directory import Run, RunDirectory, build_model
from nmt.training.environment import describe_environment
from nmt.training.resume import refuse_changed_recipe, resume
from nmt.training.retention import regular_checkpoints
from nmt.training.trainer import Trainer
from nmt.training.validation import Validator


def train(config: Config, path: Path, log: Callable[[str], None]) -> RunDirectory:
    """Train `config` in the run directory `path`, doing what is missing; rerun to resume.

    Raises:
        NmtError: what stands in the way, in one sentence.
    """
    directory = RunDirectory(path)
    directory.create()
    with directory.lock():
        refuse_changed_recipe(directory, config)
        keep_freed_memory()
        prepared = prepare(config, log)
        trainer = _make_trainer(config, directory, prepared, log)
        resume(trainer, directory, log)
        if trainer.finished() and directory.averaged.is_dir():
            log(f"{path}: already trained to step {trainer.step:,}; nothing to do")
            return directory
        trainer.train()
        _choose_best_weights(trainer, directory, log)
    return directory


def _make_trainer(
    config: Config, directory: RunDirectory, prepared: Prepared, log: Callable[[str], None]
) -> Trainer:
    device = pick_device(config.training.device)
    precision = pick_precision(config.training.precision, device)
    threads = use_threads(config.training.threads)
    torch.manual_seed(config.seed)
    model = build_model(config, prepared.tokenizer).to(device)
    directory.write_config(config)
    prepared.tokenizer.save(directory.tokenizer)
    environment = describe_environment(sys.argv, device, precision, prepared.fingerprint)
    directory.write_json(directory.environment, environment)
    parameters = sum(p.numel() for p in model.parameters())
    log(
        f"{parameters:,} parameters, vocabulary {prepared.tokenizer.target_vocabulary_size:,}, "
        f"{len(prepared.train):,} pairs, {device.type}, {precision}, {threads} threads"
    )
    splits = resolve(config.data, log)
    pairs = list(read_pairs(Path(splits.validation.source), Path(splits.validation.target)))
    run = Run(config, prepared.tokenizer, model, directory.path)
    return Trainer(run, directory, prepared.train, Validator(pairs, run, precision), precision)


def _choose_best_weights(
    trainer: Trainer, directory: RunDirectory, log: Callable[[str], None]
) -> None:
    """Average the last checkpoints; keep as best what translates the validation set better."""
    training = trainer.config.training
    paths = regular_checkpoints(directory, training)
    save_checkpoint(directory.averaged, average_weights(paths))
    candidates = {directory.averaged.name: directory.averaged}
    if trainer.best:
        best_single = directory.checkpoint(trainer.best["step"])
        candidates[f"{directory.checkpoints.name}/{best_single.name}"] = best_single
    beam = trainer.config.decoding.beam_size
    results = {}
    for name, folder in candidates.items():
        put_weights(trainer.model, load_weights(folder), folder)
        results[name] = trainer.validator.validate(beam)
        bleu = results[name].bleu
        score = "" if bleu is None else f", BLEU {bleu:.2f} (beam {beam})"
        log(f"{name}: validation loss {results[name].loss:.3f} nats/token{score}")
    best = max(results, key=lambda name: results[name].score)
    directory.write_json(
        directory.best,
        {
            "weights": best,
            **results[best].figures(),
            "averaged_from": [p.name for p in paths] if best == directory.averaged.name else None,
            "candidates": {name: result.figures() for name, result in results.items()},
            "step": trainer.step,
            "training_seconds": round(trainer.monitor.seconds, 1),
            "target_tokens": trainer.monitor.total_tokens,
        },
    )
    log(
        f"trained {trainer.step:,} steps on {trainer.monitor.total_tokens:,} target tokens "
        f"in {trainer.monitor.seconds / 60:.1f} min; best weights: {directory.path / best}"
    )
    log(f"translate with: nmt translate --model {directory.path}")
