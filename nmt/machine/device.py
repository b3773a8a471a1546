"""Where and how to compute: device, precision, CPU threads, random seeds."""

import contextlib
import functools
import hashlib
import os
import shutil
import time
from importlib.util import find_spec
from typing import Literal

import torch

from nmt.errors import ConfigError
from nmt.machine.memory import check_threads, process_memory, return_freed_memory
from nmt.machine.processor import available_cores, processor_features


def pick_device(name: str) -> torch.device:
    """Return the device `name`, such as "cuda:1"; a GPU becomes PyTorch's current device.

    `auto` is a CUDA GPU if there is one, else the CPU. On CUDA, PyTorch will not use the attention
    of cuDNN.

    Raises:
        ConfigError: PyTorch does not find the device; the message lists those it finds.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(str(name))  # a caller of `nmt.load` may give a torch.device
        number = 0 if device.index is None else device.index  # "cuda" is "cuda:0"
        exists = number < _count_devices(device.type)
    except (RuntimeError, AttributeError):  # an unknown name, or a kind without its module
        exists = False
    if not exists:
        accelerator = torch.accelerator.current_accelerator()
        kind = accelerator.type if accelerator else "cuda"
        existing = ["cpu", *(f"{kind}:{number}" for number in range(_count_devices(kind)))]
        raise ConfigError(
            f"device: {name!r} was asked for, but PyTorch finds only {', '.join(existing)} here; "
            "use one of them, or auto"
        )
    if device.index is not None and device.type != "cpu":
        torch.accelerator.set_device_index(device.index)
    if device.type == "cuda":
        # cuDNN plans its attention again for each shape, and nearly every batch has another: on an
        # H100 the first batch of a search took 1.05 s with it, and 0.27 s without.
        torch.backends.cuda.enable_cudnn_sdp(False)
    return device


def _count_devices(kind: str) -> int:
    """Return the number of devices of a kind, such as "cuda", that PyTorch finds."""
    module = torch.get_device_module(kind)
    return int(module.device_count()) if module.is_available() else 0


def device_name(device: torch.device) -> str:
    """Return the product name of a device, or its kind ("cpu", "mps") if PyTorch has no name."""
    name_of = getattr(torch.get_device_module(device), "get_device_name", None)
    return str(name_of(device)) if name_of else device.type


def hardware_kind(device: torch.device) -> Literal["cpu", "cuda"]:
    """Return "cpu", or "cuda" for any accelerator: the keys of tables such as batch sizes.

    The sizes for "cuda" were measured on NVIDIA GPUs.
    """
    return "cpu" if device.type == "cpu" else "cuda"


def widest_float(device: torch.device) -> torch.dtype:
    """Return float64, or float32 on a device without float64 (mps)."""
    return torch.float32 if device.type == "mps" else torch.float64


def can_compile(device: torch.device) -> bool:
    """Return whether Triton, and so PyTorch's compiler, can compile kernels for a device.

    It needs a GPU of compute capability 7.0 or more, Triton, and a C compiler. PyTorch for CUDA on
    Linux includes Triton, but no compiler, and many containers have none.
    """
    if device.type != "cuda" or not find_spec("triton"):
        return False
    compilers = ("cc", "gcc", "clang")
    has_compiler = bool(os.environ.get("CC")) or any(map(shutil.which, compilers))
    return has_compiler and torch.cuda.get_device_capability(device) >= (7, 0)


def pick_precision(name: str, device: torch.device) -> Literal["fp32", "bf16"]:
    """Return the precision `name` (bf16, fp32 or auto) for PyTorch on a device.

    `auto` is bf16 if `device` is a CUDA GPU that multiplies bf16 natively, or a CPU that multiplies
    it faster than fp32; else fp32. Any other name, such as int8, gives fp32, as PyTorch computes in
    these two formats only.
    """
    if name != "auto":
        return "bf16" if name == "bf16" else "fp32"
    if device.type == "cuda":
        is_faster = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        is_faster = device.type == "cpu" and _cpu_is_faster_in_bf16()
    return "bf16" if is_faster else "fp32"


@functools.cache
def _cpu_is_faster_in_bf16() -> bool:
    """Return whether this CPU multiplies matrices faster in bfloat16 than in float32.

    AMX always does. Processors with `avx512_bf16` alone differ: an AMD EPYC was twice as fast in
    bfloat16, an Intel Xeon half as fast. So one product is timed there, and on ARM with `bf16`,
    which takes 20 ms.
    """
    features = processor_features()
    if "amx_bf16" in features:
        return True
    if not features & {"avx512_bf16", "bf16"}:
        return False
    seconds = [
        (_product_seconds(torch.bfloat16), _product_seconds(torch.float32)) for _ in range(5)
    ]
    in_bf16, in_fp32 = (min(each) for each in zip(*seconds, strict=True))
    return in_bf16 < in_fp32


def _product_seconds(dtype: torch.dtype) -> float:
    """Return the seconds of one product of two matrices of 512 x 512."""
    matrix = torch.ones(512, 512, dtype=dtype)
    start = time.perf_counter()
    torch.mm(matrix, matrix)
    return time.perf_counter() - start


def autocast(
    device: torch.device, precision: str, *, once: bool = False
) -> contextlib.AbstractContextManager[object]:
    """Return a context that multiplies matrices in bfloat16 if `precision` is bf16.

    Weights stay in float32. On a CPU the values between the layers are then in bfloat16 as well
    (see `Transformer`). PyTorch caches the converted weights until the context ends. `once` turns
    the cache off, which threads would share: use it where each weight is used only once.
    """
    if precision == "bf16":
        return torch.autocast(device.type, dtype=torch.bfloat16, cache_enabled=not once)
    return contextlib.nullcontext()


def use_threads(threads: int | Literal["auto"]) -> int:
    """Set the number of CPU threads of PyTorch's operations, and return it.

    `auto` is the number of cores, divided by the number of torchrun's processes on this machine.
    """
    processes = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    count = max(1, available_cores() // processes) if threads == "auto" else threads
    check_threads(count - 1)
    torch.set_num_threads(count)
    return count


def memory_of(device: torch.device) -> float | None:
    """Return the bytes of memory that this process may use on a device, or None if unknown.

    Memory that is in use already is included. On a CPU, torchrun's processes on this machine divide
    the memory.
    """
    if device.type == "cpu":
        return process_memory()
    if device.type == "mps":
        return float(torch.mps.recommended_max_memory())
    properties = getattr(torch.get_device_module(device), "get_device_properties", None)
    return float(properties(device).total_memory) if properties else None


def free_memory_of(device: torch.device) -> int | None:
    """Return the free bytes in a device's own memory; None if PyTorch cannot tell."""
    if free_and_all := getattr(torch.get_device_module(device), "mem_get_info", None):
        with contextlib.suppress(RuntimeError):  # an Intel GPU inside the processor cannot tell
            return int(free_and_all(device)[0])
    return None


