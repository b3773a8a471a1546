"""The memory of this process: how much there is, how it is kept, and what to say if it runs out."""

import contextlib
import ctypes
import os
import platform
import re
import resource
from collections.abc import Iterator
from pathlib import Path

from nmt.errors import NmtError
from nmt.machine.processor import available_cores, installed_memory

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # parameters of glibc's mallopt, from malloc.h
_CACHED_KERNELS = 64
"""compiled kernels that oneDNN keeps for each core; the layers of a step need about half as many"""
_DEFAULT_CACHE = 1024  # kernels that oneDNN keeps by default
GIB = 1 << 30  # bytes


def process_memory() -> float | None:
    """Return the bytes of memory that this process may use, or None if unknown.

    torchrun's processes on this machine divide its memory.
    """
    memory = installed_memory()
    processes = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    return None if memory is None else memory / processes


def limit_kernel_caches() -> None:
    """Let oneDNN keep few compiled kernels; call it before PyTorch is imported, which reads this.

    There are two caches of 1,024 kernels each by default: that of oneDNN, for all threads, and one
    of PyTorch around it for each thread. A kernel is for one shape and takes half a megabyte or
    more. Numbers of tokens rarely repeat, so that training on a CPU would grow for thousands of
    steps. Variables that are set already stay as they are.
    """
    for_all = min(_DEFAULT_CACHE, _CACHED_KERNELS * available_cores())
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", str(for_all))
    os.environ.setdefault("LRU_CACHE_CAPACITY", str(_CACHED_KERNELS))


def tune_memory() -> None:
    """Configure glibc for training on a CPU: keep freed memory.

    Each training step frees and allocates the same hundreds of megabytes. By default glibc returns
    them to the kernel and gets them back page by page, which costs as much as the arithmetic on
    them. Here glibc keeps them.
    """
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        libc.mallopt(M_MMAP_THRESHOLD, GIB)  # smaller blocks come from the kept memory
        libc.mallopt(M_TRIM_THRESHOLD, 2 * GIB - 1)  # the largest value: almost never returned


def return_freed_memory() -> None:
    """Give the kernel what was freed and glibc has kept, such as the memory of a dropped model."""
    if platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).malloc_trim(0)


def is_shortage(error: BaseException) -> bool:
    """Return whether an error, or one that it arose from, means a lack of memory or of threads.

    Where memory runs out while a library is loaded, the error may be of any kind: then it counts if
    the process has used most of the address space that it may use (`ulimit -v`).
    """
    chain: BaseException | None = error
    while chain is not None:
        texts = ("failed to map segment", "annot allocate memory", "can't start new thread")
        if is_out_of_memory(chain) or any(text in str(chain) for text in texts):
            return True
        chain = chain.__cause__ or chain.__context__
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return limit != resource.RLIM_INFINITY and _address_space() > 0.6 * limit


def _address_space() -> int:
    """Return the bytes of address space that this process has had at most; 0 if unknown."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return 0
    found = re.search(r"VmPeak:\s+(\d+)", status)
    return 1024 * int(found[1]) if found else 0


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error means that the memory of the CPU or another device ran out."""
    # The name is compared because PyTorch, whose error it is, need not be imported.
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    messages = ("can't allocate memory", "MPS backend out of memory")
    return isinstance(error, RuntimeError) and any(text in str(error) for text in messages)


@contextlib.contextmanager
def memory_explained(shortage: str) -> Iterator[None]:
    """Turn an out-of-memory error inside the block into an error that names the remedy.

    Raises:
        NmtError: memory ran out; the message is "the memory does not suffice " + `shortage`.
    """
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise NmtError(f"the memory does not suffice {shortage}") from error
