"""Features, cores and memory of this machine; does not import PyTorch."""

import functools
import os
import sys
from pathlib import Path

GPU_DRIVERS = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")
"""files that exist if a driver is loaded: NVIDIA's, that of Windows for Linux, AMD's"""
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


def is_cpu(device: str) -> bool:
    """Return whether a device is certainly the CPU: "cpu", or "auto" without a driver of a GPU.

    If there is a driver, only PyTorch can say whether it finds the GPU.
    """
    has_driver = any(Path(file).exists() for file in GPU_DRIVERS)
    return device == "cpu" or (device == "auto" and not has_driver)


def use_one_thread() -> None:
    """Let PyTorch compute with one thread, whether it is imported already or later."""
    os.environ["OMP_NUM_THREADS"] = "1"
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


def meminfo(name: str) -> int | None:
    """Return a field of /proc/meminfo, such as "MemTotal", in bytes; None if unknown."""
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
        line = next(line for line in lines if line.startswith(name))
        kibibytes = int(line.split()[1])  # of a line such as "MemTotal:  65842108 kB"
        return kibibytes * 1024
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
