"""`from nmt import load` gives a Python program what the commands give."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import nmt
from nmt.device import pick_precision
from nmt.errors import CheckpointError, ConfigError
from tests.cli.commands import succeed

LINES = ["a small dog", "", "😀 b", "the cat ."]
HEAVY = ("torch", "numpy", "sentencepiece", "pydantic", "yaml", "typer", "safetensors", "tqdm")


def test_importing_the_package_loads_nothing(project: Path) -> None:
    code = f"import sys, nmt; nmt.load; print(*(m for m in {HEAVY} if m in sys.modules))"
    output = subprocess.run(
        [sys.executable, "-S", "-c", code], cwd=project, capture_output=True, text=True, check=True
    )
    assert output.stdout == "\n"


@pytest.mark.parametrize("beam_size", [1, 3])
def test_it_gives_the_text_of_the_command(tiny_run: Path, beam_size: int) -> None:
    options = ["--model", str(tiny_run), "--beam-size", str(beam_size), "--length-penalty", "1"]
    printed = succeed("translate", *options, text="\n".join(LINES))
    translator = nmt.load(tiny_run, beam_size=beam_size, length_penalty=1)
    assert translator.translate(LINES) == printed.split("\n")[:-1]
    assert translator.translate(LINES[0]) == translator.translate(LINES)[0]


def test_settings_left_out_are_the_runs_own(tiny_run: Path) -> None:
    translator = nmt.load(str(tiny_run), device="cpu")
    assert translator.translator.settings == translator.translator.run.config.decoding
    assert translator.translator.precision == pick_precision("auto", torch.device("cpu"))
    assert translator.translator.run.path.name == "step-00000001"


def test_settings_given_replace_the_runs_own(tiny_run: Path) -> None:
    translator = nmt.load(tiny_run, "step-1", precision="bf16", beam_size=7, batch_tokens=99)
    settings = translator.translator.settings
    assert (settings.beam_size, settings.batch_tokens, settings.max_length_offset) == (7, 99, 3)
    assert translator.scorer.batch_tokens == 99
    assert translator.translator.precision == translator.scorer.precision == "bf16"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"beam_size": 0}, "load: 'beam_size': input should be greater than or equal to 1, got 0"),
        ({"beam_size": 2.5}, "load: 'beam_size': .* got 2.5"),
        ({"length_penalty": float("nan")}, "load: 'length_penalty'"),
        ({"batch_tokens": "x"}, "load: 'batch_tokens': .* got 'x'"),
        ({"device": "tpu"}, "device: 'tpu' was asked for, but PyTorch finds only cpu"),
        ({"precision": "fp8"}, "load: 'precision': expected one of auto, .*int8, got 'fp8'"),
    ],
)
def test_impossible_settings_are_refused(
    tiny_run: Path, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        nmt.load(tiny_run, **settings)


def test_what_is_no_run_is_refused(tiny_run: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="not a run directory"):
        nmt.load(tmp_path)
    with pytest.raises(CheckpointError, match="no checkpoint 'step-9'"):
        nmt.load(tiny_run, checkpoint="step-9")
