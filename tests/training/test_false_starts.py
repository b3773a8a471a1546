"""What was left or changed in a run directory before it is gone on with."""

import json
import shutil
from pathlib import Path

import pytest

from nmt.data.tokens.tokenizer import Tokenizer
from nmt.errors import ConfigError, NmtError
from nmt.training import step as step_module
from nmt.training.train import train
from tests.training.runs import Recipe, quiet

FIRST = "training.max_steps=8"


def test_nothing_remains_of_a_start_that_failed(recipe: Recipe, tmp_path: Path) -> None:
    """It died before its first checkpoint, with other text and two vocabularies."""
    other = train(recipe(FIRST, "model.embeddings=separate"), tmp_path / "other", quiet)
    run = tmp_path / "run"
    shutil.copytree(other.tokenizer, run / "tokenizer")
    (run / "environment.json").write_text('{"data_fingerprint": "of another text"}', "utf-8")
    begun = train(recipe(FIRST), run, quiet)
    train(recipe(), run, quiet)
    environment = json.loads(begun.environment.read_text("utf-8"))
    assert environment["data_fingerprint"] != "of another text"
    assert len(environment["resumed"]) == 1
    assert [path.name for path in begun.tokenizer.iterdir()] == ["tokenizer.model"]


def test_a_lost_tokenizer_is_written_again(recipe: Recipe, tmp_path: Path) -> None:
    run = train(recipe(FIRST), tmp_path / "run", quiet)
    before = Tokenizer.load(run.tokenizer)
    shutil.rmtree(run.tokenizer)
    train(recipe(), run.path, quiet)
    assert not Tokenizer.load(run.tokenizer).differs_from(before)


def test_another_tokenizer_is_refused(recipe: Recipe, tmp_path: Path) -> None:
    run = train(recipe(FIRST), tmp_path / "run", quiet)
    other = train(recipe(FIRST, "tokenizer.vocabulary_size=40"), tmp_path / "other", quiet)
    shutil.copytree(other.tokenizer, run.tokenizer, dirs_exist_ok=True)
    with pytest.raises(ConfigError, match="its tokenizer differs from the one that was learnt"):
        train(recipe(), run.path, quiet)


def test_another_validation_set_is_refused(recipe: Recipe, corpus: Path, tmp_path: Path) -> None:
    for language in ("en", "de"):
        shutil.copy(corpus / f"validation.{language}", tmp_path)
    own = f"{{source: {tmp_path}/validation.en, target: {tmp_path}/validation.de}}"
    run = train(recipe(FIRST, f"data.validation={own}"), tmp_path / "run", quiet)
    for language in ("en", "de"):
        with (tmp_path / f"validation.{language}").open("a") as file:
            file.write("one more\n")
    with pytest.raises(ConfigError, match="the validation set has changed since this run began"):
        train(recipe(f"data.validation={own}"), run.path, quiet)


def test_copies_beside_the_checkpoints_are_left_alone(recipe: Recipe, tmp_path: Path) -> None:
    run = train(recipe(FIRST, "training.average=best"), tmp_path / "run", quiet)
    copy = run.checkpoints / "step-00000008-good"
    shutil.copytree(run.checkpoint(8), copy)
    (run.checkpoints / "step-00000008.tar.gz").touch()
    train(recipe("training.average=best"), run.path, quiet)
    assert copy.is_dir() and (run.checkpoints / "step-00000008.tar.gz").exists()
    assert copy not in run.saved_checkpoints()


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
        train(recipe(FIRST, "decoding.beam_size=5000"), tmp_path / "run", quiet)
    assert not (tmp_path / "run").exists()
