"""A pool of forked processes, which share the memory of the process that starts them.

One process per core translates faster than one thread per core. The threads of one operation wait
for each other after every product of small matrices; searches in several threads wait for the
interpreter lock. A fork takes milliseconds, where a new interpreter takes seconds to load PyTorch,
and all processes share one copy of the weights, or of the index of a corpus.
"""

import multiprocessing
import os
import signal
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice
from multiprocessing.connection import Connection
from typing import Any, Generic, Protocol, TypeVar

from nmt.errors import ConfigError, NmtError, StoppedBySignal
from nmt.machine.processor import use_one_thread

# how many tasks per process may be submitted before their results are yielded
TASKS_AHEAD = 4
_STOPS = (signal.SIGINT, signal.SIGTERM)
Task = TypeVar("Task")
Result = TypeVar("Result")
Handle = TypeVar("Handle")
_Task = TypeVar("_Task", contravariant=True)
_Result = TypeVar("_Result", covariant=True)


class Pool(Protocol[_Task, _Result]):
    """Computes tasks elsewhere: in other processes, or on other machines."""

    def map(self, tasks: Iterable[_Task]) -> Iterator[_Result]:
        """Yield the result of each task, in order."""

    def close(self) -> None:
        """End what the pool has started."""


def check_processes(processes: int) -> None:
    """Raise a ConfigError if there are several processes to translate on a GPU."""
    if processes > 1:
        raise ConfigError(
            f"`workers` {processes} divides the cores of a CPU, and this is a GPU, which one "
            "process fills; leave it out, or choose the `device` cpu"
        )


class ProcessPool(Generic[Task, Result]):
    """Computes tasks in `processes` processes of one thread each; fewer if there are few tasks.

    With `processes` 1 no process is started: this one computes a task when its result is needed.
    Started processes see the memory as it was at their start, and run until the pool is closed.
    """

    def __init__(
        self,
        compute: Callable[[Task], Result],
        processes: int,
        remedy: str = "give fewer `workers`, or a lower `batch_tokens`",
    ) -> None:
        """Start no process yet. Tasks and results must be picklable, `compute` need not be.

        `remedy` says what to do if the memory does not suffice.
        """
        self._compute, self._remedy = compute, remedy
        self._processes = processes
        self._executor: ProcessPoolExecutor | None = None
        self._running = 0

    def close(self) -> None:
        """End the processes, even if they are computing; a later `map` starts new ones."""
        if self._executor:
            self._writer.send_bytes(b"end")  # any message ends them, see `_start`
            self._executor.shutdown()
            self._reader.close()
            self._writer.close()
        self._executor, self._running = None, 0

    def map(self, tasks: Iterable[Task]) -> Iterator[Result]:
        """Yield the result of `compute` for each task, in order.

        At most `TASKS_AHEAD` tasks per process are taken from `tasks` before a result is yielded.
        If there is a single task and no process yet, this process computes it. If `tasks` or a
        computation raises an error, the results of all earlier tasks are yielded first.

        Raises:
            NmtError: a process died, or `tasks` or `compute` raised it.
        """
        if self._processes == 1:
            yield from map(self._compute, tasks)
            return
        errors: list[Exception] = []
        remaining = until_error(tasks, errors)  # puts an error of `tasks` into `errors`
        # at most one task for each process; they are taken out of the iterator `remaining`
        first_tasks = list(islice(remaining, self._processes))
        if len(first_tasks) == 1 and not self._executor:
            yield self._compute(first_tasks[0])
        elif first_tasks:
            executor = self._start(len(first_tasks))  # no more processes than tasks
            yield from self._results(executor, chain(first_tasks, remaining))
        if errors:  # after the results of the tasks before the error
            raise errors[0]

    def _results(self, executor: ProcessPoolExecutor, tasks: Iterable[Task]) -> Iterator[Result]:
        """Yield the result of each task, in order; the processes of `executor` compute them.

        Raises:
            NmtError: a process died, or a task raised it.
        """

        def submit(task: Task) -> Future[Result]:
            return executor.submit(_compute_task, task)

        limit = TASKS_AHEAD * self._processes
        try:
            yield from in_order(tasks, submit, Future.done, Future.result, limit)
        except BrokenProcessPool as error:
            raise NmtError(
                f"one of {self._running} processes has died, most likely for want of memory; "
                f"{self._remedy}"
            ) from error

    def _start(self, processes: int) -> ProcessPoolExecutor:
        """Return an executor of at least this many processes; new ones are started if fewer run.

        A process ends when its pipe becomes readable: `close` writes to the pipe, and the pipe is
        closed when the main process ends, even if that is killed.
        """
        if self._executor and processes <= self._running:
            return self._executor
        self.close()
        self._reader, self._writer = multiprocessing.Pipe(duplex=False)
        executor = ProcessPoolExecutor(
            processes,
            multiprocessing.get_context("fork"),
            _start_worker,
            (self._compute, self._reader, self._writer),
        )
        self._executor, self._running = executor, processes
        # Until a new process has its own handlers, a signal would run those of this one.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _STOPS)
        try:
            with warnings.catch_warnings():
                # Python warns of forking with threads; the new processes use none of them.
                warnings.simplefilter("ignore", DeprecationWarning)
                executor.submit(int)  # the first task starts all processes
            # A process may end in the middle of sending a result. This one would then wait for the
            # rest as long as anybody could write to the pipe, so it must not keep its own end open,
            # for which there is no public way.
            executor._result_queue._writer.close()  # type: ignore[attr-defined]
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return executor


def in_order(
    tasks: Iterable[Task],
    submit: Callable[[Task], Handle],
    is_done: Callable[[Handle], bool],
    wait_for: Callable[[Handle], Result],
    limit: int,
) -> Iterator[Result]:
    """Submit the tasks, and yield their results in the same order.

    At most `limit` tasks are submitted before their results are yielded. `submit` returns a handle
    of a task, such as a future; `is_done` says whether the task has a result, and `wait_for` waits
    for the result and returns it.
    """
    handles: deque[Handle] = deque()
    for task in tasks:
        handles.append(submit(task))
        while handles and (len(handles) >= limit or is_done(handles[0])):
            yield wait_for(handles.popleft())
    while handles:
        yield wait_for(handles.popleft())


def until_error(tasks: Iterable[Task], errors: list[Exception]) -> Iterator[Task]:
    """Yield the tasks; if `tasks` raises an error, append it to `errors` and end.

    A stop signal is raised at once: then no results of earlier tasks are wanted.
    """
    try:
        yield from tasks
    except StoppedBySignal:  # it is a NmtError, too
        raise
    except (NmtError, OSError) as error:
        errors.append(error)


_compute: Callable[[Any], Any]


def _start_worker(compute: Callable[[Any], Any], reader: Connection, writer: Connection) -> None:
    """Set up a new process for its tasks. On Ctrl-C the main process ends it."""
    global _compute
    _compute = compute
    writer.close()
    threading.Thread(target=_wait_for_end, args=(reader,), daemon=True).start()
    # OpenMP's threads are not forked: an operation with more than one would wait forever.
    use_one_thread()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPS)


def _wait_for_end(reader: Connection) -> None:
    """End this process when the pool is closed or the main process has ended."""
    reader.poll(None)
    os._exit(1)


def _compute_task(task: Any) -> Any:
    """Return the result of a task, in a process that `_start_worker` has set up."""
    return _compute(task)
