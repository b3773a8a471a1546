"""Features, cores and memory of this machine; does not import PyTorch."""

import functools
import math
import os
import platform
import subprocess
import sys
from pathlib import Path

from nmt.machine.control_groups import allowed_cores, allowed_memory

GPU_DRIVERS = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")
"""files that exist if a driver is loaded: NVIDIA's, that of Windows for Linux, AMD's"""
_MACOS_FEATURES = {
    "hw.optional.arm64": "asimd",
    "hw.optional.arm.FEAT_DotProd": "asimddp",
    "hw.optional.arm.FEAT_I8MM": "i8mm",
    "hw.optional.arm.FEAT_BF16": "bf16",
}
"""{entry of macOS's `sysctl`: Linux's name of the same feature of ARM}"""


@functools.cache
def processor_features() -> frozenset[str]:
    """Return Linux's names of the CPU's features, such as "avx512f" (x86) or "asimddp" (ARM).

    On macOS only those of ARM that the code in C can use are known; on Windows none are.
    """
    if platform.system() == "Darwin":
        return _features_by_sysctl()
    return frozenset((processor_entry("flags") or processor_entry("Features")).split())


def _features_by_sysctl() -> frozenset[str]:
    """Return the features that macOS lists, in lines such as "hw.optional.arm64: 1"."""
    try:
        listed = subprocess.run(["sysctl", "hw.optional"], capture_output=True, text=True)
    except OSError:
        return frozenset()
    entries = dict(line.split(": ", 1) for line in listed.stdout.splitlines() if ": " in line)
    return frozenset(name for key, name in _MACOS_FEATURES.items() if entries.get(key) == "1")


def processor_entry(name: str) -> str:
    """Return a field of /proc/cpuinfo, such as "model name"; empty if there is none."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    line = next((line for line in text.split("\n") if line.startswith(name)), "")
    return line.partition(":")[2].strip()


def available_cores() -> int:
    """Return the number of CPU cores that this process may use.

    A control group may allow the time of fewer cores than those it may run on. More threads than
    that would only wait for each other. A fraction of a core, as in 1.5, counts as one.
    """
    cores = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    return min(cores, max(1, math.ceil(allowed_cores())))


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
    """Return the memory of the machine, or what its control groups allow if less, in bytes.

    None: it is unknown.
    """
    installed = meminfo("MemTotal")
    if installed is None:
        return None
    allowed = allowed_memory()
    return installed if allowed is None else min(installed, allowed)
