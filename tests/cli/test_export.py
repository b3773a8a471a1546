"""`nmt export` writes a verified folder, or nothing at all."""

import errno
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.errors import (
    ConfigError,
    DataError,
    ExchangeError,
    MissingExtraError,
    NmtError,
    StoppedBySignal,
)
from nmt.exchange import ctranslate2, safetensors_folder
from nmt.exchange.engine import EngineTranslation
from nmt.run.model import load_model
from tests.cli.commands import fail, invoke, lines_of, write_lines

pytest.importorskip("ctranslate2")
FORMATS = ["ctranslate2", "safetensors"]


@pytest.fixture
def output(tmp_path: Path) -> Path:
    """The folder to write, in a folder of its own."""
    return tmp_path / "exports" / "model"


@pytest.mark.parametrize("to", FORMATS)
def test_an_export_is_verified_with_the_validation_set_and_has_a_card(
    tiny_run: Path, output: Path, to: str
) -> None:
    result = invoke("export", tiny_run, "--to", to, "-o", output)
    assert result.stdout == f"{output}\n"
    assert "step-00000001; verified: " in result.stderr
    if to == "ctranslate2":  # one of the three lines is blank
        assert "2 of 2 greedy translations are equal token by token" in result.stderr
    card = (output / "README.md").read_text("utf-8")
    assert "# Translation from en to de" in card and "verified: " in card and "import " in card
    assert os.listdir(output.parent) == [output.name]


def test_a_safetensors_folder_is_a_model_for_every_command(tiny_run: Path, output: Path) -> None:
    invoke("export", tiny_run, "--to", "safetensors", "-o", output)
    text = "a dog\n"
    translated = [lines_of("translate", "-m", model, text=text) for model in (tiny_run, output)]
    assert translated[0] == translated[1]
    again = output.with_name("again")
    invoke("export", output, "--to", "safetensors", "-o", again)
    files = {path.name: path.read_bytes() for path in output.iterdir() if path.is_file()}
    files.pop("README.md")
    assert files == {name: (again / name).read_bytes() for name in files}


def test_sentences_of_a_file_verify_an_export_whose_validation_set_is_elsewhere(
    copied_run: Path, output: Path, tmp_path: Path
) -> None:
    config = copied_run / "config.yaml"
    config.write_text(config.read_text().replace("test.en", "gone.en"))
    arguments = ("export", copied_run, "--to", "ctranslate2", "-o", output)
    assert "is not here to verify the export with" in fail(ConfigError, *arguments)
    empty, sentences = write_lines(tmp_path / "empty", [""]), write_lines(tmp_path / "text", "abc")
    assert "no sentences" in fail(DataError, *arguments, "--verify", empty)
    assert not output.exists() and not list(output.parent.iterdir())
    assert "3 of 3" in invoke(*arguments, "--verify", sentences).stderr


def test_rounded_weights_are_verified_with_their_own_tolerance(
    tiny_run: Path, output: Path
) -> None:
    result = invoke(
        "export", tiny_run, "--to", "ctranslate2", "--quantization", "int16", "-o", output
    )
    assert "verified" in result.stderr
    assert "ctranslate2 (int16)" in (output / "README.md").read_text("utf-8")


def test_without_verification_the_card_says_so(
    tiny_run: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ctranslate2, "translate_with_ctranslate2", None)
    invoke("export", tiny_run, "--to", "ctranslate2", "-o", output, "--no-verify")
    assert "not verified (--no-verify)" in (output / "README.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--verify", "x", "--no-verify"], "--verify and --no-verify exclude each other"),
        (["--quantization", "int8"], "--to safetensors has no --quantization; leave it out"),
        (["--target-language", "de"], "--to safetensors has no --target-language; leave it out"),
    ],
)
def test_options_that_exclude_each_other_are_an_error(
    tiny_run: Path, output: Path, options: list[str], message: str
) -> None:
    arguments = ("export", tiny_run, "--to", "safetensors", "-o", output, *options)
    assert message in fail(ConfigError, *arguments)


