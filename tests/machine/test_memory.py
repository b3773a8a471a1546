"""Whether more threads can start is known before a library needs them."""

import re
import resource
import threading

import pytest

from nmt.errors import NmtError
from nmt.machine.memory import check_addresses, check_threads, is_shortage, memory_explained


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
    for limit, end in ((resource.RLIM_INFINITY, ""), (1 << 20, "; or raise the limit .ulimit -v.")):
        monkeypatch.setattr(resource, "getrlimit", lambda kind, limit=limit: (limit, limit))
        remedy = re.escape("the memory does not suffice to translate; take less") + end + "$"
        with pytest.raises(NmtError, match=remedy), memory_explained("to translate; take less"):
            check_addresses(1 << 10)
            raise MemoryError
