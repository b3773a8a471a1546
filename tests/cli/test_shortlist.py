"""`nmt shortlist` learns, and `--shortlist` translates with what it has learnt."""

import shutil
from pathlib import Path

import pytest
import torch

from nmt.checkpoint import save_checkpoint, weights_of
from nmt.config_file import load_config
from nmt.data.prepared import prepare
from nmt.errors import CheckpointError, DataError
from nmt.run_directory import RunDirectory, build_model
from tests.cli.commands import fail, invoke

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


def test_a_shortlist_is_learnt_and_used(run: RunDirectory, tmp_path: Path) -> None:
    learnt = invoke("shortlist", "--model", run.path)
    assert learnt.exit_code == 0
    assert learnt.stdout.startswith(f"{run.shortlist}\n--shortlist 5 ")
    assert "% of the validation set's tokens" in learnt.stdout
    text, output = tmp_path / "text", tmp_path / "output"
    text.write_text(f"{TEXT}\n\n{TEXT}\n")
    options = ("translate", "--model", run.path, text, "-o", output, "--workers", 1)
    assert invoke(*options).exit_code == 0
    whole = output.read_text()
    assert invoke(*options, "--shortlist", 1).exit_code == 0
    lines = output.read_text().split("\n")
    assert len(lines) == 4
    assert lines[0] == lines[2]
    assert lines[1] == ""
    assert output.read_text() != whole  # this model would write what no sentence has
    scored = invoke("eval-bleu", "--model", run.path, "--shortlist", 3, "--no-confidence")
    assert scored.exit_code == 0
    assert "shortlist 3" in scored.stdout


def test_another_training_text_is_refused(run: RunDirectory) -> None:
    train = Path(load_config(str(run.config)).data.train[0].paths[0])
    before = train.read_bytes()
    try:
        train.write_bytes(before + "ß ß ß\n".encode())
        target = train.with_suffix(".de")
        target_before = target.read_bytes()
        target.write_bytes(target_before + "ß ß ß\n".encode())
        result = invoke("shortlist", "--model", run.path)
    finally:
        train.write_bytes(before)
        target.write_bytes(target_before)
    assert isinstance(result.exception, DataError)
    assert "not the vocabulary" in str(result.exception)
    assert not run.shortlist.exists()


def test_a_damaged_shortlist_is_named(run: RunDirectory) -> None:
    run.shortlist.write_bytes(b"damaged")
    message = fail(CheckpointError, "eval-bleu", "--model", run.path, "--shortlist", 3)
    assert "learn it again" in message
