"""The features of the processor and the size of the memory, found without PyTorch."""

import functools
import os
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")
"""where Linux says what the control group of this process, a container say, may use"""


@functools.cache
def processor_features() -> frozenset[str]:
    """Return the instruction sets of the processor as Linux names them; empty elsewhere."""
    return frozenset(processor_entry("flags").split())


def processor_entry(name: str) -> str:
    """Return what /proc/cpuinfo says of the first core under `name`; empty if it says nothing."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    line = next((line for line in text.split("\n") if line.startswith(name)), "")
    return line.partition(":")[2].strip()


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def meminfo(name: str) -> int | None:
    """Return the bytes under a name of /proc/meminfo such as MemTotal; None if unknown."""
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))
    except (OSError, ValueError, StopIteration):
        return None


def installed_memory() -> int | None:
    """Return the memory of the machine, or of its control group if less, in bytes, or None."""
    installed = meminfo("MemTotal")
    if installed is None:
        return None
    try:
        return min(installed, int((CGROUP / "memory.max").read_text("ascii")))
    except (OSError, ValueError):  # no limit, or unknown
        return installed
