"""A whole run, from text to a folder that translates."""

import math
import shutil
from pathlib import Path
from typing import Any, get_args

import pytest
import torch

from nmt.errors import ConfigError, DivergedError, NmtError, RunDirectoryBusyError
from nmt.files import read_json
from nmt.recipe.config import Norm
from nmt.recipe.config_file import load_config
from nmt.run.checkpoint import average_weights, load_weights
from nmt.run.directory import RunDirectory
from nmt.run.model import load_model
from nmt.training import step as step_module
from nmt.training.train import train
from nmt.translation.translator import Translator
from tests.training.conftest import write_corpus
from tests.training.runs import Recipe, Trained, comparable, quiet, records

CPU = torch.device("cpu")
STEPS = [60, 120, 180, 240]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Text that is translated word by word, and a run that was long enough to learn that."""
    return write_corpus(tmp_path_factory.mktemp("train"), 600, 50)


@pytest.fixture(scope="module")
def log() -> list[str]:
    """What the run says."""
    return []


@pytest.fixture(scope="module")
def run(recipe: Recipe, folder: Path, log: list[str]) -> RunDirectory:
    texts = [
        f"data.{name}={{source: {folder}/{name}.en, target: {folder}/{name}.de}}"
        for name in ("train", "validation")
    ]
    config = recipe(
        *texts,
        "tokenizer.kind=word",
        "tokenizer.vocabulary_size=20",
        "model.d_model=32",
        "model.dropout=0.0",
        "training.max_steps=240",
        "training.batch_tokens=400",
        "training.warmup_steps=40",
        "training.validate_every=60",
        "training.checkpoint_every=60",
        "training.average_checkpoints=3",
    )
    run = train(config, folder / "run", log.append)
    assert load_config(str(run.config)) == config
    return run


def events(run: RunDirectory, event: str) -> list[dict[str, Any]]:
    return [record for record in records(run) if record["event"] == event]


def test_a_run_holds_all_it_needs(run: RunDirectory) -> None:
    folders = "averaged checkpoints tokenizer translations"
    files = ".lock best.json config.yaml environment.json last.json metrics.jsonl"
    assert {path.name for path in run.path.iterdir()} == {*folders.split(), *files.split()}
    assert read_json(run.last) == {"weights": "checkpoints/step-00000240"}


def test_metrics_tell_how_the_loss_fell(run: RunDirectory) -> None:
    training, validations = events(run, "train"), events(run, "validation")
    assert [line["step"] for line in training] == list(range(2, 241, 2))
    assert [line["step"] for line in validations] == STEPS
    assert training[-1]["loss"] < training[0]["loss"] / 2
    assert all(math.isclose(math.exp(v["loss"]), v["perplexity"]) for v in validations)


def test_best_is_the_better_of_the_average_and_the_best_checkpoint(run: RunDirectory) -> None:
    mean = average_weights([run.checkpoint(step) for step in STEPS[1:]])
    assert comparable(load_weights(run.averaged)) == comparable(mean)
    best = read_json(run.best)
    candidates = best["candidates"]
    assert "averaged" in candidates and len(candidates) == 2
    assert best["bleu"] == candidates[best["weights"]]["bleu"]
    assert best["bleu"] == max(figures["bleu"] for figures in candidates.values())
    assert best["trained_steps"] == 240
    assert best["target_tokens"] == events(run, "train")[-1]["target_tokens"]


def test_the_run_translates_sentences_that_it_has_not_seen(
    run: RunDirectory, folder: Path, tmp_path: Path
) -> None:
    """Also after it was moved: a run directory is all one needs."""
    moved = shutil.copytree(run.path, tmp_path / "elsewhere")
    sources, references = (
        (folder / f"validation.{language}").read_text("utf-8").splitlines()
        for language in ("en", "de")
    )
    translations = [t.text for t in Translator(load_model(moved, CPU)).translations(sources)]
    right = sum(t == reference for t, reference in zip(translations, references, strict=True))
    assert right >= 45


def test_validation_translations_are_kept_to_be_read(run: RunDirectory, folder: Path) -> None:
    names = sorted(path.name for path in run.translations.iterdir())
    assert names == [f"step-{step:08d}.txt" for step in STEPS]
    text = (run.translations / names[-1]).read_text("utf-8")
    first_source = (folder / "validation.en").read_text("utf-8").splitlines()[0]
    assert text.startswith(f"source     {first_source}\nreference  ")
    assert text.count("\nmodel      ") == 8


def test_the_log_says_what_was_made_and_what_comes_next(run: RunDirectory, log: list[str]) -> None:
    parameters = sum(weight.numel() for weight in load_weights(run.averaged).values())
    expected = f"{parameters:,} parameters, vocabulary 20, 600 pairs (none left out), cpu, fp32"
    assert any(expected in line for line in log)
    assert log[-2].startswith("trained 240 steps on ")
    assert log[-2].endswith(f"best weights: {run.path / read_json(run.best)['weights']}")
    assert log[-1] == f"translate with: nmt translate --model {run.path}"


def test_a_busy_directory_is_refused(recipe: Recipe, tmp_path: Path) -> None:
    with RunDirectory(tmp_path).reserve():
        with pytest.raises(RunDirectoryBusyError):
            train(recipe(), tmp_path, print)
        assert (tmp_path / ".lock").is_file()


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        (
            "training.warmup_steps=1200",
            [
                "warning: warmup_steps (1,200) are not fewer than max_steps (2), so the learning "
                "rate only rises; lower training.warmup_steps"
            ],
        ),
        ("training.label_smoothing=0.2", []),
    ],
)
def test_settings_that_surprise_are_named_before_anything_else(
    recipe: Recipe, tmp_path: Path, setting: str, named: list[str]
) -> None:
    log: list[str] = []
    two_steps = ("training.max_steps=2", "training.warmup_steps=1", "training.checkpoint_every=2")
    train(recipe(*two_steps, setting), tmp_path / "run", log.append)
    assert [line for line in log if line.startswith("warning")] == named
    assert log[: len(named)] == named


def test_early_stopping_says_so_and_continues_with_more_patience(
    recipe: Recipe, tmp_path: Path
) -> None:
    log: list[str] = []

    def train_with(*settings: str) -> RunDirectory:
        log.clear()
        fixed = "training.peak_learning_rate=1e-12", "training.warmup_steps=90"
        config = recipe(*fixed, "training.max_steps=100", "training.validate_every=3", *settings)
        return train(config, tmp_path, log.append)

    run = train_with("training.early_stopping=2")
    reason = (
        "stopped early at step 9 of 100: 2 validations in a row were not better than that of step "
        "3 (training.early_stopping: 2); to continue, raise training.early_stopping or set it to "
        "null"
    )
    assert [line["step"] for line in events(run, "validation")] == [3, 6, 9]
    assert run.averaged.is_dir()
    assert log.count(reason) == 1
    train_with("training.early_stopping=2", "training.max_steps=200")
    assert log[-2].endswith("already trained to step 9; nothing to do")
    assert log[-1] == reason.replace("of 100", "of 200")
    train_with("training.early_stopping=3")
    assert "stopped early at step 12 of 100: 3 validations in a row" in "".join(log)


@pytest.mark.parametrize(
    ("rate", "warmup", "steps", "is_useless"),
    [(1000.0, 2, 55, True), (1000.0, 90, 55, False), (1000.0, 2, 12, False), (0.01, 2, 55, False)],
)
def test_a_model_that_is_worse_than_a_uniform_guess_is_no_success(
    recipe: Recipe,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    rate: float,
    warmup: int,
    steps: int,
    is_useless: bool,
) -> None:
    settings = f"training.peak_learning_rate={rate}", f"training.warmup_steps={warmup}"
    config = recipe(*settings, f"training.max_steps={steps}")
    warned = "warning: step 55: the validation loss of "
    for said in (warned, ""):  # the same command again says the same
        if is_useless:
            above = r"above 3\.87, that of a uniform guess among 48 tokens"
            with pytest.raises(DivergedError, match=f"even with the best weights .* {above}"):
                train(config, tmp_path, quiet)
        else:
            train(config, tmp_path, quiet)
        assert (warned in capsys.readouterr().err) == (is_useless and bool(said))
    assert RunDirectory(tmp_path).saved_checkpoints()


@pytest.mark.parametrize("norm", get_args(Norm))
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
    translation = next(Translator(load_model(run.path, CPU)).translations(["the old dog"]))
    assert math.isfinite(translation.score)


def test_the_best_checkpoints_by_loss_may_be_averaged_instead_of_the_last(trained: Trained) -> None:
    run = trained(
        "training.max_steps=15",
        "training.validate_every=3",
        "training.validation_metric=loss",
        "training.average=best",
        "training.average_checkpoints=3",
        "training.checkpoint_every=100",
        "training.keep_last=1",
    )
    losses = {record["step"]: record["loss"] for record in events(run, "validation")}
    best_steps = sorted(sorted(losses, key=lambda step: losses[step])[:3])
    assert run.saved_checkpoints() == [run.checkpoint(step) for step in best_steps]
    mean = average_weights(run.saved_checkpoints())
    assert comparable(load_weights(run.averaged)) == comparable(mean)
    best = read_json(run.best)
    assert "bleu" not in best and not run.translations.exists()
    assert best["loss"] == min(figures["loss"] for figures in best["candidates"].values())


def test_memory_that_does_not_suffice_is_one_sentence(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def update(*arguments: object) -> None:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried ...")

    monkeypatch.setattr(step_module, "update_weights", update)
    with pytest.raises(NmtError, match="not suffice to train this model; lower training.micro"):
        train(recipe(), tmp_path / "run", quiet)


def test_a_beam_that_cannot_work_is_refused_before_training(recipe: Recipe, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"a beam of 5000 .* of at most \d+"):
        train(recipe("decoding.beam_size=5000"), tmp_path / "run", quiet)
    assert not (tmp_path / "run").exists()
