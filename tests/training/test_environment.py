"""environment.json tells why two runs differ, also where the system says little."""

import subprocess
from datetime import datetime
from pathlib import Path

import pytest
import torch

from nmt.files import read_json
from nmt.run.directory import RunDirectory
from nmt.training.environment import LIBRARIES, write_environment

CPU = torch.device("cpu")


def test_it_holds_what_was_run_and_on_what_and_each_resumed_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunDirectory(tmp_path)
    for command in ("begin", "resume", "resume again"):
        monkeypatch.setattr("sys.argv", ["nmt", command])
        write_environment(run, CPU, "fp32", 2, {"data_fingerprint": "fingerprint"})
    found = read_json(run.environment)
    assert found["command"] == ["nmt", "begin"] and found["folder"] == str(Path.cwd())
    assert [session["command"][1] for session in found["resumed"]] == ["resume", "resume again"]
    assert (found["processes"], found["precision"], found["device"]) == (2, "fp32", "cpu")
    assert found["data_fingerprint"] == "fingerprint"
    assert set(found["libraries"]) == set(LIBRARIES)
    # PyTorch adds how it was built, such as +cu130, which its package may leave out
    assert torch.__version__.startswith(found["libraries"]["torch"])
    assert datetime.fromisoformat(found["started"]).tzinfo is not None
    run.environment.write_text("damaged")
    write_environment(run, CPU, "fp32", 1, {})
    assert "resumed" not in read_json(run.environment)


def test_without_git_and_proc_there_is_no_revision_and_the_platform_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*arguments: object, **settings: object) -> str:
        raise FileNotFoundError

    run = RunDirectory(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(subprocess, "run", missing)
        patched.setattr("nmt.training.environment.processor_entry", lambda name: "")
        patched.setattr("platform.processor", lambda: "some processor")
        write_environment(run, CPU, "fp32", 1, {})
    found = read_json(run.environment)
    assert (found["git"], found["processor"]) == (None, "some processor")
