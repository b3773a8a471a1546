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
from nmt.machine import control_groups
from nmt.machine.processor import available_cores, installed_memory, meminfo

# parameters of glibc's mallopt, from malloc.h
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
_CACHED_KERNELS = 64
"""compiled kernels that oneDNN keeps for each core; the layers of a step need about half as many"""
_DEFAULT_CACHE = 1024  # kernels that oneDNN keeps by default
_LITTLE_MEMORY = 1_800_000_000
"""bytes that a process may use; with less, speed is given up for memory: see `tune_memory`. It is
twice what a long training takes beside its tensors (`nmt.training.step_memory.KEPT_ON_CPU`)"""
_LIBRARY_ADDRESSES = 500_000_000
"""bytes of addresses that PyTorch and other libraries reserve, and that take no memory"""
_SHORTAGES = (
    "failed to map segment",  # the dynamic linker, while a library is loaded
    "annot allocate memory",
    "can't start new thread",
    "Resource temporarily unavailable",  # a thread of C++, or a process
)
GIB = 1 << 30  # bytes


def process_memory() -> float | None:
    """Return the bytes of memory that this process may use, or None if unknown.

    torchrun's processes on this machine divide its memory. Each has its own `ulimit -v` and
    `ulimit -d`.
    """
    memory = installed_memory()
    addresses, data = _limit(resource.RLIMIT_AS), _limit(resource.RLIMIT_DATA)
    processes = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    limits = [] if memory is None else [memory / processes]
    if addresses is not None:
        limits.append(max(0.0, addresses - _LIBRARY_ADDRESSES))
    if data is not None:
        limits.append(data)
    return min(limits, default=None)


def _is_short() -> bool:
    """Return whether this process may use little memory."""
    memory = process_memory()
    return memory is not None and memory < _LITTLE_MEMORY


def limit_kernel_caches() -> None:
    """Let oneDNN keep few compiled kernels; call it before PyTorch is imported, which reads this.

    There are two caches of 1,024 kernels each by default: that of oneDNN, for all threads, and one
    of PyTorch around it for each thread. A kernel is for one shape and takes half a megabyte or
    more. Numbers of tokens rarely repeat, so that training on a CPU would grow for thousands of
    steps. Variables that are set already stay as they are.
    """
    of_a_core = _CACHED_KERNELS // 4 if _is_short() else _CACHED_KERNELS
    for_all = min(_DEFAULT_CACHE, of_a_core * available_cores())
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", str(for_all))
    os.environ.setdefault("LRU_CACHE_CAPACITY", str(of_a_core))


def share_one_arena() -> None:
    """Let all threads allocate from one arena of glibc if `ulimit -v` or another limit is low.

    By default each thread reserves 64 MiB of addresses for an arena of its own, and hardly uses
    them: training the demo would need 2.2 GB of addresses, with one arena it needs 1.2 GB.
    """
    if (_limit(resource.RLIMIT_AS) is not None or _is_short()) and platform.libc_ver()[
        0
    ] == "glibc":
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)


def check_addresses(size: int) -> None:
    """Check that `ulimit -v`, and `ulimit -d`, leave `size` bytes.

    Where they end inside a library in Rust, that prints a page of its own.

    Raises:
        MemoryError: one of them leaves less.
    """
    addresses, data = _limit(resource.RLIMIT_AS), _limit(resource.RLIMIT_DATA)
    if addresses is not None and _address_space("VmSize") + size > addresses:
        raise MemoryError
    if data is not None and _address_space("VmData") + size > data:
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
    """Configure glibc for training on a CPU: keep freed memory, or return it if there is little.

    Each training step frees and allocates the same hundreds of megabytes. By default glibc returns
    them to the kernel and gets them back page by page, which costs as much as the arithmetic on
    them. Here glibc keeps them.
    """
    is_short = _is_short()
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        # smaller blocks come from the kept memory
        libc.mallopt(M_MMAP_THRESHOLD, 1 << 17 if is_short else GIB)
        # the largest value: almost never returned
        libc.mallopt(M_TRIM_THRESHOLD, 1 << 17 if is_short else 2 * GIB - 1)


def check_memory_left(size: int) -> None:
    """Check that the control groups of this process, and `ulimit -d`, leave `size` bytes.

    A group kills a process that takes more; at the other limit PyTorch may crash.

    Raises:
        MemoryError: they leave less; the message has both figures.
    """
    left, data = control_groups.free_memory(), _limit(resource.RLIMIT_DATA)
    if data is not None:
        own = data - _address_space("VmData")
        left = own if left is None else min(left, own)
    if left is not None and left < size:
        raise MemoryError(f"{size / 1e6:,.0f} MB more are needed, {max(0, left) / 1e6:,.0f} left")


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
    limit = _limit(resource.RLIMIT_AS)
    if limit is None or isinstance(error, OSError):  # the system says what is wrong
        return False
    return _address_space("VmPeak") > 0.6 * limit


def _limit(kind: int) -> int | None:
    """Return the bytes that a limit of this process (`resource.RLIMIT_…`) allows; None if none."""
    limit, _ = resource.getrlimit(kind)
    return None if limit == resource.RLIM_INFINITY else limit


def _address_space(field: Literal["VmSize", "VmPeak", "VmData"]) -> int:
    """Return the bytes of address space in use, in use at most so far, or of data; 0 if unknown."""
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
    messages = (
        "can't allocate memory",
        "std::bad_alloc",
        "could not create a primitive",  # oneDNN
        "MPS backend out of memory",
    )
    return isinstance(error, RuntimeError) and any(text in str(error) for text in messages)


def limit_of_groups() -> list[str]:
    """Return words for the memory that control groups allow, if it is less than is installed."""
    allowed, installed = control_groups.allowed_memory(), meminfo("MemTotal")
    if allowed is None or installed is None or allowed >= installed:
        return []
    return [f"memory of the control group, now {allowed / 1e6:,.0f} MB"]


@contextlib.contextmanager
def memory_explained(shortage: str) -> Iterator[None]:
    """Turn an out-of-memory error inside the block into an error that names the remedy.

    Raises:
        NmtError: memory ran out; the message is "the memory does not suffice " + `shortage`,
            and names `ulimit -v`, `ulimit -d` and the limit of a control group, where one is set.
    """
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        kinds = {"ulimit -v": resource.RLIMIT_AS, "ulimit -d": resource.RLIMIT_DATA}
        limits = [name for name, kind in kinds.items() if _limit(kind) is not None]
        limits += limit_of_groups()
        limit = f"; or raise the limit ({', '.join(limits)})" if limits else ""
        figures = f" ({error})" if type(error) is MemoryError and str(error) else ""
        message = f"the memory does not suffice{figures} {shortage}{limit}"
        raise NmtError(message) from error
