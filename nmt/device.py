"""Where to compute, and in which precision: device, precision, threads, seeds, memory."""

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
    """Return the device of this name and make it the current one of its kind.

    `auto` is a CUDA GPU if there is one, else the CPU.

    Raises:
        ConfigError: PyTorch does not know or does not find the device; names those it finds.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(str(name))
        present = _count_devices(device.type) > (device.index or 0)
    except (RuntimeError, AttributeError):  # an unknown name, or a kind without its module
        present = False
    if not present:
        accelerator = torch.accelerator.current_accelerator()
        kind = accelerator.type if accelerator else "cuda"
        found = ["cpu", *(f"{kind}:{number}" for number in range(_count_devices(kind)))]
        raise ConfigError(
            f"device: {name!r} was asked for, but PyTorch finds only {', '.join(found)} here; "
            "use one of them, or auto"
        )
    if device.index is not None and device.type != "cpu":
        torch.accelerator.set_device_index(device.index)
    return device


def _count_devices(kind: str) -> int:
    module = torch.get_device_module(kind)
    return int(module.device_count()) if module.is_available() else 0


def device_name(device: torch.device) -> str:
    """Return the product name of a GPU; of any other device the kind, such as cpu."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


def hardware_kind(device: torch.device) -> Literal["cpu", "cuda"]:
    """Return the key of a device in tables of sizes: cpu, or cuda for every accelerator.

    The sizes for cuda were measured on GPUs of NVIDIA.
    """
    return "cpu" if device.type == "cpu" else "cuda"


def widest_float(device: torch.device) -> torch.dtype:
    """Return float64, or float32 on a device that does not have it."""
    return torch.float32 if device.type == "mps" else torch.float64


def pick_precision(name: str, device: torch.device) -> Literal["fp32", "bf16"]:
    """Return the precision of this name; `auto` is bf16 if the hardware multiplies it natively.

    This is known only for CPUs and CUDA GPUs; on other devices `auto` is fp32.
    """
    if name != "auto":
        return "bf16" if name == "bf16" else "fp32"
    if device.type == "cuda":
        native = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        features = processor_features() & {"avx512_bf16", "amx_bf16"}
        native = device.type == "cpu" and bool(features)
    return "bf16" if native else "fp32"


def autocast(
    device: torch.device, precision: str, *, once: bool = False
) -> contextlib.AbstractContextManager[object]:
    """Return a context that multiplies matrices in bfloat16 if `precision` is bf16.

    Weights stay in float32. On a CPU the values between the layers are then in bfloat16 as well
    (see `Transformer`). PyTorch caches the converted weights until the context ends. With `once`,
    which says that each weight is used only once, it does not: threads would share that cache.
    """
    if precision == "bf16":
        return torch.autocast(device.type, dtype=torch.bfloat16, cache_enabled=not once)
    return contextlib.nullcontext()


def use_threads(threads: int | Literal["auto"]) -> int:
    """Set the number of CPU threads of one operation and return it.

    `auto` is one thread for each core, divided by the processes that torchrun starts on this
    machine.
    """
    processes = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    count = max(1, available_cores() // processes) if threads == "auto" else threads
    torch.set_num_threads(count)
    return count


def tune_memory() -> None:
    """Let the process keep freed memory, and only a few compiled kernels, for training on a CPU.

    A training step frees and allocates the same hundreds of megabytes again and again. By default
    glibc returns them to the kernel and fetches them page by page, which costs as much as the
    arithmetic on them. Here glibc keeps them. (One arena for all threads would make them wait for
    each other: a tenth of a step of two threads.) oneDNN caches 1,024 compiled kernels with
    megabytes of scratch memory each, one for each shape. Lengths of text rarely repeat, so here it
    keeps only the latest ones.

    Call it before the first matrix product. It has no effect on other systems than Linux.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", ONEDNN_CACHED_KERNELS)
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        libc.mallopt(M_MMAP_THRESHOLD, 1 << 30)
        libc.mallopt(M_TRIM_THRESHOLD, (1 << 31) - 1)


def memory_of(device: torch.device) -> float | None:
    """Return the bytes that a device has for this process, free or not; None if unknown.

    Processes that torchrun starts on this machine share its memory, but have a GPU each.
    """
    if device.type == "mps":
        return float(torch.mps.recommended_max_memory())
    if device.type != "cpu":
        properties = getattr(torch.get_device_module(device), "get_device_properties", None)
        return float(properties(device).total_memory) if properties else None
    memory = installed_memory()
    return memory and memory / int(os.environ.get("LOCAL_WORLD_SIZE", "1"))


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an operation failed because memory ran out, on any device."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    messages = ("can't allocate memory", "MPS backend out of memory")
    return isinstance(error, RuntimeError) and any(text in str(error) for text in messages)


@contextlib.contextmanager
def memory_explained(shortage: str) -> Iterator[None]:
    """If memory runs out inside the block, raise an error that names the remedy.

    Raises:
        NmtError: its message is "the memory does not suffice " and `shortage`.
    """
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise NmtError(f"the memory does not suffice {shortage}") from error


def step_seed(seed: int, step: int, rank: int = 0) -> int:
    """Return the 64-bit seed of all random numbers of a step on one rank.

    It depends on nothing else, so a resumed run draws the same dropout masks as one that was not
    interrupted, and no random state is saved. The numbers are hashed together because PyTorch's CPU
    generator uses only 32 bits of a seed.
    """
    place = f"{seed} {step} {rank}" if rank else f"{seed} {step}"
    digest = hashlib.blake2b(place.encode(), digest_size=8).digest()
    return int.from_bytes(digest)
