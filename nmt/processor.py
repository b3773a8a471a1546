"""The features of the processor and the size of the memory; does not import PyTorch."""

import functools
import os
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")
"""the folder with the limits of this process's control group, such as a container"""


@functools.cache
def processor_features() -> frozenset[str]:
    """Return the names of the CPU's features, such as "avx512f"; none if this is not Linux."""
    return frozenset(processor_entry("flags").split())


def processor_entry(name: str) -> str:
    """Return a field of /proc/cpuinfo, such as "model name"; empty if there is none."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    line = next((line for line in text.split("\n") if line.startswith(name)), "")
    return line.partition(":")[2].strip()


def available_cores() -> int:
    """Return the number of CPU cores on which this process may run."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def meminfo(name: str) -> int | None:
    """Return a field of /proc/meminfo, such as "MemTotal", in bytes; None if unknown."""
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))
    except (OSError, ValueError, StopIteration):
        return None


def installed_memory() -> int | None:
    """Return the memory of the machine, or of its container if less, in bytes; None if unknown."""
    installed = meminfo("MemTotal")
    if installed is None:
        return None
    try:
        return min(installed, int((CGROUP / "memory.max").read_text("ascii")))
    except (OSError, ValueError):  # no limit, or unknown
        return installed
