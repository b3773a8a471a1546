"""One writer at a time, and a run that is found, or an error that says what is missing."""

import math
import os
import shutil
from pathlib import Path

import pytest
import torch

from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.vocabulary import learn_vocabulary
from nmt.errors import CheckpointError, ConfigError, NmtError, RunDirectoryBusyError
from nmt.files import write_json
from nmt.recipe.config import Config, ModelConfig, TokenizerConfig
from nmt.recipe.config_file import load_config
from nmt.run.checkpoint import save_checkpoint, weights_of
from nmt.run.checkpoint_files import WEIGHTS
from nmt.run.directory import RunDirectory, find_run, weights_folder
from nmt.run.model import build_model, load_model

CPU = torch.device("cpu")
CONFIG = Config(
    tokenizer=TokenizerConfig(kind="char", vocabulary_size=30),
    model=ModelConfig(d_model=8, heads=2, d_ff=8, encoder_layers=1, decoder_layers=1),
)


@pytest.fixture(scope="module")
def made_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with checkpoints of steps 1 and 2 and an average; step 1 is the best."""
    run = RunDirectory(tmp_path_factory.mktemp("runs") / "tiny")
    run.checkpoints.mkdir(parents=True)
    run.write_config(CONFIG)
    tokenizer = learn_vocabulary([SentencePair("a small dog", "ein hund")], CONFIG.tokenizer)
    tokenizer.save(run.tokenizer)
    model = build_model(CONFIG, tokenizer)
    for folder in (run.checkpoint(1), run.checkpoint(2), run.averaged):
        save_checkpoint(folder, weights_of(model))
    write_json(run.best, {"weights": "checkpoints/step-00000001"})
    return run.path


@pytest.fixture
def run(made_run: Path, tmp_path: Path) -> RunDirectory:
    """A copy: copying a run directory is enough to use it elsewhere."""
    return RunDirectory(shutil.copytree(made_run, tmp_path / "copy"))


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("best", "checkpoints/step-00000001"),
        ("last", "checkpoints/step-00000002"),
        ("step-1", "checkpoints/step-00000001"),
        ("step-00000002", "checkpoints/step-00000002"),
        ("averaged", "averaged"),
    ],
)
def test_each_name_finds_its_weights(run: RunDirectory, name: str, folder: str) -> None:
    assert weights_folder(run.path, name) == run.path / folder
    assert weights_folder(run.path / folder) == run.path / folder
    assert find_run(run.path / folder).path == run.path


def test_best_follows_best_json_or_is_the_last_and_is_ready_to_translate(run: RunDirectory) -> None:
    loaded = load_model(str(run.path), CPU)
    assert (loaded.config, loaded.path) == (CONFIG, run.checkpoint(1))
    assert not loaded.model.training
    assert loaded.tokenizer.source.encode(["a dog"])[0][-1] == 3
    write_json(run.best, {"weights": "averaged"})
    assert weights_folder(run.path) == run.averaged
    run.best.unlink()
    assert weights_folder(run.path) == run.checkpoint(2)


@pytest.mark.parametrize("name", ["step-7", "newest", "step-x", "step-²", "step-" + 5000 * "9", ""])
def test_an_unknown_checkpoint_is_refused_and_the_existing_ones_are_listed(
    run: RunDirectory, name: str
) -> None:
    expected = rf"no checkpoint '{name}'; it has: step-00000001, step-00000002"
    with pytest.raises(CheckpointError, match=expected):
        load_model(run.path, CPU, name)


def test_a_run_without_checkpoints_says_so(run: RunDirectory) -> None:
    shutil.rmtree(run.checkpoints)
    shutil.rmtree(run.averaged)
    for name in ("best", "last", "averaged"):
        with pytest.raises(CheckpointError, match=f"'{name}'; it has: no checkpoint yet"):
            load_model(run.path, CPU, name)


def test_a_folder_that_is_no_run_is_refused(run: RunDirectory, tmp_path: Path) -> None:
    for absent in (tmp_path / "nowhere", run.checkpoint(987)):
        with pytest.raises(CheckpointError, match=rf"{absent}: not a run .*: no such directory"):
            load_model(absent, CPU)
    (tmp_path / "empty").mkdir()
    with pytest.raises(CheckpointError, match=r"empty: .* it has no config.yaml; give what `nmt"):
        load_model(tmp_path / "empty", CPU)


LEADS_OUT = ("/tmp", "..", "../other", "checkpoints/../../other")


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "null", '{"bleu": 1}', '{"weights": 3}', "[" * 100_000),
        *(f'{{"weights": "{path}"}}' for path in LEADS_OUT),
    ],
)
def test_a_damaged_best_json_is_a_checkpoint_error(run: RunDirectory, text: str) -> None:
    run.best.write_text(text)
    with pytest.raises(CheckpointError, match=r"best.json: damaged: .*; choose others: last"):
        load_model(run.path, CPU)
    assert load_model(run.path, CPU, "last").path == run.checkpoint(2)


def test_weights_that_do_not_fit_the_configuration_are_refused(run: RunDirectory) -> None:
    model = CONFIG.model.model_copy(update={"d_ff": 9})
    run.write_config(CONFIG.model_copy(update={"model": model}))
    with pytest.raises(CheckpointError, match=r"weights of another model: encoder\..*\(8, 8\)"):
        _ = load_model(run.path, CPU).model


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_weights_that_are_not_finite_are_refused(run: RunDirectory, value: float) -> None:
    model = load_model(run.path, CPU).model
    with torch.no_grad():
        model.decoder.layers[0].self_attention.key.weight[3, 3] = value
    save_checkpoint(run.checkpoint(3), weights_of(model))
    with pytest.raises(
        CheckpointError,
        match=r"step-00000003: decoder.*self_attention.key.weight holds NaN.*; choose another",
    ):
        load_model(run.path, CPU, "last")


def test_damaged_weights_tokenizer_or_configuration_is_an_error_of_ours(run: RunDirectory) -> None:
    run.config.write_text("model: {d_modell: 8}\n", "utf-8")
    with pytest.raises(ConfigError, match=r"config.yaml:1: unknown key .*did you mean 'd_model'"):
        load_model(run.path, CPU)
    run.write_config(CONFIG)
    file = run.checkpoint(1) / WEIGHTS
    file.write_bytes(file.read_bytes()[:-1] + b"!")
    with pytest.raises(CheckpointError, match=rf"{WEIGHTS}: damaged"):
        load_model(run.path, CPU)
    model = run.tokenizer / "tokenizer.model"
    model.write_bytes(model.read_bytes()[:100])
    with pytest.raises(NmtError, match="tokenizer"):
        load_model(run.path, CPU)
    model.unlink()
    with pytest.raises(NmtError, match="copy/tokenizer: no tokenizer here"):
        load_model(run.path, CPU)


def test_the_configuration_is_written_with_all_defaults(run: RunDirectory) -> None:
    assert load_config(str(run.config)) == CONFIG
    assert "label_smoothing: 0.1" in run.config.read_text("utf-8")


# -- one process at a time ------------------------------------------------------------------------


def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(ConfigError, match="cannot be written: Not a directory.*`run_dir`"),
        RunDirectory(tmp_path / "file" / "run").reserve(),
    ):
        pass


def test_a_directory_in_which_nothing_was_written_is_removed(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "a" / "b")
    for write in (False, True):
        with run.reserve():
            assert sorted(path.name for path in run.path.iterdir()) == [".lock", "checkpoints"]
            if write:
                run.write_config(CONFIG)
        assert run.path.exists() is write


def test_a_second_lock_is_refused_and_told_which_process_is_there(tmp_path: Path) -> None:
    run, file = RunDirectory(tmp_path), tmp_path / ".lock"
    file.write_text("process 1 on a machine that lost power")
    refused = rf"{tmp_path}: in use by process {os.getpid()} on .*; wait for it or choose another"
    with run.lock():
        assert "lost power" not in file.read_text()
        with pytest.raises(RunDirectoryBusyError, match=refused) as raised, run.lock():
            pass
    assert raised.value.exit_code == 75
    assert file.read_text() == ""  # seen from elsewhere, nobody is there any more


def test_leftovers_of_a_killed_process_are_cleared(tmp_path: Path) -> None:
    """A folder that was to be replaced gets its name back if the process died between renames."""
    run = RunDirectory(tmp_path)
    for folder in (
        run.checkpoints / ".step-00000003.17.tmp",
        run.checkpoints / ".step-00000004.old",
        run.checkpoints / ".step-00000004.17.tmp",
        run.checkpoint(2),
        run.averaged,
        tmp_path / ".averaged.old",
        run.translations,
        *(own := [tmp_path / ".bashrc.old", tmp_path / ".notes.tmp"]),
    ):
        folder.mkdir(parents=True)
    for file in (tmp_path / ".metrics.jsonl.17.tmp", run.translations / ".step-00000005.txt.1.tmp"):
        file.touch()
    write_json(run.config, {})
    with run.reserve():
        assert run.saved_checkpoints() == [run.checkpoint(2), run.checkpoint(4)]
        assert not list(run.translations.iterdir())
        left = {run.path / ".lock", run.checkpoints, run.averaged, run.translations, run.config}
        assert set(run.path.iterdir()) == {*left, *own}


def test_checkpoints_are_sorted_by_step_and_other_names_are_ignored(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    for step in (1_000_000, 1000, 99_990):
        run.checkpoint(step).mkdir(parents=True)
    (run.checkpoints / "step-00001000-good").mkdir()
    assert [run.step_of(path) for path in run.saved_checkpoints()] == [1000, 99_990, 1_000_000]


def test_a_command_that_is_advised_can_be_pasted(tmp_path: Path) -> None:
    foreign = tmp_path / "my model"
    foreign.mkdir()
    (foreign / "config.json").write_text("{}")
    with pytest.raises(CheckpointError, match=f"`nmt import '{foreign}' -o RUN`"):
        find_run(foreign)


def test_paths_of_texts_start_in_the_folder_in_which_the_run_was_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, resumed, here = (tmp_path / name for name in ("home", "resumed", "here"))
    for folder in (home, resumed, here):
        (folder / "text").mkdir(parents=True)
    for path in ("text/a.en", "text/a.de", "test.tsv"):
        (home / path).write_text("x\n")
    (resumed / "text/a.de").write_text("x\n")
    (here / "test.tsv").write_text("of another project\n")
    aligned = {"source": "text/a.en", "target": "text/a.de"}
    data = {
        "train": [aligned, {"source": str(home / "b"), "target": "s3://bucket/b"}],
        "validation": [{"file": "gone.tsv"}],
        "test": [{"file": "test.tsv"}],
        "directory": "text",
        "synthetic": [{"folder": "text"}],
    }
    config = Config.model_validate({"data": data, "tokenizer": {"model": "text/a.en"}})
    run = RunDirectory(tmp_path / "run")
    run.path.mkdir()
    run.write_config(config)
    monkeypatch.chdir(here)
    assert run.config_with_texts() == config  # of an older version, which recorded no folder
    sessions = [{"folder": str(resumed)}, {"folder": 3}, "x"]
    write_json(run.environment, {"folder": str(home), "resumed": sessions})
    found = run.config_with_texts()
    [first, second] = found.data.train
    # the folder in which the training was resumed counts first
    assert first.paths == [str(home / "text/a.en"), str(resumed / "text/a.de")]
    assert second.paths == [str(home / "b"), "s3://bucket/b"]
    assert found.data.validation[0].paths == ["gone.tsv"]
    assert found.data.test[0].paths == [str(home / "test.tsv")]
    assert found.data.directory == str(resumed / "text")
    assert found.data.synthetic[0].folder == str(resumed / "text")
    assert found.tokenizer.model == str(home / "text/a.en")
    monkeypatch.chdir(home)
    assert run.config_with_texts().data.test[0].paths == ["test.tsv"]  # as short as in the recipe
    shutil.move(home, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    assert run.config_with_texts().data.test[0].paths == ["test.tsv"]
