"""Whether more threads can start is known before a library needs them."""

import os
import re
import resource
import threading

import pytest

from nmt.errors import NmtError
from nmt.machine import control_groups, memory
from nmt.machine.memory import (
    check_addresses,
    check_memory_left,
    check_threads,
    is_out_of_memory,
    is_shortage,
    limit_kernel_caches,
    memory_explained,
    process_memory,
)


def test_threads_are_started_to_try_and_none_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    before = threading.active_count()
    check_threads(3)
    assert threading.active_count() == before
    started: list[threading.Thread] = []
    start = threading.Thread.start

    def start_two(thread: threading.Thread) -> None:
        if len(started) == 2:
            raise RuntimeError("can't start new thread")
        start(thread)
        started.append(thread)

    monkeypatch.setattr(threading.Thread, "start", start_two)
    with pytest.raises(RuntimeError, match="can't start new thread") as caught:
        check_threads(5)
    assert is_shortage(caught.value)
    assert len(started) == 2 and threading.active_count() == before


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError(), True),
        (OSError(12, "Cannot allocate memory"), True),
        (BlockingIOError(11, "Resource temporarily unavailable"), True),  # of os.fork
        (OSError("libgomp.so.1: failed to map segment from shared object"), True),
        (RuntimeError("could not create a primitive"), True),
        (FileNotFoundError(2, "No such file or directory"), False),
        (BlockingIOError(11, "write could not complete without blocking", 0), False),
        (RuntimeError("std::bad_alloc"), True),
        (ValueError("a mistake of ours"), False),
    ],
)
def test_a_lack_of_memory_or_threads_is_told_from_other_errors(
    error: Exception, expected: bool
) -> None:
    assert is_shortage(error) is expected
    try:
        try:
            raise error
        except Exception as cause:
            raise ImportError("a library") from cause
    except ImportError as late:
        assert is_shortage(late) is expected


def test_a_limit_of_addresses_is_named_among_the_remedies(monkeypatch: pytest.MonkeyPatch) -> None:
    for limited, end in (
        ([], ""),
        ([resource.RLIMIT_AS], "; or raise the limit .ulimit -v."),
        ([resource.RLIMIT_AS, resource.RLIMIT_DATA], "; or raise the limit .ulimit -v, ulimit -d."),
    ):
        limits = dict.fromkeys(limited, 1 << 20)
        monkeypatch.setattr(
            resource,
            "getrlimit",
            lambda kind, limits=limits: (limits.get(kind, resource.RLIM_INFINITY), -1),
        )
        monkeypatch.setattr(control_groups, "allowed_memory", lambda: None)
        remedy = re.escape("the memory does not suffice to translate; take less") + end + "$"
        with pytest.raises(NmtError, match=remedy), memory_explained("to translate; take less"):
            check_addresses(1 << 10)
            raise MemoryError


def test_a_control_group_with_too_little_is_named_with_what_is_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(control_groups, "free_memory", lambda: 5_000_000)
    monkeypatch.setattr(control_groups, "allowed_memory", lambda: 8_000_000)
    monkeypatch.setattr(memory, "meminfo", lambda name: 1 << 40)
    check_memory_left(5_000_000)
    expected = (
        "the memory does not suffice (6 MB more are needed, 5 left) to train; take less; or raise "
        "the limit (memory of the control group, now 8 MB)"
    )
    with (
        pytest.raises(NmtError, match=re.escape(expected)),
        memory_explained("to train; take less"),
    ):
        check_memory_left(6_000_000)
    monkeypatch.setattr(control_groups, "free_memory", lambda: None)
    check_memory_left(1 << 60)
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (1 << 40, -1))  # that of `ulimit -d`
    check_memory_left(1 << 30)
    with pytest.raises(MemoryError, match="more are needed"):
        check_memory_left(1 << 41)


@pytest.mark.parametrize(
    ("addresses", "data", "expected"),
    [
        (resource.RLIM_INFINITY, resource.RLIM_INFINITY, 8_000_000_000),
        (2_000_000_000, resource.RLIM_INFINITY, 1_500_000_000),  # without those of libraries
        (200_000_000, resource.RLIM_INFINITY, 0),
        (resource.RLIM_INFINITY, 700_000_000, 700_000_000),
    ],
)
def test_limits_of_the_process_count_as_its_memory(
    monkeypatch: pytest.MonkeyPatch, addresses: int, data: int, expected: int
) -> None:
    limits = {resource.RLIMIT_AS: addresses, resource.RLIMIT_DATA: data}
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (limits[kind], limits[kind]))
    monkeypatch.setattr(memory, "installed_memory", lambda: 8_000_000_000)
    assert process_memory() == expected


@pytest.mark.parametrize(("installed", "kernels"), [(600_000_000, "16"), (8_000_000_000, "64")])
def test_fewer_kernels_are_kept_where_memory_is_short(
    monkeypatch: pytest.MonkeyPatch, installed: int, kernels: str
) -> None:
    monkeypatch.setattr(memory, "process_memory", lambda: installed)
    monkeypatch.setattr("os.environ", {})
    limit_kernel_caches()
    assert os.environ["LRU_CACHE_CAPACITY"] == kernels


def test_what_onednn_says_without_memory_is_a_lack_of_memory() -> None:
    assert is_out_of_memory(RuntimeError("could not create a primitive"))
    assert not is_out_of_memory(RuntimeError("shapes do not match"))
