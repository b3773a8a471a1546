"""Where and how precisely to compute: device, precision, threads, seeds, memory."""

import contextlib
import ctypes
import hashlib
import os
import platform
from collections.abc import Iterator
from typing import Literal

import torch

from nmt.errors import ConfigError, NmtError
from nmt.processor import available_cores, installed_memory, processor_features

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # malloc.h
ONEDNN_CACHED_KERNELS = "128"


def pick_device(name: str) -> torch.device:
    """`auto`: the GPU if there is one.

    Raises:
        ConfigError: cuda asked for where PyTorch finds none.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError(
            "device: cuda was asked for, but PyTorch finds no CUDA device here; use cpu or auto"
        )
    return torch.device(name)


def pick_precision(name: str, device: torch.device) -> Literal["fp32", "bf16"]:
    """`auto`: bf16 where the processor multiplies it natively, else fp32."""
    if name == "auto":
        if device.type == "cuda":
            return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp32"
        return "bf16" if processor_features() & {"avx512_bf16", "amx_bf16"} else "fp32"
    return "bf16" if name == "bf16" else "fp32"


def autocast(
    device: torch.device, precision: str, *, once: bool = False
) -> contextlib.AbstractContextManager[object]:
    """Matrix products in bfloat16 over float32 weights, or nothing at all.

    On a CPU what passes between the layers is then in bfloat16 as well (`Transformer`). The
    weights in bfloat16 are kept for the whole block, unless each is used `once`: several threads
    would share them.
    """
    if precision == "bf16":
        return torch.autocast(device.type, dtype=torch.bfloat16, cache_enabled=not once)
    return contextlib.nullcontext()


def use_threads(threads: int | Literal["auto"]) -> int:
    """Set the CPU threads of one operation; returns their number.

    `auto` is one a core, shared fairly among the processes that torchrun starts on this machine.
    """
    processes = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    count = max(1, available_cores() // processes) if threads == "auto" else threads
    torch.set_num_threads(count)
    return count


def tune_memory() -> None:
    """Make computing on a CPU neither slow nor large where every batch has another shape.

    A step of training frees and asks again for the same hundreds of megabytes. glibc would return
    them to the kernel and fetch them anew, page by page, which costs as much as the arithmetic on
    them; it is told to keep them. (In one place for all threads, they would wait for each other
    and search long lists: a tenth of a step of two threads.) oneDNN caches 1,024 compiled kernels
    with megabytes of scratch each, one for every shape it met; the lengths of text rarely repeat,
    so it is told to keep the latest few.
    To be called before the first matrix product; elsewhere than on Linux without effect.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", ONEDNN_CACHED_KERNELS)
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        libc.mallopt(M_MMAP_THRESHOLD, 1 << 30)
        libc.mallopt(M_TRIM_THRESHOLD, (1 << 31) - 1)


def memory_of(device: torch.device) -> float | None:
    """Bytes that a device has for this process, free or not; None where it is not known.

    Processes that torchrun starts on this machine share its memory, but have a GPU each.
    """
    if device.type == "cuda":
        return float(torch.cuda.get_device_properties(device).total_memory)
    memory = installed_memory()
    return memory and memory / int(os.environ.get("LOCAL_WORLD_SIZE", "1"))


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an operation failed for want of memory, on a GPU or elsewhere."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and "can't allocate memory" in str(error)


@contextlib.contextmanager
def memory_explained(shortage: str) -> Iterator[None]:
    """Where memory runs out, say for what it does not suffice, and what to do about it.

    Raises:
        NmtError: "the memory does not suffice " and `shortage`.
    """
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise NmtError(f"the memory does not suffice {shortage}") from error


def step_seed(seed: int, step: int, rank: int = 0) -> int:
    """64 bits for all random numbers of a step: a function of (seed, step) and the rank alone.

    A resumed run then draws the dropout masks of an uninterrupted one with no state to restore.
    The two are hashed together because PyTorch's CPU generator looks at 32 bits of a seed only.
    """
    place = f"{seed} {step} {rank}" if rank else f"{seed} {step}"
    digest = hashlib.blake2b(place.encode(), digest_size=8).digest()
    return int.from_bytes(digest)
