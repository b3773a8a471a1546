"""`nmt import`: a folder of another program becomes a run that every command takes."""

import json
import shutil
from pathlib import Path

import pytest

from nmt.errors import ConfigError, ExchangeError
from nmt.exchange import hub
from nmt.files import read_json
from tests.cli.commands import fail, invoke, lines_of, succeed, write_lines

pytest.importorskip("transformers")
from tests.exchange.huggingface_models import write_marian  # noqa: E402

TEXT = ["a dog sleeps", "", "the man reads"]


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hub") / "opus-mt-en-de"
    write_marian(folder)
    (folder / "tokenizer_config.json").unlink()
    return folder


@pytest.fixture(scope="module")
def run(theirs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "run"
    result = invoke("import", theirs, "-o", path)
    assert result.stdout == f"{path}\n"
    assert f"imported {theirs}: en-de, " in result.stderr and "licence unknown" in result.stderr
    return path


def test_every_command_takes_an_imported_run(run: Path, tmp_path: Path) -> None:
    source, target = write_lines(tmp_path / "s", TEXT), write_lines(tmp_path / "t", TEXT)
    options = ("--model", run, "--device", "cpu")
    assert len(lines_of("translate", *options, text="\n".join(TEXT) + "\n")) == 3
    assert "BLEU" in succeed("eval-bleu", *options, "--source", source, "--reference", target)
    pairs = write_lines(tmp_path / "pairs", [f"{text}\t{text}" for text in TEXT])
    assert len(lines_of("score", *options, pairs)) == 3
    copy = Path(shutil.copytree(run, tmp_path / "copy"))
    succeed("report", "--model", copy)
    assert (copy / "report.html").is_file()


def test_an_imported_run_is_fine_tuned_resumed_without_its_parent_and_exported(
    run: Path, theirs: Path, tmp_path: Path
) -> None:
    parent = Path(shutil.copytree(run, tmp_path / "parent"))
    source = write_lines(tmp_path / "s", ["a dog", "the green park"] * 8)
    target = write_lines(tmp_path / "t", ["ein Hund", "im Park"] * 8)
    text = f"{{source: {source}, target: {target}}}"
    recipe = tmp_path / "mine.yaml"
    recipe.write_text(
        f"data: {{directory: {tmp_path}/data, train: {text}, validation: {text}}}\n"
        "model: {dropout: 0.3}\n"
        f"training: {{initialize_from: {parent}, max_steps: 2, checkpoint_every: 2, "
        "warmup_steps: 1, peak_learning_rate: 1e-3, batch_tokens: 64, device: cpu}\n"
    )
    tuned = tmp_path / "tuned"
    command = ("train", "--config", recipe, "--run-dir", tuned)
    log = invoke(*command).stderr
    assert "initialised 86 of 86" in log or "initialised" in log and "new, or" not in log
    shutil.rmtree(parent)
    resumed = invoke(*command, "--set", "training.max_steps=4")
    assert resumed.exit_code == 0, resumed.exception
    config = (tuned / "config.yaml").read_text()
    assert "dropout: 0.3" in config and "activation: swish" in config and "d_model: 16" in config
    assert (tuned / "imported" / "vocab.json").read_bytes() == (theirs / "vocab.json").read_bytes()
    out = tmp_path / "out"
    sentences = write_lines(tmp_path / "verify", TEXT)
    succeed("export", tuned, "--to", "huggingface", "-o", out, "--verify", sentences)
    assert (
        read_json(out / "config.json")["vocab_size"]
        == read_json(theirs / "config.json")["vocab_size"]
    )


def test_a_source_that_cannot_be_read_is_one_sentence(run: Path, tmp_path: Path) -> None:
    output = ("-o", tmp_path / "new")
    message = fail(ConfigError, "import", "nowhere", *output)
    assert message.startswith("nowhere: there is no such file or folder, and it is no name of a")
    assert "exists already" in fail(ConfigError, "import", run, "-o", run)
    message = fail(ExchangeError, "import", run, *output)
    assert message.startswith(f"{run}: it holds neither config.json (Hugging Face) nor decoder.yml")
    message = fail(ConfigError, "import", run, "--revision", "x", *output)
    assert message.startswith("--revision is for a model of the Hub")
    assert not (tmp_path / "new").exists()


def test_a_model_of_the_hub_is_downloaded_by_its_name(
    theirs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def download(name: str, revision: str | None, files: object) -> tuple[Path, str]:
        asked.append((name, revision))
        return theirs, "0123abc"

    monkeypatch.setattr(hub, "download_model", download)
    monkeypatch.chdir(tmp_path)
    succeed("import", "Owner/opus-mt-en-fr", "-o", "run", "--revision", "main")
    assert asked == [("Owner/opus-mt-en-fr", "main")]
    origin = json.loads((tmp_path / "run" / "imported" / "provenance.json").read_text())
    assert (origin["source"], origin["revision"]) == ("Owner/opus-mt-en-fr", "0123abc")
    assert "target_language: fr" in (tmp_path / "run" / "config.yaml").read_text()
