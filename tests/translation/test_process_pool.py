import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from nmt.errors import CheckpointError, DataError, NmtError, StoppedBySignal
from nmt.translation.process_pool import AHEAD, ProcessPool


def squared(number: int) -> int:
    time.sleep(0.001 * (number % 3))
    return number * number


def where_and_how(number: int) -> tuple[int, int]:
    time.sleep(0.02)
    return os.getpid(), torch.get_num_threads()


def fail_at_five(number: int) -> int:
    if number == 5:
        raise CheckpointError("five")
    return number


@pytest.fixture(autouse=True)
def nobody_is_left_behind() -> Iterator[None]:
    threads = threading.active_count()
    yield
    assert multiprocessing.active_children() == []
    assert threading.active_count() == threads


@pytest.mark.parametrize("processes", [1, 2, 5])
def test_results_come_in_the_order_of_the_tasks(processes: int) -> None:
    with ProcessPool(squared, processes) as workers:
        for count in (0, 1, 2, 40):
            assert list(workers.map(range(count))) == [n * n for n in range(count)]


def test_each_process_computes_with_one_thread() -> None:
    with ProcessPool(where_and_how, 3) as workers:
        found = list(workers.map(range(12)))
    assert len({process for process, _ in found}) == 3
    assert {threads for _, threads in found} == {1}
    assert os.getpid() not in {process for process, _ in found}


def test_a_single_task_starts_no_process() -> None:
    with ProcessPool(where_and_how, 3) as workers:
        ((process, _),) = workers.map([1])
        assert process == os.getpid()
        assert multiprocessing.active_children() == []


def test_no_more_processes_than_tasks_are_started() -> None:
    with ProcessPool(where_and_how, 8) as workers:
        list(workers.map([1, 2]))
        assert len(multiprocessing.active_children()) == 2


def test_processes_see_what_the_memory_held_when_they_were_started() -> None:
    weights = torch.arange(6.0)

    def weight(number: int) -> float:
        return float(weights[number])

    with ProcessPool(weight, 2) as workers:
        assert list(workers.map(range(6))) == weights.tolist()


def test_tasks_are_read_ahead_within_bounds() -> None:
    read: list[int] = []

    def tasks() -> Iterator[int]:
        for number in range(100):
            read.append(number)
            yield number

    with ProcessPool(squared, 2) as workers:
        for yielded, _ in enumerate(workers.map(tasks())):
            assert len(read) <= yielded + AHEAD * 2 + 2


def test_an_error_among_the_tasks_comes_after_the_results_before_it() -> None:
    def tasks() -> Iterator[int]:
        yield from range(7)
        raise DataError("line 8")

    found = []
    with pytest.raises(DataError, match="line 8"), ProcessPool(squared, 2) as workers:
        for result in workers.map(tasks()):
            found.append(result)
    assert found == [n * n for n in range(7)]


def test_a_stop_comes_at_once() -> None:
    def tasks() -> Iterator[int]:
        yield from range(2)
        raise StoppedBySignal("stopped", signal.SIGINT)

    with pytest.raises(StoppedBySignal), ProcessPool(squared, 2) as workers:
        next(workers.map(tasks()))


def test_an_error_of_a_computation_comes_in_its_place() -> None:
    found = []
    with pytest.raises(CheckpointError, match="five"), ProcessPool(fail_at_five, 3) as workers:
        for result in workers.map(range(9)):
            found.append(result)
    assert found == [0, 1, 2, 3, 4]


def test_an_error_that_is_a_fault_of_ours_shows_where_it_happened() -> None:
    with pytest.raises(RuntimeError, match="ZeroDivisionError"), ProcessPool(div_by, 2) as workers:
        list(workers.map([0, 0]))


def div_by(number: int) -> float:
    return 1 / number


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
        pytest.raises(NmtError, match=r"of 2 processes .* was killed by SIGKILL.* lower --workers"),
        ProcessPool(die, 2) as workers,
    ):
        assert list(workers.map(range(4))) is not None
        time.sleep(0.3)
        list(workers.map(range(10, 14)))


MAIN = """
import os, signal, sys, time
from nmt.cli.app import main, app
from nmt.translation.process_pool import ProcessPool

def slow(number):
    print(os.getpid(), flush=True)
    time.sleep(60)

@app.command("slow")
def command():
    with ProcessPool(slow, 2) as workers:
        list(workers.map(range(4)))

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
