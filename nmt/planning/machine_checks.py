"""Checks for `nmt doctor`: Python, libraries, device, precision, search, memory and disk.

This module works without PyTorch, so that it can report a missing or broken PyTorch.
"""

import importlib
import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from nmt.inference.native.library import KERNELS, SOURCE
from nmt.kernels.python_code import what_was_changed
from nmt.machine import control_groups
from nmt.machine.compilation import what_was_loaded, why_no_library
from nmt.machine.processor import available_cores, meminfo

if TYPE_CHECKING:
    import torch

_OLDEST_TORCH = [2, 10]  # oldest supported version
_REQUIREMENT = re.compile(r"([\w.-]+)\s*>=\s*([\d.]+)")
"""a requirement of pyproject.toml: a library and its oldest supported version"""
_EXTRAS = {
    "plot": ("matplotlib", "`nmt plot` draws"),
    "tensorboard": ("tensorboard", "training.track: [tensorboard] writes"),
}
"""module and purpose of the optional parts of this package, by the name of the extra"""
_LOW_MEMORY, _LOW_DISK, _FULL_DISK = 2e9, 2e9, 100e6  # bytes
_MISSING = importlib.metadata.PackageNotFoundError
_NVIDIA_DRIVER = Path("/proc/driver/nvidia")


Status = Literal["ok", "warning", "failure"]


@dataclass(frozen=True)
class Check:
    """One line of `nmt doctor`: what was checked, what was found, and what to do about it."""

    name: str
    status: Status
    """warning: training works, but worse than it could; failure: it could not start or finish"""
    found: str
    """the state that was found, such as: 8 cores"""
    remedy: str = ""
    """what to do; empty if nothing has to be done"""

    def __str__(self) -> str:
        remedy = f"; {self.remedy}" if self.remedy else ""
        return f"{self.status:<9}{self.name:<12}{self.found}{remedy}"


def gigabytes(size: float) -> str:
    """Format a number of bytes in gigabytes: 1_250_000_000 -> 1.2 GB."""
    return f"{size / 1e9:.1f} GB"


def check_machine(folders: Sequence[Path]) -> Iterator[Check]:
    """Yield checks of the machine, and of the disk and write access of `folders`.

    If a folder does not exist, its nearest parent that exists is checked.
    """
    yield Check("python", "ok", platform.python_version())
    yield _check_torch()
    yield _check_libraries()
    yield from _check_device()
    yield _check_threads()
    yield from _check_libraries_in_c()
    yield _check_memory()
    existing_folders = [_existing_parent(folder) for folder in folders]
    for folder in dict.fromkeys(existing_folders):  # without repetitions
        yield _check_disk(folder)
        yield _check_write_access(folder)
    for extra, (module, purpose) in _EXTRAS.items():
        found = f"{extra}: {purpose}"
        if not importlib.util.find_spec(module):
            found = f"{extra} is not installed; with pip install 'nmt[{extra}]' {purpose}"
        yield Check("extra", "ok", found)


def _check_torch() -> Check:
    remedy = "pip install 'torch>=2.10'"
    try:
        torch = importlib.import_module("torch")
    except (ImportError, OSError) as error:
        reason = str(error).partition("\n")[0]
        return Check("torch", "failure", f"cannot be imported ({reason})", remedy)
    version = str(torch.__version__)
    if _version_numbers(version) < _OLDEST_TORCH:
        return Check("torch", "failure", f"{version} loads checkpoints unsafely", remedy)
    return Check("torch", "ok", version)


def _check_libraries() -> Check:
    """Check that all libraries except PyTorch and those of extras are present and new enough."""
    try:
        requirements = importlib.metadata.requires("nmt") or []
    except _MISSING:
        found = "nmt itself is not installed, only found"
        return Check("libraries", "warning", found, "pip install .")
    present, unsuitable, to_install = [], [], []
    for requirement in requirements:
        match = _REQUIREMENT.match(requirement)
        if not match or "extra ==" in requirement or match[1] == "torch":
            continue  # torch has a check of its own
        name, oldest = match.groups()
        try:
            version = importlib.metadata.version(name)
        except _MISSING:
            version = ""  # has no numbers, so it is older than every version
        present.append(f"{name} {version}")
        if _version_numbers(version) < _version_numbers(oldest):
            installed = f" (here: {version})" if version else ""
            unsuitable.append(f"{name} {oldest}{installed}")
            to_install.append(f"'{name}>={oldest}'")
    if unsuitable:
        found = f"missing or too old: {', '.join(unsuitable)}"
        return Check("libraries", "failure", found, f"pip install {' '.join(to_install)}")
    return Check("libraries", "ok", ", ".join(present))


def _version_numbers(version: str) -> list[int]:
    """Return the numbers of a version, to compare it with others: 2.10.1+cpu -> [2, 10, 1]."""
    return [int(part) for part in re.findall(r"\d+", version.partition("+")[0])]


