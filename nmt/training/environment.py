"""Where a run was made: versions, hardware, command and data, kept in environment.json."""

import importlib.metadata
import json
import platform
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

import nmt
from nmt.device import device_name
from nmt.processor import available_cores
from nmt.run_directory import RunDirectory

LIBRARIES = ("torch", "sentencepiece", "sacrebleu", "numpy", "safetensors")


def describe_environment(
    command: Sequence[str],
    device: torch.device,
    precision: str,
    processes: int,
    fingerprints: Mapping[str, str],
) -> dict[str, Any]:
    """Return all that can explain why two runs differ; `fingerprints` are digests of their text."""
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": list(command),
        **describe_software(),
        "system": platform.platform(),
        "processor": _processor(),
        "cores": available_cores(),
        "processes": processes,
        "threads": torch.get_num_threads(),
        "device": device_name(device),
        "precision": precision,
        **fingerprints,
    }


def describe_software() -> dict[str, Any]:
    """Return the versions of this package, of Python and of the libraries."""
    return {
        "nmt": nmt.__version__,
        "git": _git_revision(),
        "python": platform.python_version(),
        "libraries": {name: importlib.metadata.version(name) for name in LIBRARIES},
    }


def write_environment(directory: RunDirectory, environment: dict[str, Any]) -> None:
    """Write environment.json; each resumed session is appended to its list `resumed`."""
    try:
        first = json.loads(directory.environment.read_text("utf-8"))
        first.setdefault("resumed", []).append(environment)
    except (OSError, ValueError, AttributeError):
        first = environment  # a new run, or a damaged file
    directory.write_json(directory.environment, first)


def _git_revision() -> str | None:
    """Return the commit of the source tree of this package; None outside of a repository."""
    # A package that is installed inside another repository is not tracked there.
    if _git("ls-files", "--error-unmatch", Path(nmt.__file__).name):
        return _git("describe", "--always", "--dirty")
    return None


def _git(*arguments: str) -> str | None:
    """Return what git prints in the folder of this package; None if it fails or prints nothing."""
    try:
        output = subprocess.run(
            ["git", *arguments],
            cwd=Path(nmt.__file__).parent,
            capture_output=True,
            text=True,
            timeout=5,
            check=True,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    return output.strip() or None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())
