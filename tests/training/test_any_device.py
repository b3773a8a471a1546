"""A run on a device that no code names is as on a CPU, and a step waits only for the last one."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from torch.utils import backend_registration

import nmt
from nmt.recipe.config_file import dump_config
from nmt.run.directory import RunDirectory
from tests.training.runs import Recipe, Trained, assert_same_run, losses, records

SENTENCES = ["the old dog sees two", "the man eats", "two"]


@pytest.mark.skipif(
    not hasattr(backend_registration, "_setup_privateuseone_for_python_backend"),
    reason="this PyTorch cannot pretend to have another device",
)
@pytest.mark.parametrize("optimizer", ["adam", pytest.param("muon", marks=pytest.mark.slow)])
def test_a_device_that_nobody_knows_trains_and_translates_as_a_cpu_does(
    optimizer: str, recipe: Recipe, trained: Trained, project: Path, tmp_path: Path
) -> None:
    settings = [
        *("model.dropout=0", f"training.optimizer={optimizer}", "training.moving_average=0.5"),
        # so small that translations are not empty after six steps
        *("model.d_model=16", "model.heads=2", "model.d_ff=24"),
        *("training.max_steps=6", "training.validate_every=3", "training.checkpoint_every=2"),
    ]
    path = tmp_path / "recipe.yaml"
    path.write_text(dump_config(recipe(*settings, "training.device=pretend")), "utf-8")
    script = ["-m", "tests.training.on_pretend_device", str(path), str(tmp_path), *SENTENCES]
    command = [sys.executable, *script]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout)
    on_cpu, whole = trained(*settings), RunDirectory(tmp_path / "whole")
    expected, found = losses(on_cpu), losses(whole)
    assert found == {step: pytest.approx(figures, rel=1e-4) for step, figures in expected.items()}
    validations = [
        [record["loss"] for record in records(run) if record["event"] == "validation"]
        for run in (whole, on_cpu)
    ]
    assert validations[0] == pytest.approx(validations[1], rel=1e-4) and validations[0]
    as_on_pretend = nmt.load(on_cpu.path, precision="fp32")  # what auto is depends on the processor
    assert told["translations"] == as_on_pretend.translate(SENTENCES)
    assert any(told["translations"])
    assert_same_run(tmp_path / "resumed", whole)
    # a step reads the loss of the one before, unless that was read to be recorded or validated
    assert told["waits"] == [[0, 0], [0, 1], [0, 0], [0, 0], [0, 0], [0, 1]]
    assert "measured on pretend, fp32" in told["plan"]
