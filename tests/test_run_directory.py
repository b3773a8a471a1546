"""One writer at a time, and a run that is found, or an error that says what is missing."""

import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from nmt.checkpoint import WEIGHTS, save_checkpoint, weights_of
from nmt.config import Config, ModelConfig, TokenizerConfig
from nmt.config_file import load_config
from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.vocabulary import learn_vocabulary
from nmt.errors import CheckpointError, ConfigError, NmtError, RunDirectoryBusyError
from nmt.run_directory import RunDirectory, build_model, find_run, load_run

CPU = torch.device("cpu")
CONFIG = Config(
    tokenizer=TokenizerConfig(kind="char", vocabulary_size=30),
    model=ModelConfig(d_model=8, heads=2, d_ff=8, encoder_layers=1, decoder_layers=1),
)


@pytest.fixture(scope="module")
def made_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Checkpoints of steps 1 and 2 and an average, each filled with its own number."""
    run = RunDirectory(tmp_path_factory.mktemp("runs") / "tiny")
    run.create()
    run.write_config(CONFIG)
    pairs = [SentencePair("a small dog", "ein kleiner hund")]
    tokenizer = learn_vocabulary(pairs, CONFIG.tokenizer)
    tokenizer.save(run.tokenizer)
    model = build_model(CONFIG, tokenizer)
    for number, folder in ((1, run.checkpoint(1)), (2, run.checkpoint(2)), (3, run.averaged)):
        for parameter in model.parameters():
            torch.nn.init.constant_(parameter, number)
        save_checkpoint(folder, weights_of(model))
    run.write_json(run.best, {"weights": "checkpoints/step-00000001"})
    return run.path


@pytest.fixture
def run(made_run: Path, tmp_path: Path) -> RunDirectory:
    """A copy: copying a run directory is enough to use it elsewhere."""
    return RunDirectory(shutil.copytree(made_run, tmp_path / "copy"))


def number_of(path: Path, checkpoint: str = "best") -> float:
    """Which of the three sets of weights is loaded."""
    return next(load_run(path, CPU, checkpoint).model.parameters()).flatten()[0].item()


@pytest.mark.parametrize(
    ("name", "number"),
    [("best", 1), ("last", 2), ("step-1", 1), ("step-00000002", 2), ("averaged", 3)],
)
def test_each_name_loads_its_weights(run: RunDirectory, name: str, number: int) -> None:
    assert number_of(run.path, name) == number


def test_best_follows_best_json(run: RunDirectory) -> None:
    run.write_json(run.best, {"weights": "averaged"})
    assert number_of(run.path) == 3


def test_best_is_the_last_while_nothing_is_known(run: RunDirectory) -> None:
    run.best.unlink()
    assert number_of(run.path) == 2


def test_a_checkpoint_folder_inside_a_run_is_loaded_itself(run: RunDirectory) -> None:
    assert number_of(run.checkpoint(2)) == 2
    assert number_of(run.averaged) == 3
    assert find_run(run.checkpoint(2)).path == run.path


def test_a_loaded_run_is_ready_to_translate(run: RunDirectory) -> None:
    loaded = load_run(str(run.path), CPU)
    assert loaded.config == CONFIG
    assert not loaded.model.training
    assert loaded.path == run.checkpoint(1)
    assert loaded.tokenizer.source.encode(["a dog"])[0][-1] == 3


@pytest.mark.parametrize("name", ["step-7", "newest", "step-x", "step-²", "step-" + 5000 * "9", ""])
def test_an_unknown_checkpoint_is_refused_with_those_there_are(
    run: RunDirectory, name: str
) -> None:
    expected = rf"no checkpoint '{name}'; it has: step-00000001, step-00000002"
    with pytest.raises(CheckpointError, match=expected):
        load_run(run.path, CPU, name)


@pytest.mark.parametrize("name", ["best", "last", "averaged"])
def test_a_run_without_checkpoints_says_so(run: RunDirectory, name: str) -> None:
    shutil.rmtree(run.checkpoints)
    shutil.rmtree(run.averaged)
    with pytest.raises(
        CheckpointError, match=rf"no checkpoint '{name}'; it has: no checkpoint yet"
    ):
        load_run(run.path, CPU, name)


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"nowhere: not a run directory: no such directory"):
        load_run(tmp_path / "nowhere", CPU)
    (tmp_path / "empty").mkdir()
    with pytest.raises(CheckpointError, match=r"empty: .* it has no config.yaml; give what `nmt"):
        load_run(tmp_path / "empty", CPU)


def test_a_run_without_its_tokenizer_is_refused(run: RunDirectory) -> None:
    shutil.rmtree(run.tokenizer)
    with pytest.raises(NmtError, match="copy/tokenizer: no tokenizer here"):
        load_run(run.path, CPU)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"bleu": 1}'])
def test_a_damaged_best_json_is_an_error_of_ours(run: RunDirectory, text: str) -> None:
    run.best.write_text(text)
    with pytest.raises(CheckpointError, match=r"best.json: damaged: .*; choose others: last"):
        load_run(run.path, CPU)
    assert number_of(run.path, "last") == 2


def test_damaged_weights_are_never_used(run: RunDirectory) -> None:
    file = run.checkpoint(1) / WEIGHTS
    file.write_bytes(file.read_bytes()[:-1] + b"!")
    with pytest.raises(CheckpointError, match=rf"{WEIGHTS}: damaged"):
        load_run(run.path, CPU)


def test_weights_that_do_not_fit_the_configuration_are_refused(run: RunDirectory) -> None:
    model = CONFIG.model.model_copy(update={"d_ff": 9})
    run.write_config(CONFIG.model_copy(update={"model": model}))
    with pytest.raises(CheckpointError, match=r"weights of another model: encoder\..*\(8, 8\)"):
        load_run(run.path, CPU)


def test_a_damaged_tokenizer_or_configuration_is_an_error_of_ours(run: RunDirectory) -> None:
    model = run.tokenizer / "tokenizer.model"
    whole = model.read_bytes()
    model.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(NmtError, match="tokenizer"):
        load_run(run.path, CPU)
    model.write_bytes(whole)
    run.config.write_text("model: {d_modell: 8}\n", "utf-8")
    with pytest.raises(ConfigError, match=r"config.yaml:1: unknown key .*did you mean 'd_model'"):
        load_run(run.path, CPU)


def test_the_configuration_is_kept_whole(run: RunDirectory) -> None:
    assert load_config(str(run.config)) == CONFIG
    assert "label_smoothing: 0.1" in run.config.read_text("utf-8")


def test_json_is_replaced_at_once(run: RunDirectory) -> None:
    run.write_json(run.last, {"step": 1, "name": "größer"})
    run.write_json(run.last, {"step": 2})
    assert json.loads(run.last.read_text("utf-8")) == {"step": 2}
    assert not list(run.path.glob("*.tmp")) and not list(run.path.glob(".*.tmp"))


def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be written: Not a directory.*--run-dir"):
        RunDirectory(tmp_path / "file" / "run").create()


def test_creating_leaves_no_probe(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "a" / "b")
    run.create()
    run.create()
    assert [p.name for p in run.path.iterdir()] == ["checkpoints"]


# -- the lock -------------------------------------------------------------------------------------

ASK = """
import sys
from nmt.errors import NmtError
from nmt.run_directory import RunDirectory
try:
    with RunDirectory(sys.argv[1]).lock():
        print("mine")