def release_free_memory(device: torch.device) -> None:
    """Give the device, or the kernel, back the memory that is kept for later tensors."""
    if device.type == "cpu":
        return_freed_memory()
    else:
        torch.get_device_module(device).empty_cache()


def reset_peak_memory(device: torch.device) -> None:
    """Let `peak_memory` count from now on."""
    if reset := getattr(torch.get_device_module(device), "reset_peak_memory_stats", None):
        reset(device)


def peak_memory(device: torch.device) -> int:
    """Return the most bytes that tensors have taken on a device since `reset_peak_memory`.

    0 if PyTorch does not count them.
    """
    most = getattr(torch.get_device_module(device), "max_memory_allocated", None)
    return int(most(device)) if most else 0


def synchronize(device: torch.device) -> None:
    """Wait until a device has computed all that it was given; a CPU always has."""
    if device.type != "cpu":
        torch.accelerator.synchronize(device)


def step_seed(seed: int, step: int, rank: int = 0) -> int:
    """Return the 64-bit seed for a training step in process or shard number `rank`, from 0.

    It depends only on the arguments, so a resumed run draws the same dropout masks as one that was
    not interrupted, without any saved random state. The arguments are hashed together because
    PyTorch's CPU generator uses only 32 bits of a seed.
    """
    # rank 0 is left out: it has the seeds of a training without ranks
    key = f"{seed} {step} {rank}" if rank else f"{seed} {step}"
    digest = hashlib.blake2b(key.encode(), digest_size=8).digest()
    return int.from_bytes(digest)
