"""Functions of one's own are called at their moments, change nothing else, and give the loss."""

import math
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.data.tokens.batch import Batch
from nmt.data.tokens.tokenizer import Tokenizer
from nmt.errors import ConfigError, DivergedError, StoppedBySignal
from nmt.files import read_json_or_empty
from nmt.model.transformer import Transformer
from nmt.run.checkpoint import load_weights
from nmt.run.checkpoint_files import WEIGHTS
from nmt.run.directory import RunDirectory
from nmt.run.model import build_model
from nmt.training.callbacks import Callbacks
from nmt.training.loss import Loss
from nmt.training.train import train
from tests.training.runs import Recipe, Trained, contents, losses, quiet, records


def smoothed(model: Transformer, batch: Batch) -> Loss:
    """The loss of the recipe, with the number of tokens as a term that adds nothing."""
    loss = Loss.of_logits(model(batch.source, batch.target_input), batch.target_output, 0.1)
    return loss.plus("ones", batch.target_mask.sum().float(), weight=0.0)


def run_with(recipe: Recipe, path: Path, *settings: str, **functions: Any) -> RunDirectory:
    return train(recipe(*settings), path, quiet, Callbacks(**functions))


def test_moments_come_in_order_and_change_nothing(
    recipe: Recipe, trained: Trained, tmp_path: Path
) -> None:
    """Not even if they draw random numbers, and leave gradients in the model."""
    moments: list[tuple[str, int]] = []
    whole = trained()

    def disturb(model: Transformer) -> None:
        assert not model.training
        torch.rand(7)
        ids = torch.tensor([[5, 6, 3]])
        model(ids, ids).sum().backward()

    def after_step(step: int, model: Transformer, loss: Tensor) -> None:
        moments.append(("step", step))
        assert 0 < loss.item() < 10
        disturb(model)

    def after_validation(step: int, model: Transformer, figures: Any) -> None:
        moments.append(("validation", step))
        assert set(figures) == {"loss", "bleu"}
        disturb(model)

    def after_save(step: int, path: Path) -> None:
        moments.append(("save", step))
        assert (path / WEIGHTS).is_file() and path.name == f"step-{step:08d}"

    run = run_with(
        recipe,
        tmp_path / "run",
        after_step=after_step,
        after_validation=after_validation,
        after_save=after_save,
    )
    assert contents(run) == contents(whole)
    assert [step for kind, step in moments if kind == "step"] == list(range(1, 13))
    assert [step for kind, step in moments if kind == "validation"] == [5, 10, 12]
    saved = [step for kind, step in moments if kind == "save"]
    assert saved == sorted(saved) and {4, 8, 12} <= set(saved)
    assert moments.index(("step", 5)) < moments.index(("validation", 5))


@pytest.mark.parametrize("threads", [1, 2])
def test_an_objective_of_ones_own_is_learnt_and_its_terms_are_recorded(
    recipe: Recipe, trained: Trained, tmp_path: Path, threads: int
) -> None:
    plain = ["model.dropout=0", f"training.threads={threads}"]
    run = run_with(recipe, tmp_path / "run", *plain, objective=smoothed)
    expected, found = losses(trained(*plain)), losses(run)
    assert {step: tokens for step, (_, tokens) in expected.items()} == {
        step: tokens for step, (_, tokens) in found.items()
    }
    for step, (loss, _) in expected.items():
        assert found[step][0] == pytest.approx(loss, rel=1e-3)
    terms = [each["loss ones"] for each in records(run) if each["event"] == "train"]
    assert terms == [1.0] * len(found)
    assert read_json_or_empty(run.environment)["objective"] == "smoothed"


def of_encoder(model: Transformer, batch: Batch) -> Loss:
    states = model.encode(batch.source)
    return Loss(states.square().sum(), states.detach().sum())


@pytest.mark.parametrize("threads", [1, 2])
def test_an_objective_may_leave_parts_of_the_model_as_they_are(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    """Even if the model then translates worse than a guess, which is an error for other losses."""
    monkeypatch.setattr("nmt.training.train.describe_useless_model", lambda *_: "it is useless")
    config = recipe("training.max_steps=2", f"training.threads={threads}")
    run = train(config, tmp_path / "run", quiet, Callbacks(objective=of_encoder))
    found = load_weights(run.checkpoint(2))
    torch.manual_seed(config.seed)
    before = dict(build_model(config, Tokenizer.load(run.tokenizer)).named_parameters())
    changed = {name for name, weight in found.items() if not torch.equal(weight, before[name])}
    assert changed
    assert not [name for name in changed if name.startswith("decoder")]


def test_terms_go_on_between_two_records_when_a_run_is_resumed(
    recipe: Recipe, tmp_path: Path
) -> None:
    def kept(model: Transformer, batch: Batch) -> Loss:
        loss = smoothed(model, batch)
        return loss.plus("half", loss.cross_entropy, weight=0.5)

    def stop(step: int, model: Transformer, loss: Tensor) -> None:
        if step == 3:
            signal.raise_signal(signal.SIGTERM)

    whole = run_with(recipe, tmp_path / "whole", objective=kept)
    with pytest.raises(StoppedBySignal):
        run_with(recipe, tmp_path / "run", objective=kept, after_step=stop)
    with pytest.raises(ConfigError, match=r"kept as its objective, now there is none of your own"):
        train(recipe(), tmp_path / "run", quiet)
    with pytest.raises(ConfigError, match=r"kept as its objective, now smoothed; give the same"):
        run_with(recipe, tmp_path / "run", objective=smoothed)
    resumed = run_with(recipe, tmp_path / "run", objective=kept)
    assert records(resumed) == records(whole)


def vector(model: Transformer, batch: Batch) -> Any:
    return model(batch.source, batch.target_input).sum()


def one_in_two(model: Transformer, batch: Batch) -> Loss:
    loss = smoothed(model, batch)
    return loss if batch.target_output[0, 0] % 2 else loss.plus("more", loss.total)


def nan(model: Transformer, batch: Batch) -> Loss:
    return Loss(smoothed(model, batch).total, torch.zeros(()), {"odd": torch.tensor(math.nan)})


@pytest.mark.parametrize(
    ("objective", "error", "problem"),
    [
        (vector, ConfigError, r"the objective returned a tensor \(\); expected nmt\.Loss, whose"),
        (lambda *_: 3.0, ConfigError, "the objective returned float; expected nmt.Loss"),
        (one_in_two, ConfigError, "gives other terms for some batches than for others"),
        (nan, DivergedError, "step 1: the term odd of the loss is nan for"),
    ],
)
def test_a_loss_that_cannot_be_learnt_is_refused(
    recipe: Recipe, tmp_path: Path, objective: Any, error: type[Exception], problem: str
) -> None:
    settings = "training.batch_tokens=60", "training.micro_batch_tokens=12"
    with pytest.raises(error, match=problem):
        run_with(recipe, tmp_path / "run", *settings, objective=objective)


def test_an_objective_and_guided_alignment_exclude_each_other(
    recipe: Recipe, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="part of the loss that smoothed replaces; set it to nul"):
        run_with(recipe, tmp_path / "run", "training.guided_alignment={}", objective=smoothed)