def test_an_existing_folder_is_an_error_and_unchanged(tiny_run: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("text")
    message = fail(ConfigError, "export", tiny_run, "--to", "safetensors", "-o", tmp_path)
    assert message == (f"{tmp_path}: exists already; choose another folder, or remove it")
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize("to", ["ctranslate2", "huggingface", "marian", "onnx"])
def test_a_folder_whose_name_is_not_utf_8_is_an_error(
    tiny_run: Path, output: Path, to: str
) -> None:
    message = fail(DataError, "export", tiny_run, "--to", to, "-o", output.with_name("\udcff"))
    assert message.endswith(
        "\\udcff': the name of this file or folder is not UTF-8; give it another one"
    )
    assert not output.parent.exists()


def test_a_wrong_export_is_an_error_that_shows_the_sentence(
    tiny_run: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        ctranslate2,
        "translate_with_ctranslate2",
        lambda folder, texts: [EngineTranslation([], -1.0)] * len(texts),
    )
    message = fail(ExchangeError, "export", tiny_run, "--to", "ctranslate2", "-o", output)
    assert "2 of 2 translations differ, the first of them: 'a dog' becomes ['</s>']" in message
    assert list(output.parent.iterdir()) == []


def test_the_missing_program_is_named_and_nothing_is_left(
    tiny_run: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    message = fail(MissingExtraError, "export", tiny_run, "--to", "ctranslate2", "-o", output)
    assert "pip install 'nmt[exchange]'" in message
    assert list(output.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("failure", "error", "message"),
    [
        (OSError(errno.ENOSPC, "No space left"), ExchangeError, "is not written: No space left"),
        (StoppedBySignal("stopped by SIGINT"), StoppedBySignal, "stopped by SIGINT"),
    ],
)
@pytest.mark.parametrize("place", ["export", "flush"])
def test_a_full_disk_and_ctrl_c_leave_nothing(
    tiny_run: Path,
    output: Path,
    monkeypatch: pytest.MonkeyPatch,
    failure: Exception,
    error: type[NmtError],
    message: str,
    place: str,
) -> None:
    def stop(*arguments: Any) -> None:
        if place == "export":
            (arguments[1] / "half").write_text("half")
        raise failure

    if place == "export":
        monkeypatch.setattr(safetensors_folder, "export_safetensors", stop)
    else:
        monkeypatch.setattr("nmt.files._flush", stop)
        monkeypatch.setattr("nmt.files._write_to_disk", Path.write_bytes)
        monkeypatch.setattr(safetensors_folder, "export_safetensors", lambda loaded, folder: None)
        monkeypatch.setattr(safetensors_folder, "verify_safetensors", lambda loaded, folder: "")
    arguments = ("export", tiny_run, "--to", "safetensors", "-o", output)
    assert message in fail(error, *arguments)
    assert list(output.parent.iterdir()) == []
    assert load_model(tiny_run, torch.device("cpu"))


def test_a_package_of_argos_is_written_and_read_again(tiny_run: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    package = tmp_path / "out" / "translate-en_de-1_1.argosmodel"
    # the run is hardly trained: int8 would choose other tokens
    result = invoke("export", tiny_run, "--to", "argos", "--quantization", "int16", "-o", package)
    assert "verified: by CTranslate2: with rounded weights 2 of 2 sentences agree" in result.stderr
    assert [path.name for path in package.parent.iterdir()] == [package.name]
    again = invoke("import", package, "-o", tmp_path / "run")
    assert "en-de" in again.stderr and "its weights were stored as int16" in again.stderr
    message = fail(ConfigError, "export", tiny_run, "--to", "argos", "-o", tmp_path / "x.zip")
    assert "has a name such as translate-en_de-1_0.argosmodel" in message
