"""What this machine's processor can do, asked without loading PyTorch."""

import functools
import os
from pathlib import Path


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
