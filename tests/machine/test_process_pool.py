import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import torch

from nmt.errors import CheckpointError, NmtError, StoppedBySignal
from nmt.machine.process_pool import TASKS_AHEAD, ProcessPool


def squared(number: int) -> int:
    time.sleep(0.001 * (number % 3))
    return number * number


def process_and_threads(number: int) -> tuple[int, int]:
    time.sleep(0.02)
    return os.getpid(), torch.get_num_threads()


@pytest.fixture(autouse=True)
def nobody_is_left_behind() -> Iterator[None]:
    threads = threading.active_count()
    yield
    assert multiprocessing.active_children() == []
    assert threading.active_count() == threads


@pytest.mark.parametrize("processes", [1, 2, 5])
def test_results_come_in_the_order_of_the_tasks(processes: int) -> None:
    with closing(ProcessPool(squared, processes)) as pool:
        for count in (0, 1, 2, 40):
            assert list(pool.map(range(count))) == [n * n for n in range(count)]


@pytest.mark.parametrize(("tasks", "processes"), [(1, 0), (2, 2), (12, 3)])
def test_processes_of_one_thread_are_started_for_several_tasks(tasks: int, processes: int) -> None:
    with closing(ProcessPool(process_and_threads, 3)) as pool:
        found = list(pool.map(range(tasks)))
        children = {child.pid for child in multiprocessing.active_children()}
    assert len(children) == processes
    # A process that starts late may find that the others have done all tasks.
    assert {process for process, _ in found} <= (children or {os.getpid()})
    assert {threads for _, threads in found} == {1}


def large_result(number: int) -> bytes:
    return bytes(3_000_000)


@pytest.mark.parametrize("seconds", [0.0, 0.003, 0.01])
def test_processes_end_while_they_send_results(seconds: float) -> None:
    pool = ProcessPool(large_result, 2)
    next(pool.map(range(100)))
    time.sleep(seconds)
    closing_pool = threading.Thread(target=pool.close, daemon=True)
    closing_pool.start()
    closing_pool.join(60)
    assert not closing_pool.is_alive()


def test_tasks_are_read_ahead_within_bounds() -> None:
    read: list[int] = []

    def tasks() -> Iterator[int]:
        for number in range(100):
            read.append(number)
            yield number

    with closing(ProcessPool(squared, 2)) as pool:
        for yielded, _ in enumerate(pool.map(tasks())):
            assert len(read) <= yielded + TASKS_AHEAD * 2 + 2


def test_a_stop_comes_at_once() -> None:
    def tasks() -> Iterator[int]:
        yield from range(2)
        raise StoppedBySignal("stopped", signal.SIGINT)

    with pytest.raises(StoppedBySignal), closing(ProcessPool(squared, 2)) as pool:
        next(pool.map(tasks()))


@pytest.mark.parametrize("error", [CheckpointError("five"), ZeroDivisionError("five")])
def test_an_error_of_a_computation_comes_in_its_place(error: Exception) -> None:
    def fail_at_five(number: int) -> int:
        if number == 5:
            raise error
        return number

    found = []
    with (
        pytest.raises(type(error), match="^five$") as raised,
        closing(ProcessPool(fail_at_five, 3)) as pool,
    ):
        for result in pool.map(range(9)):
            found.append(result)
    assert found == [0, 1, 2, 3, 4]
    assert "in fail_at_five" in str(raised.value.__cause__)  # where it happened


@pytest.mark.parametrize("when", ["computing", "idle"])
def test_a_killed_process_is_one_sentence_and_no_wait(when: str) -> None:
    def die(number: int) -> int:
        if number == 3:
            if when == "idle":
                threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGKILL)).start()
            else:
                os.kill(os.getpid(), signal.SIGKILL)
        return number

    with (
        pytest.raises(NmtError, match="one of 2 processes has died, .* fewer `workers`"),
        closing(ProcessPool(die, 2)) as pool,
    ):
        assert list(pool.map(range(4))) is not None
        time.sleep(0.3)
        list(pool.map(range(10, 14)))


MAIN = """
import os, time
from contextlib import closing
from nmt.cli.app import main, app
from nmt.machine.process_pool import ProcessPool

def slow(number):
    os.write(1, b"%d\\n" % os.getpid())
    time.sleep(60)

@app.command("slow")
def command():
    with closing(ProcessPool(slow, 2)) as pool:
        list(pool.map(range(4)))

main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_stop_leaves_no_process_behind(project: Path, number: signal.Signals) -> None:
    """The whole group gets it, as from a terminal; SIGKILL reaches the main process alone."""
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, "slow"],
        env=os.environ | {"PYTHONPATH": str(project), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout and process.stderr
    children = [int(process.stdout.readline()) for _ in range(2)]
    if number == signal.SIGKILL:
        process.kill()
    else:
        os.killpg(process.pid, number)
    assert process.stderr.read() == (
        "" if number == signal.SIGKILL else f"nmt: stopped by {number.name}\n"
    )  # read to its end: nobody else holds it
    assert process.wait(10) == (-number if number == signal.SIGKILL else 128 + number)
    process.stdout.close()
    process.stderr.close()
    for child in children:
        with pytest.raises(ProcessLookupError):
            for _ in range(100):
                os.kill(child, 0)
                time.sleep(0.05)
