"""environment.json tells why two runs differ, also where the system says little."""

import json
import subprocess
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.run_directory import RunDirectory
from nmt.training.environment import LIBRARIES, describe_environment, write_environment


def described() -> dict[str, Any]:
    return describe_environment(
        ["nmt", "train"], torch.device("cpu"), "fp32", 1, {"data_fingerprint": "fingerprint"}
    )


def test_it_holds_what_was_run_and_on_what() -> None:
    found = described()
    assert json.loads(json.dumps(found)) == found
    assert found["command"] == ["nmt", "train"]
    assert found["data_fingerprint"] == "fingerprint"
    assert set(found["libraries"]) == set(LIBRARIES)
    assert datetime.fromisoformat(found["started"]).tzinfo is not None


def test_without_git_there_is_no_revision(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*arguments: object, **settings: object) -> None:
        raise FileNotFoundError("git")

    monkeypatch.setattr(subprocess, "run", missing)
    assert described()["git"] is None


def test_without_proc_the_platform_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*arguments: object, **settings: object) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", missing)
    monkeypatch.setattr("platform.processor", lambda: "some processor")
    assert described()["processor"] == "some processor"


def test_a_resumed_run_keeps_what_it_was_begun_with(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    for command in ("begun", "resumed", "resumed again"):
        write_environment(run, {"command": command})
    kept = json.loads(run.environment.read_text("utf-8"))
    assert kept == {
        "command": "begun",
        "resumed": [{"command": "resumed"}, {"command": "resumed again"}],
    }
