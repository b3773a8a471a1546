"""What this machine's processor can do and how much memory it has, asked without PyTorch."""

import functools
import os
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")
"""where Linux says what the control group of this process, a container say, may use"""


@functools.cache
def processor_features() -> frozenset[str]:
    """The instruction sets of this machine's processor as Linux names them; empty elsewhere."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return frozenset()
    line = next((line for line in text.split("\n") if line.startswith("flags")), "")
    return frozenset(line.partition(":")[2].split())


def available_cores() -> int:
    """Cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def meminfo(name: str) -> int | None:
    """Bytes that Linux tells under a name such as MemTotal; None where it does not."""
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))
    except (OSError, ValueError, StopIteration):
        return None


def installed_memory() -> int | None:
    """Bytes of the machine, or of the control group if that is less; None if unknown."""
    installed = meminfo("MemTotal")
    if installed is None:
        return None
    try:
        return min(installed, int((CGROUP / "memory.max").read_text("ascii")))
    except (OSError, ValueError):  # not limited, or not to be known
        return installed