except NmtError as error:
    print(error)
    sys.exit(error.exit_code)
"""


def ask_for_lock(path: Path, project: Path) -> subprocess.CompletedProcess[str]:
    """Another process asks for the run directory."""
    return subprocess.run(
        [sys.executable, "-c", ASK, str(path)], cwd=project, capture_output=True, text=True
    )


def test_a_second_process_is_refused_and_told_who_is_there(tmp_path: Path, project: Path) -> None:
    with RunDirectory(tmp_path).lock():
        refused = ask_for_lock(tmp_path, project)
    assert refused.returncode == RunDirectoryBusyError.exit_code == 75
    assert f"{tmp_path}: in use by process {os.getpid()} on " in refused.stdout
    assert "wait for it or choose another --run-dir" in refused.stdout
    assert ask_for_lock(tmp_path, project).stdout == "mine\n"


def test_a_lock_dies_with_its_process(tmp_path: Path) -> None:
    (tmp_path / ".lock").write_text("process 1 on a machine that lost power")
    with RunDirectory(tmp_path).lock(), pytest.raises(RunDirectoryBusyError, match="in use by"):
        RunDirectory(tmp_path).lock()
    with RunDirectory(tmp_path).lock():
        assert "lost power" not in (tmp_path / ".lock").read_text()
    assert (tmp_path / ".lock").read_text() == ""  # seen from elsewhere, nobody is there any more


def test_a_checkpoint_that_is_gone_is_not_replaced_by_another(run: RunDirectory) -> None:
    gone = run.checkpoint(987)
    with pytest.raises(CheckpointError, match="step-00000987: not a run directory: no such"):
        load_run(gone, torch.device("cpu"))


def test_leftovers_of_a_killed_process_are_cleared(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    run.create()
    (run.checkpoints / ".step-00000003.17.tmp").mkdir()
    (tmp_path / "averaged").mkdir()
    (tmp_path / ".averaged.old").mkdir()
    (tmp_path / ".best.json.tmp").touch()
    run.checkpoint(2).mkdir()
    own = [".bashrc.old", ".notes.tmp"]  # somebody trains in a folder that has other things
    for name in own:
        (tmp_path / name).mkdir()
    run.clear_leftovers()
    assert [path.name for path in run.checkpoints.iterdir()] == ["step-00000002"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [*own, "averaged", "checkpoints"]


def test_a_folder_whose_successor_never_came_is_put_back(tmp_path: Path) -> None:
    """What a process leaves that is killed between the two renames of a replacement."""
    run = RunDirectory(tmp_path)
    run.create()
    (run.checkpoints / ".step-00000003.old").mkdir()
    (run.checkpoints / ".step-00000003.17.tmp").mkdir()
    run.clear_leftovers()
    assert [path.name for path in run.checkpoints.iterdir()] == ["step-00000003"]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_weights_that_are_not_numbers_are_refused(run: RunDirectory, value: float) -> None:
    model = load_run(run.path, CPU).model
    with torch.no_grad():
        model.decoder.layers[0].self_attention.key.weight[3, 3] = value
    save_checkpoint(run.checkpoint(3), weights_of(model))
    with pytest.raises(
        CheckpointError,
        match=r"step-00000003: decoder.*self_attention.key.weight holds NaN.*; choose another",
    ):
        load_run(run.path, CPU, "last")
