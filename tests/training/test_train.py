"""A whole run, from text to a folder that translates."""

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.checkpoint import average_weights, load_weights
from nmt.config_file import load_config
from nmt.errors import RunDirectoryBusyError
from nmt.run_directory import RunDirectory, load_run
from nmt.training.train import train
from nmt.translation.translator import Translator
from tests.training.runs import Recipe, quiet

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    """The run and its log, made by the first test that asks."""
    return {}


@pytest.fixture
def run(
    recipe: Recipe, made: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> RunDirectory:
    """Long enough to learn most of the task: every word has one translation."""
    if not made:
        config = recipe(
            "training.max_steps=480",
            "training.batch_tokens=400",
            "training.warmup_steps=60",
            "training.validate_every=120",
            "training.checkpoint_every=120",
            "model.d_model=32",
            "model.dropout=0.0",
            "training.average_checkpoints=3",
        )
        made["config"], made["log"] = config, []
        path = tmp_path_factory.mktemp("runs") / "tiny"
        made["run"] = train(config, path, made["log"].append)
    return made["run"]


def events(run: RunDirectory, event: str) -> list[dict[str, Any]]:
    lines = map(json.loads, run.metrics.read_text("utf-8").splitlines())
    return [line for line in lines if line["event"] == event]


def test_a_run_holds_all_it_needs(run: RunDirectory, made: dict[str, Any]) -> None:
    assert {path.name for path in run.path.iterdir()} == {
        ".lock",
        "averaged",
        "best.json",
        "checkpoints",
        "config.yaml",
        "environment.json",
        "last.json",
        "metrics.jsonl",
        "tokenizer",
        "translations",
    }
    assert load_config(str(run.config)) == made["config"]
    assert json.loads(run.last.read_text()) == {"weights": "checkpoints/step-00000480"}


def test_environment_tells_where_the_run_was_made(run: RunDirectory) -> None:
    environment = json.loads(run.environment.read_text("utf-8"))
    assert environment["libraries"]["torch"] == torch.__version__
    assert environment["device"] == "cpu" and environment["precision"] == "fp32"
    assert environment["command"] and environment["data_fingerprint"] and environment["cores"]


def test_metrics_tell_how_the_loss_fell(run: RunDirectory) -> None:
    training, validations = events(run, "train"), events(run, "validation")
    assert [line["step"] for line in training] == list(range(2, 481, 2))
    assert [line["step"] for line in validations] == [120, 240, 360, 480]
    losses = [line["loss"] for line in training]
    assert losses[-1] < losses[0] / 2
    assert all(math.isclose(math.exp(v["loss"]), v["perplexity"]) for v in validations)


def test_averaged_weights_are_the_mean_of_the_last_checkpoints(run: RunDirectory) -> None:
    expected = average_weights([run.checkpoint(step) for step in (240, 360, 480)])
    averaged = load_weights(run.averaged)
    assert all(torch.equal(averaged[name], weight) for name, weight in expected.items())


def test_best_is_the_better_of_the_average_and_the_best_checkpoint(run: RunDirectory) -> None:
    best = json.loads(run.best.read_text("utf-8"))
    candidates = best["candidates"]
    assert "averaged" in candidates and len(candidates) == 2
    assert best["bleu"] == candidates[best["weights"]]["bleu"]
    assert best["bleu"] == max(figures["bleu"] for figures in candidates.values())
    assert best["trained_steps"] == 480
    assert best["target_tokens"] == events(run, "train")[-1]["target_tokens"]


def test_the_run_translates_what_it_learnt(run: RunDirectory, corpus: Path, tmp_path: Path) -> None:
    """Also after it was moved: a run directory is all one needs."""
    moved = shutil.copytree(run.path, tmp_path / "elsewhere")
    sources, references = (
        (corpus / f"train.{language}").read_text("utf-8").splitlines() for language in ("en", "de")
    )
    translations = [t.text for t in Translator(load_run(moved, CPU)).translate(sources)]
    right = sum(t == reference for t, reference in zip(translations, references, strict=True))
    assert right >= 0.7 * len(references)


def test_validation_translations_are_kept_to_be_read(run: RunDirectory, corpus: Path) -> None:
    names = sorted(path.name for path in run.translations.iterdir())
    assert names == [f"step-{step:08d}.txt" for step in (120, 240, 360, 480)]
    text = (run.translations / names[-1]).read_text("utf-8")
    first_source = (corpus / "validation.en").read_text("utf-8").splitlines()[0]
    assert text.startswith(f"source     {first_source}\nreference  ")
    assert text.count("\nmodel      ") == 8


def test_the_log_says_what_was_made_and_what_comes_next(
    run: RunDirectory, made: dict[str, Any]
) -> None:
    log = made["log"]
    parameters = sum(weight.numel() for weight in load_weights(run.averaged).values())
    assert any(
        f"{parameters:,} parameters, vocabulary 48, 60 pairs (none left out), cpu, fp32" in m
        for m in log
    )
    best = json.loads(run.best.read_text("utf-8"))["weights"]
    assert log[-2].startswith("trained 480 steps on ")
    assert log[-2].endswith(f"best weights: {run.path / best}")
    assert log[-1] == f"translate with: nmt translate --model {run.path}"


def test_a_busy_directory_is_refused(recipe: Recipe, tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    run.create()
    with run.lock(), pytest.raises(RunDirectoryBusyError):
        train(recipe(), tmp_path, print)


def test_early_stopping_ends_a_run_that_does_not_improve(recipe: Recipe, tmp_path: Path) -> None:
    settings = ("training.early_stopping=2", "training.peak_learning_rate=1e-12")
    config = recipe(*settings, "training.max_steps=100", "training.validate_every=3")
    run = train(config, tmp_path, quiet)
    assert [line["step"] for line in events(run, "validation")] == [3, 6, 9]
    assert run.averaged.is_dir()
    log: list[str] = []
    train(config, tmp_path, log.append)
    assert log[-1].endswith("already trained to step 9; nothing to do")


def test_a_run_may_be_chosen_by_loss(recipe: Recipe, tmp_path: Path) -> None:
    run = train(recipe("training.validation_metric=loss"), tmp_path, quiet)
    best = json.loads(run.best.read_text("utf-8"))
    assert "bleu" not in best
    assert best["loss"] == min(figures["loss"] for figures in best["candidates"].values())
    assert not run.translations.exists()


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("embeddings", ["target", "separate"])
def test_every_kind_of_model_trains_and_loads(
    recipe: Recipe, tmp_path: Path, norm: str, embeddings: str
) -> None:
    config = recipe(
        f"model.norm={norm}",
        f"model.embeddings={embeddings}",
        "tokenizer.shared=false",
        "tokenizer.vocabulary_size=30",
        "training.precision=bf16",
        "training.max_steps=2",
    )
    run = train(config, tmp_path, quiet)
    translation = next(Translator(load_run(run.path, CPU)).translate(["the old dog"]))
    assert math.isfinite(translation.score)


def test_the_best_checkpoints_may_be_averaged_instead_of_the_last(
    recipe: Recipe, tmp_path: Path
) -> None:
    config = recipe(
        "training.max_steps=15",
        "training.validate_every=3",
        "training.validation_metric=loss",
        "training.average=best",
        "training.average_checkpoints=3",
        "training.checkpoint_every=100",
        "training.keep_last=1",
    )
    run = train(config, tmp_path / "run", quiet)
    losses = {record["step"]: record["loss"] for record in events(run, "validation")}
    best = sorted(sorted(losses, key=lambda step: losses[step])[:3])
    assert run.saved_checkpoints() == [run.checkpoint(step) for step in best]
    mean = average_weights(run.saved_checkpoints())
    averaged = load_weights(run.averaged)
    assert all(torch.equal(averaged[name], mean[name]) for name in mean)
