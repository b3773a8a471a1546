"""The environment of a run in environment.json: versions, hardware, command and data."""

import importlib.metadata
import platform
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

import nmt
from nmt.files import read_json_or_empty, write_json
from nmt.machine.device import device_name
from nmt.machine.processor import available_cores, processor_entry
from nmt.run.directory import RunDirectory

OBJECTIVE = "objective"
"""the name of an objective of one's own, in environment.json and result.json"""
LIBRARIES = ("torch", "sentencepiece", "sacrebleu", "numpy", "safetensors")


def write_environment(
    directory: RunDirectory,
    device: torch.device,
    precision: str,
    processes: int,
    fingerprints: Mapping[str, str],
) -> None:
    """Write versions, hardware, command, folder and data of this session into environment.json.

    If the file exists, it describes the first session, and this one is appended to its list
    `resumed`. `fingerprints` are digests of the training and validation text by name.
    """
    session = {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": sys.argv,
        "folder": str(Path.cwd()),
        **describe_software(),
        "system": platform.platform(),
        "processor": processor_entry("model name") or platform.processor(),
        "cores": available_cores(),
        "processes": processes,
        "threads": torch.get_num_threads(),
        "device": device_name(device),
        "precision": precision,
        **fingerprints,
    }
    content = read_json_or_empty(directory.environment)
    if content:
        resumed = content.get("resumed")
        content["resumed"] = [*resumed, session] if isinstance(resumed, list) else [session]
    else:
        content = session
    write_json(directory.environment, content)


def describe_software() -> dict[str, Any]:
    """Return the versions of this package (with its git commit), Python and `LIBRARIES`."""
    return {
        "nmt": nmt.__version__,
        "git": _git_revision(),
        "python": platform.python_version(),
        "libraries": {name: importlib.metadata.version(name) for name in LIBRARIES},
    }


def _git_revision() -> str | None:
    """Return the commit of the source tree of this package; None outside of a repository."""
    file = Path(nmt.__file__)

    def git(*arguments: str) -> str:
        command = ["git", *arguments]
        result = subprocess.run(
            command, cwd=file.parent, capture_output=True, text=True, timeout=5, check=True
        )
        return result.stdout.strip()

    try:
        # fails if the package is installed inside another repository, which does not track it
        git("ls-files", "--error-unmatch", file.name)
        return git("describe", "--always", "--dirty") or None
    except (OSError, subprocess.SubprocessError):
        return None
