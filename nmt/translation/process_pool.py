"""A pool of forked processes, which share the memory of the process that starts them.

One process per core translates faster than one thread per core. The threads of one operation wait
for each other after every product of small matrices; searches in several threads wait for the
interpreter lock. A fork takes milliseconds, where a new interpreter takes seconds to load PyTorch,
and all processes share one copy of the weights.
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
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import chain, islice
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, Generic, TypeVar

import torch

from nmt.errors import NmtError, StoppedBySignal

# how many tasks per process may be taken before the first result is yielded
AHEAD = 4
_STOPS = (signal.SIGINT, signal.SIGTERM)
Task = TypeVar("Task")
Result = TypeVar("Result")


@dataclass(eq=False)
class _WorkerProcess:
    process: BaseProcess
    connection: Connection
    task: Future[Any] | None = None
    """the result of the task that it computes; None: it is idle"""


class ProcessPool(Generic[Task, Result]):
    """Up to `processes` processes of one thread each, started when there is a task for them.

    Each sees the memory as it was when it was started. They run until the pool is closed.
    """

    def __init__(self, compute: Callable[[Task], Result], processes: int) -> None:
        """Tasks and results are pickled, `compute` is not. No result is an exception."""
        self._compute = compute
        self._processes = processes
        self._workers: list[_WorkerProcess] = []

    def close(self) -> None:
        """Kill the processes, even if they are computing."""
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            worker.process.join()
            worker.connection.close()
        self._workers.clear()

    def map(self, tasks: Iterable[Task]) -> Iterator[Result]:
        """Yield the result of `compute` for each task, in order.

        At most `AHEAD` tasks per process are taken from `tasks` before a result is yielded. If
        there is a single task and no process yet, this process computes it. If `tasks` or a
        computation raises an error, the results of all earlier tasks are yielded first.

        Raises:
            NmtError: a process died, or `compute` raised it.
        """
        waiting: deque[Future[Result]] = deque()
        errors: list[Exception] = []
        source = _until_error(tasks, errors)
        if not self._workers:
            first = list(islice(source, 2))
            if len(first) == 1:
                yield self._compute(first.pop())
            source = chain(first, source)
        while True:
            self._hand_out(source, waiting)
            if not waiting:
                break
            if waiting[0].done():
                yield waiting.popleft().result()
            else:
                self._receive()
        if errors:
            raise errors[0]

    def _hand_out(self, source: Iterator[Task], waiting: deque[Future[Result]]) -> None:
        """Send a task to every idle process, and start a process if none is idle."""
        while len(waiting) < AHEAD * self._processes:
            worker = next((w for w in self._workers if not w.task), None)
            if worker is None and len(self._workers) == self._processes:
                return
            try:
                task = next(source)
            except StopIteration:
                return
            worker = worker or self._start()
            try:
                worker.connection.send(task)
            except OSError as error:
                raise self._died(worker) from error
            worker.task = Future()
            waiting.append(worker.task)

    def _receive(self) -> None:
        """Wait until a process has finished, and read its result."""
        busy = {worker.connection: worker for worker in self._workers if worker.task}
        for connection in multiprocessing.connection.wait(list(busy)):
            worker = busy[connection]  # type: ignore[index]
            try:
                answer = worker.connection.recv()
            except (EOFError, OSError) as error:
                raise self._died(worker) from error
            assert worker.task is not None
            if isinstance(answer, Exception):
                worker.task.set_exception(answer)
            else:
                worker.task.set_result(answer)
            worker.task = None

    def _start(self) -> _WorkerProcess:
        here, there = multiprocessing.Pipe()
        process = multiprocessing.get_context("fork").Process(
            target=_serve, args=(self._compute, there), daemon=True
        )
        # Until the new process has its own handlers, a signal would run those of this one.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _STOPS)
        try:
            with warnings.catch_warnings():
                # Python warns of forking with threads; the new process uses none of them.
                warnings.simplefilter("ignore", DeprecationWarning)
                process.start()
            self._workers.append(_WorkerProcess(process, here))
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        there.close()
        return self._workers[-1]

    def _died(self, worker: _WorkerProcess) -> NmtError:
        worker.process.join()
        code = worker.process.exitcode or 0
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
        return NmtError(
            f"one of {len(self._workers)} processes that translate {how}, most likely for want of "
            "memory; give a lower --workers or --batch-tokens"
        )


def _until_error(tasks: Iterable[Task], errors: list[Exception]) -> Iterator[Task]:
    """Yield the tasks; an error that they raise ends them and is appended to `errors`."""
    try:
        yield from tasks
    except StoppedBySignal:
        raise
    except (NmtError, OSError) as error:
        errors.append(error)


def _serve(compute: Callable[[Any], Any], connection: Connection) -> None:
    """Compute tasks until this process is killed. On Ctrl-C the main process kills it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPS)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # OpenMP's threads are not forked: an operation with more than one would wait forever.
    torch.set_num_threads(1)
    with contextlib.suppress(EOFError, OSError):  # the main process has ended
        while True:
            task = connection.recv()
            try:
                answer = compute(task)
            except NmtError as error:
                answer = error
            except Exception:
                answer = RuntimeError(traceback.format_exc())
            connection.send(answer)


def _end_with_parent() -> None:
    """End this process when the main one has ended, which may have been killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    multiprocessing.connection.wait([parent.sentinel])
    os._exit(1)
