"""Forked processes that compute side by side, in the memory of the one that started them.

One process a core translates faster than one thread a core. The threads of one operation wait for
each other after every product of small matrices; several searches in threads would wait for the
interpreter. A fork takes milliseconds where a new interpreter takes seconds to load PyTorch, and
the weights are in memory once, however many look at them.
"""

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, Generic, Self, TypeVar

import torch

from nmt.errors import NmtError, StoppedBySignal

# how many results may wait for an earlier one, for each process
AHEAD = 4
_STOPS = (signal.SIGINT, signal.SIGTERM)
Task = TypeVar("Task")
Result = TypeVar("Result")


@dataclass(eq=False)
class _Place:
    """A task's place among the results, and what came back for it."""

    answered: bool = False
    result: Any = None
    error: Exception | None = None


@dataclass(eq=False)
class _Worker:
    process: BaseProcess
    connection: Connection
    place: _Place | None = None
    """of the task it computes; None: it is idle"""


class Workers(Generic[Task, Result]):
    """Up to `count` processes of one thread each, started when there is a task for them.

    They know what the memory held when they were started. They end with the `with` block.
    """

    def __init__(self, compute: Callable[[Task], Result], processes: int) -> None:
        """Tasks and the results of `compute` must be picklable, `compute` itself need not be."""
        self._compute = compute
        self._processes = processes
        self._workers: list[_Worker] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the processes, whatever they do."""
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            worker.process.join()
            worker.connection.close()
        self._workers.clear()

    def map(self, tasks: Iterable[Task]) -> Iterator[Result]:
        """`compute` of each task, in order; `AHEAD` tasks a process are taken from `tasks` at most.

        A single task is computed here if no process has been started yet. Where `tasks` or a
        computation ends with an error, the results of all tasks before it come first.

        Raises:
            NmtError: a process died; or what `compute` raised.
        """
        source = _Source(tasks)
        if not self._workers and source.has(1) and not source.has(2):
            yield self._compute(source.take())
        places: deque[_Place] = deque()
        while True:
            self._hand_out(source, places)
            if not places:
                break
            if not places[0].answered:
                self._receive()
                continue
            first = places.popleft()
            if first.error:
                raise first.error
            yield first.result
        if source.error:
            raise source.error

    def _hand_out(self, source: "_Source[Task]", places: deque[_Place]) -> None:
        """Give tasks to all who are idle, and have the next one ready when they come back."""
        while len(places) < AHEAD * self._processes and source.has(1):
            worker = next((w for w in self._workers if not w.place), None)
            if worker is None and len(self._workers) < self._processes:
                worker = self._start()
            if worker is None:
                return
            try:
                worker.connection.send(source.take())
            except OSError as error:
                raise self._died(worker) from error
            worker.place = _Place()
            places.append(worker.place)

    def _receive(self) -> None:
        """Wait until somebody has finished, and take what is found."""
        busy = {worker.connection: worker for worker in self._workers if worker.place}
        for connection in multiprocessing.connection.wait(list(busy)):
            worker = busy[connection]  # type: ignore[index]
            try:
                succeeded, answer = worker.connection.recv()
            except (EOFError, OSError) as error:
                raise self._died(worker) from error
            assert worker.place is not None
            worker.place.answered = True
            if succeeded:
                worker.place.result = answer
            else:
                worker.place.error = answer
            worker.place = None

    def _start(self) -> _Worker:
        here, there = multiprocessing.Pipe()
        process = multiprocessing.get_context("fork").Process(
            target=_serve, args=(self._compute, there), daemon=True
        )
        # a signal that came before the new process has handlers of its own would be told to both
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _STOPS)
        try:
            with warnings.catch_warnings():
                # of the threads that others hold; those who fork compute with one of their own
                warnings.simplefilter("ignore", DeprecationWarning)
                process.start()
            self._workers.append(_Worker(process, here))
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        there.close()
        return self._workers[-1]

    def _died(self, worker: _Worker) -> NmtError:
        worker.process.join()
        code = worker.process.exitcode or 0
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
        return NmtError(
            f"one of {len(self._workers)} processes that translate {how}, most likely for want of "
            "memory; give a lower --workers or --batch-tokens"
        )


class _Source(Generic[Task]):
    """Tasks one by one, some of which can be read ahead; an error among them ends them."""

    def __init__(self, tasks: Iterable[Task]) -> None:
        self._tasks = iter(tasks)
        self._read: deque[Task] = deque()
        self.error: Exception | None = None

    def has(self, number: int) -> bool:
        """Whether there are so many still."""
        try:
            while len(self._read) < number and not self.error:
                self._read.append(next(self._tasks))
        except StopIteration:
            pass
        except StoppedBySignal:
            raise
        except (NmtError, OSError) as error:
            self.error = error
        return len(self._read) >= number

    def take(self) -> Task:
        """The next one, where there is one."""
        return self._read.popleft()


def _serve(compute: Callable[[Any], Any], connection: Connection) -> None:
    """Answer tasks until this process is killed. Ctrl-C reaches the main one, which kills this."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPS)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # OpenMP's threads are not forked along: what asks for more than one would wait for ever
    torch.set_num_threads(1)
    with contextlib.suppress(EOFError, OSError):  # nobody is there any more
        while True:
            connection.send(_answer(compute, connection.recv()))


def _answer(compute: Callable[[Any], Any], task: object) -> tuple[bool, object]:
    """Whether it succeeded, and the result or the error."""
    try:
        return True, compute(task)
    except NmtError as error:
        return False, error
    except Exception:
        return False, RuntimeError(traceback.format_exc())


def _end_with_parent() -> None:
    """A main process that is killed cannot end its own."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    multiprocessing.connection.wait([parent.sentinel])
    os._exit(1)
