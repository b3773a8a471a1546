"""`nmt shortlist` learns, and `--shortlist` translates with what it has learnt."""

import shutil
from pathlib import Path

import pytest
import torch

from nmt.data.prepared import prepare
from nmt.errors import CheckpointError, DataError
from nmt.recipe.config_file import load_config
from nmt.run.checkpoint import save_checkpoint, weights_of
from nmt.run.directory import RunDirectory
from nmt.run.model import build_model
from tests.cli.commands import fail, invoke, lines_of, succeed, write_lines

TEXT = "a dog sleeps here on the grass"


@pytest.fixture
def run(copied_run: Path, tmp_path: Path) -> RunDirectory:
    """A copy of the tiny run with the vocabulary of its own training text."""
    run = RunDirectory(copied_run)
    config = load_config(str(run.config), [f"data.directory={tmp_path / 'data'}"])
    run.write_config(config)
    tokenizer = prepare(config, lambda line: None).tokenizer
    shutil.rmtree(run.tokenizer)
    tokenizer.save(run.tokenizer)
    torch.manual_seed(1)
    model = build_model(config, tokenizer)
    torch.nn.init.normal_(model.output_embedding.weight)
    save_checkpoint(run.checkpoint(1), weights_of(model))
    return run


def test_a_shortlist_is_learnt_and_used(run: RunDirectory) -> None:
    result = invoke("shortlist", "--model", run.path)
    learnt = result.stdout
    assert result.exit_code == 0 and "IBM Model 1" not in result.stderr  # no bar in a log
    assert learnt.startswith(f"{run.shortlist}\n--shortlist 5 ")
    assert "% of the validation set's tokens" in learnt
    command, text = ("translate", "--model", run.path, "--workers", 1), f"{TEXT}\n\n{TEXT}\n"
    lines = lines_of(*command, "--shortlist", 1, text=text)
    assert lines == [lines[0], "", lines[0]]
    assert lines != lines_of(*command, text=text)  # this model would write what no sentence has
    scored = succeed("eval-bleu", "--model", run.path, "--shortlist", 3, "--no-confidence")
    assert "shortlist 3" in scored


def test_another_training_text_is_refused(run: RunDirectory, tmp_path: Path) -> None:
    for language in ("en", "de"):
        write_lines(tmp_path / f"new.{language}", ["ß ß ß"] * 9)
    pair = f"{{source: {tmp_path}/new.en, target: {tmp_path}/new.de}}"
    run.write_config(load_config(str(run.config), [f"data.train={pair}"]))
    assert "not the vocabulary" in fail(DataError, "shortlist", "--model", run.path)
    assert not run.shortlist.exists()


def test_a_damaged_shortlist_is_named(run: RunDirectory) -> None:
    run.shortlist.write_bytes(b"damaged")
    message = fail(CheckpointError, "eval-bleu", "--model", run.path, "--shortlist", 3)
    assert "learn it again" in message