def _check_device() -> Iterator[Check]:
    """Yield checks of the device and of its precision; none if PyTorch cannot be imported."""
    try:
        import torch

        from nmt.machine.device import device_name, memory_of, pick_device, pick_precision
    except (ImportError, OSError):
        return
    device = pick_device("auto")
    if device.type != "cpu":
        count, memory = torch.accelerator.device_count(), memory_of(device)
        times = f"{count} x " if count > 1 else ""
        size = f", {gigabytes(memory)}" if memory else ""
        yield Check("device", "ok", f"{times}{device_name(device)}{size}")
    elif gpu := torch.accelerator.current_accelerator(check_available=True):  # such as mps
        # `auto` chooses no GPU but those of CUDA
        found = f"cpu; the device {gpu.type} (training.device in a recipe) uses the GPU"
        yield Check("device", "ok", found)
    elif shutil.which("nvidia-smi") or _NVIDIA_DRIVER.exists():
        found = f"an NVIDIA driver is here, but PyTorch {torch.__version__} finds no GPU"
        remedy = "install a PyTorch for CUDA (https://pytorch.org), or set training.device: cpu"
        yield Check("device", "warning", found, remedy)
    else:
        yield Check("device", "ok", "cpu; no GPU is here")
    if pick_precision("auto", device) == "bf16":
        yield Check("precision", "ok", "bf16 in hardware")
    else:
        found = "this processor is not faster in bf16, so training uses fp32"
        remedy = "expect half the speed or less, or use a newer machine"
        yield Check("precision", "warning", found, remedy)


def _check_threads() -> Check:
    """Say how many cores there are; a control group may allow fewer than the machine has."""
    cores, installed = available_cores(), os.cpu_count() or 1
    found = "1 core" if cores == 1 else f"{cores} cores"
    if cores < installed:
        found += f"; the machine has {installed}, of which this process may use no more"
    return Check("threads", "ok", found)


def _check_libraries_in_c() -> Iterator[Check]:
    """Check whether a CPU translates and trains by the code in C, and say why not."""
    kernels = [(KERNELS / f"{name}.c",) for name in ("float32", "bf16")]
    for name, libraries, slower in (
        ("search", [(SOURCE, KERNELS)], "PyTorch translates on a CPU, about 3 times slower"),
        ("training", kernels, "PyTorch trains on a CPU, up to 1.5 times slower"),
    ):
        reasons = [why_no_library(*paths) for paths in libraries]
        if reason := next(filter(None, reasons), None):
            status: Status = "warning" if reason.remedy else "ok"
            yield Check(name, status, f"{slower}: {reason}", reason.remedy)
        elif changed := what_was_changed():
            yield Check(name, "ok", f"{slower}: {changed}")
        else:
            yield Check(name, "ok", f"in C {what_was_loaded(*libraries[-1])}")


def _check_memory() -> Check:
    available = available_memory()
    if available is None:
        return Check("memory", "ok", "not known on this system")
    found = f"{gigabytes(available)} available"
    if available < _LOW_MEMORY:
        return Check("memory", "warning", found, "end other programs, or train elsewhere")
    return Check("memory", "ok", found)


def available_memory() -> int | None:
    """Return the bytes of memory that are free in the system, or in a control group if fewer there.

    None: it is unknown.
    """
    available = meminfo("MemAvailable")
    if available is None:
        return None
    free = control_groups.free_memory()
    return available if free is None else max(0, min(available, free))


def free_memory(device: "torch.device") -> int | None:
    """Return the free bytes in the memory of a device, or None if unknown."""
    from nmt.machine.device import free_memory_of

    own = free_memory_of(device)
    return available_memory() if own is None else own  # a CPU and mps use that of the machine


def _existing_parent(folder: Path) -> Path:
    """Return the folder, or its nearest parent that exists; a file in its place counts, too."""
    path = folder.absolute()
    return next(candidate for candidate in (path, *path.parents) if candidate.exists())


def free_space(folder: Path) -> int:
    """Return the free bytes of the disk that holds the folder; it need not exist yet."""
    return shutil.disk_usage(_existing_parent(folder)).free


def _check_disk(folder: Path) -> Check:
    free = free_space(folder)
    found = f"{gigabytes(free)} free in {folder}"
    if free < _FULL_DISK:
        return Check("disk", "failure", found, "free some space, or choose other folders")
    if free < _LOW_DISK:
        remedy = "free some space: `nmt plan` says how much a run takes"
        return Check("disk", "warning", found, remedy)
    return Check("disk", "ok", found)


def _check_write_access(folder: Path) -> Check:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return Check("writing", "ok", f"{folder} can be written to")
    except OSError as error:
        found = f"{folder} cannot be written to: {error.strerror}"
        remedy = "choose other folders: data.directory and the run directory"
        return Check("writing", "failure", found, remedy)
