"""The memory of this process: how much there is, how it is kept, and what to say if it runs out."""

import contextlib
import ctypes
import functools
import os
import platform
import re
import resource
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from nmt.errors import NmtError
from nmt.machine.processor import available_cores, installed_memory

# parameters of glibc's mallopt, from malloc.h
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
_CACHED_KERNELS = 64
"""compiled kernels that oneDNN keeps for each core; the layers of a step need about half as many"""
_DEFAULT_CACHE = 1024  # kernels that oneDNN keeps by default
_SHORTAGES = (
    "failed to map segment",  # the dynamic linker, while a library is loaded
    "annot allocate memory",
    "could not create a primitive",  # oneDNN
    "can't start new thread",
    "Resource temporarily unavailable",  # a thread of C++, or a process
)
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


def share_one_arena() -> None:
    """Let all threads allocate from one arena of glibc if `ulimit -v` limits the address space.

    By default each thread reserves 64 MiB of addresses for an arena of its own, and hardly uses
    them: training the demo would need 2.2 GB of addresses, with one arena it needs 1.2 GB.
    """
    if _address_limit() is not None and platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)


def check_addresses(size: int) -> None:
    """Check that `ulimit -v` leaves `size` bytes of addresses.

    Where they end inside a library in Rust, that prints a page of its own.

    Raises:
        MemoryError: `ulimit -v` leaves less.
    """
    limit = _address_limit()
    if limit is not None and _address_space("VmSize") + size > limit:
        raise MemoryError


@functools.cache
def check_threads(count: int, beside: int = 0) -> None:
    """Check that `count` more threads can start, before a library in C or C++ starts its own.

    Where a thread cannot start, SentencePiece and OpenMP end the process or wait forever, and
    OpenBLAS interrupts it as Ctrl-C does. A count that could start is not tried again. `beside` is
    how many bytes of addresses the library needs in addition to the stacks of the threads.

    Raises:
        MemoryError: `ulimit -v` leaves too few addresses.
        RuntimeError: `ulimit -u` or a control group allows no more threads.
    """
    stack = resource.getrlimit(resource.RLIMIT_STACK)[0]
    stack = 2 << 20 if stack == resource.RLIM_INFINITY else stack  # as glibc chooses
    check_addresses(count * stack + beside)
    end = threading.Event()
    started = []
    try:
        for _ in range(count):
            thread = threading.Thread(target=end.wait)
            thread.start()
            started.append(thread)
    finally:
        end.set()
        for thread in started:
            thread.join()


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
        if is_out_of_memory(chain) or any(text in str(chain) for text in _SHORTAGES):
            return True
        chain = chain.__cause__ or chain.__context__
    limit = _address_limit()
    if limit is None or isinstance(error, OSError):  # the system says what is wrong
        return False
    return _address_space("VmPeak") > 0.6 * limit


def _address_limit() -> int | None:
    """Return the bytes of address space that this process may use; None if there is no limit."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else limit


def _address_space(field: Literal["VmSize", "VmPeak"]) -> int:
    """Return the bytes of address space in use, or those in use at most so far; 0 if unknown."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return 0
    found = re.search(rf"{field}:\s+(\d+)", status)
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
        NmtError: memory ran out; the message is "the memory does not suffice " + `shortage`,
            and names `ulimit -v` where that sets a limit.
    """
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        limit = "; or raise the limit (ulimit -v)" if _address_limit() is not None else ""
        raise NmtError(f"the memory does not suffice {shortage}{limit}") from error
