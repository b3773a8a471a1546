"""Every fault of a machine is reported with a remedy, even without PyTorch."""

import importlib
import importlib.metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
import torch

from nmt.machine import control_groups, processor
from nmt.machine.compilation import NoLibraryError
from nmt.planning import machine_checks as module
from nmt.planning.machine_checks import available_memory, check_machine, free_space


def test_this_machine_can_run_its_own_tests(tmp_path: Path) -> None:
    checks = list(check_machine([tmp_path / "runs", tmp_path / "data"]))
    names = [check.name for check in checks]
    assert all(check.status != "failure" for check in checks)
    assert all(bool(check.remedy) == (check.status != "ok") for check in checks)
    assert names[:3] == ["python", "torch", "libraries"]
    assert names.count("disk") == 1, "both folders would lie in the same one"
    assert free_space(tmp_path / "not" / "yet") > 0
    assert not list(tmp_path.iterdir())


def raising(error: Exception) -> Mock:
    """A function that raises the error, whatever its arguments are."""
    return Mock(side_effect=error)


def disk_with(free: float) -> Mock:
    """A function that finds so many free bytes on any disk."""
    return Mock(return_value=SimpleNamespace(free=free))


@pytest.mark.parametrize(
    ("name", "faulty", "line"),
    [
        (
            "importlib.import_module",
            raising(ImportError("No module named 'torch'\nand more")),
            "failure  torch       cannot be imported (No module named 'torch'); "
            "pip install 'torch>=2.10'",
        ),
        (
            "torch.__version__",
            "2.9.1",
            "failure  torch       2.9.1 loads checkpoints unsafely; pip install 'torch>=2.10'",
        ),
        ("torch.__version__", "2.10.0a0+git1", "ok       torch       2.10.0a0+git1"),
        (
            "importlib.metadata.requires",
            raising(importlib.metadata.PackageNotFoundError("nmt")),
            "warning  libraries   nmt itself is not installed, only found; pip install .",
        ),
        (
            "nmt.machine.device._cpu_is_faster_in_bf16",
            lambda: False,
            "warning  precision   this processor is not faster in bf16, so training uses fp32; "
            "expect half the speed or less, or use a newer machine",
        ),
        (
            "nmt.planning.machine_checks.why_no_library",
            lambda *paths: NoLibraryError("no C compiler was found", "install one"),
            "warning  search      PyTorch translates on a CPU, about 3 times slower: "
            "no C compiler was found; install one",
        ),
        (
            "nmt.planning.machine_checks.why_no_library",
            lambda *paths: NoLibraryError("no C compiler was found", "install one"),
            "warning  training    PyTorch trains on a CPU, up to 1.5 times slower: "
            "no C compiler was found; install one",
        ),
        (
            "nmt.planning.machine_checks.why_no_library",
            lambda *paths: NoLibraryError("bf16 is broken") if "bf16.c" in str(paths) else None,
            "ok       training    PyTorch trains on a CPU, up to 1.5 times slower: bf16 is broken",
        ),
        (
            "nmt.machine.compilation.why_not_here",
            lambda: "this processor has no AVX2",
            "ok       search      PyTorch translates on a CPU, about 3 times slower: "
            "this processor has no AVX2",
        ),
        (
            "shutil.which",
            lambda name: f"/usr/bin/{name}",
            f"warning  device      an NVIDIA driver is here, but PyTorch {torch.__version__} finds "
            "no GPU; install a PyTorch for CUDA (https://pytorch.org), or set training.device: cpu",
        ),
        (
            "shutil.disk_usage",
            disk_with(5e7),
            "failure  disk        0.1 GB free in FOLDER; free some space, or choose other folders",
        ),
        (
            "shutil.disk_usage",
            disk_with(1e9),
            "warning  disk        1.0 GB free in FOLDER; "
            "free some space: `nmt plan` says how much a run takes",
        ),
        ("shutil.disk_usage", disk_with(9e9), "ok       disk        9.0 GB free in FOLDER"),
        (
            "tempfile.TemporaryFile",
            raising(OSError(30, "Read-only file system")),
            "failure  writing     FOLDER cannot be written to: Read-only file system; "
            "choose other folders: data.directory and the run directory",
        ),
        (
            "importlib.util.find_spec",
            lambda name: None,
            "ok       extra       plot is not installed; with pip install 'nmt[plot]' "
            "`nmt plot` draws",
        ),
    ],
)
def test_a_fault_has_a_remedy_and_everything_else_is_still_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, faulty: Any, line: str
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr(name, faulty)
    checks = list(check_machine([tmp_path]))
    assert line.replace("FOLDER", str(tmp_path)) in map(str, checks)
    assert checks[-1].name == "extra"


def test_a_file_in_place_of_a_folder_is_a_fault(tmp_path: Path) -> None:
    file = tmp_path / "text"
    file.touch()
    checks = list(map(str, check_machine([file / "data"])))
    assert (
        f"failure  writing     {file} cannot be written to: Not a directory; "
        "choose other folders: data.directory and the run directory"
    ) in checks


def test_missing_and_old_libraries_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def version(name: str) -> str:
        asked.append(name)
        if name in ("sacremoses", "regex"):
            raise importlib.metadata.PackageNotFoundError(name)
        return "0.19.9" if name == "tqdm" else "9999.1"

    monkeypatch.setattr(importlib.metadata, "version", version)
    check = module._check_libraries()
    assert check.status == "failure"
    assert check.found == (
        "missing or too old: regex 2024.5.15, sacremoses 0.2, tqdm 4.66 (here: 0.19.9)"
    )
    assert check.remedy == "pip install 'regex>=2024.5.15' 'sacremoses>=0.2' 'tqdm>=4.66'"
    assert {"pydantic", "pyyaml", "typer", "datasets"} <= set(asked)
    assert "matplotlib" not in check.found


def test_limits_of_containers_are_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    monkeypatch.setattr("os.sched_getaffinity", lambda process: range(8))
    monkeypatch.setattr(processor, "allowed_cores", lambda: 9.5)
    assert module._check_threads().found == "8 cores"
    monkeypatch.setattr(processor, "allowed_cores", lambda: 1.5)
    check = module._check_threads()
    assert check.status == "ok"
    assert check.found == "2 cores; the machine has 8, of which this process may use no more"
    monkeypatch.setattr(control_groups, "free_memory", lambda: 600_000)
    assert available_memory() == 600_000
    assert module._check_memory().status == "warning"
