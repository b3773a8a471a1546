"""A pool on the machines of a Ray cluster, which takes the place of the processes of one machine.

Each batch is a task of Ray: any free core computes it, and another one does if its machine dies.
The function that computes, with the model in it, goes once to each machine, through Ray's object
store.
"""

import functools
import os
import platform
import re
import signal
import socket
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic

from nmt import __version__
from nmt.errors import ConfigError, MissingExtraError, NmtError
from nmt.machine.memory import tune_memory
from nmt.machine.process_pool import Result, Task, in_order, until_error
from nmt.machine.processor import available_cores, use_one_thread

CONNECT_SECONDS = 10
STALL_SECONDS = 30
"""after so long without a result, the pool asks whether any machine is left"""
RETRIES = 3
"""how often a batch is computed again because its process or its machine died"""


@dataclass(frozen=True)
class RayCluster:
    """A Ray cluster, and how much of it is used."""

    address: str
    """`local` starts one on this machine; `auto` or HOST:PORT is one that runs"""
    workers: int | None = None
    """the most batches that are computed at once; None: one for each core, or for each GPU"""


class RayPool(Generic[Task, Result]):
    """Computes tasks on the machines of a cluster. A process has one open pool at a time."""

    def __init__(
        self, compute: Callable[[Task], Result], cluster: RayCluster, device: str = "cpu"
    ) -> None:
        """Join the cluster. `compute`, tasks and results must be picklable.

        A task takes one core, or one GPU if the type of `device` is not cpu.

        Raises:
            MissingExtraError: Ray is not installed.
            ConfigError: this is not an address.
            NmtError: the cluster cannot be reached, or has no core or GPU.
        """
        self._ray, self._cluster = _join(cluster), cluster
        self._resource = "CPU" if device == "cpu" else "GPU"
        try:
            slots = self._count_slots()
            self._compute = self._ray.put(compute)
        except BaseException:
            self.close()
            raise
        # Each core has a second task in its queue, so that it need not wait for the next one. Only
        # so can a number of tasks at once be kept in a cluster that has more cores.
        is_limited = cluster.workers and cluster.address != "local"
        self._at_once = (is_limited and cluster.workers) or 2 * slots
        self._unfinished: list[Any] = []
        # max_calls=0: the process goes on after a task, because it has loaded the model
        needs = {"num_cpus": 1} if device == "cpu" else {"num_cpus": 0, "num_gpus": 1}
        self._remote = self._ray.remote(max_retries=RETRIES, max_calls=0, **needs)(_compute_task)

    def close(self) -> None:
        """Leave the cluster, which ends its tasks; a cluster that was started here ends too."""
        self._ray.shutdown()

    def map(self, tasks: Iterable[Task]) -> Iterator[Result]:
        """Yield the result of `compute` for each task, in order.

        A few tasks per core are read before a result is yielded. If `tasks` or a computation raises
        an error, the results of all earlier tasks are yielded first.

        Raises:
            NmtError: no machine is left, a task was lost several times, or `tasks` or `compute`
                raised it.
        """
        errors: list[Exception] = []
        remaining = until_error(tasks, errors)  # puts an error of `tasks` into `errors`
        limit = 2 * self._at_once
        yield from in_order(remaining, self._submit, self._is_done, self._wait_for, limit)
        if errors:
            raise errors[0]

    def _submit(self, task: Task) -> Any:
        """Give a task to the cluster once few enough are unfinished; return Ray's reference."""
        if len(self._unfinished) >= self._at_once:
            self._unfinished = self._wait_for_one(self._unfinished)
        # The reference is in a list: outside of one, Ray would unpickle `compute` for each task.
        reference = self._remote.remote(__version__, [self._compute], task)
        self._unfinished.append(reference)
        return reference

    def _is_done(self, reference: Any) -> bool:
        """Return whether the task of a reference has a result or an error."""
        ready, _ = _interruptible(self._ray.wait)([reference], timeout=0)
        return bool(ready)

    def _wait_for_one(self, references: list[Any]) -> list[Any]:
        """Wait until one of the tasks is done; return the others."""
        while True:
            ready, others = _interruptible(self._ray.wait)(references, timeout=STALL_SECONDS)
            if ready:
                return list(others)
            self._count_slots()

    def _count_slots(self) -> int:
        """Return how many cores or GPUs the machines that run have together.

        Raises:
            NmtError: no running machine has one.
        """
        slots = int(self._ray.cluster_resources().get(self._resource, 0))
        if not slots:
            raise NmtError(
                f"Ray at {self._cluster.address}: no machine of the cluster that runs has a "
                f"{self._resource}; start one, and give the command again"
            )
        return slots

    def _wait_for(self, reference: Any) -> Result:
        """Return the result of a task.

        Raises:
            NmtError: the computation raised it, or the task was lost several times.
        """
        self._wait_for_one([reference])
        try:
            result: Result = _interruptible(self._ray.get)(reference)
        except self._ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, NmtError | OSError):
                raise error.cause from error
            raise NmtError(
                f"Ray at {self._cluster.address}: a machine failed: {_last_line(error)}; every "
                f"machine needs the same Python and nmt[ray]"
            ) from error
        except self._ray.exceptions.RayError as error:
            raise NmtError(
                f"Ray at {self._cluster.address}: a batch was lost {RETRIES + 1} times with its "
                f"process or machine ({type(error).__name__}), most likely for want of memory; "
                f"give a lower `batch_tokens`"
            ) from error
        return result


def _join(cluster: RayCluster) -> Any:
    """Join a running cluster or start one on this machine; return the module `ray`."""
    address, options = cluster.address, {}
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # by default Ray sends statistics
    if address != "local":  # by default Ray calls 20 times, 40 s each, what answers but is not Ray
        os.environ.setdefault("RAY_NUM_REDIS_GET_RETRIES", "2")
    try:
        import ray  # reads these variables
        import ray.exceptions
    except ImportError as error:
        raise MissingExtraError("translating with Ray", "ray") from error
    if address == "local":
        options = {"num_cpus": cluster.workers or available_cores(), "include_dashboard": False}
    elif address != "auto":
        _check_reachable(address)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        # What a worker process prints must not get into the output.
        ray.init(address=address, log_to_driver=False, logging_level="ERROR", **options)
    except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        raise NmtError(
            f"Ray at {address}: the cluster cannot be joined: {_last_line(error)}; start Ray on "
            "this machine with `ray start --address=HOST:PORT`, or give local as the address"
        ) from error
    finally:
        for number, handler in handlers.items():  # Ray has set its own
            signal.signal(number, handler)
    return ray


def _check_reachable(address: str) -> None:
    """Check that something listens at HOST:PORT; Ray ends the process if nothing does."""
    if not re.fullmatch(r"[^\s/:]+:[0-9]{1,5}", address):
        raise ConfigError(f"Ray's address {address}: expected local, auto or HOST:PORT")
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise NmtError(
            f"Ray at {address}: the cluster cannot be reached ({error}); check the address and "
            "that `ray start --head` runs there"
        ) from error


def _interruptible(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of Ray with which a signal raises the error of its handler.

    Ray's own raise a SystemError then.
    """

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except SystemError as error:
            raise error.__cause__ or error from None

    return call


def _last_line(error: Exception) -> str:
    """Return the last line of a message, which of an error with its traceback names the error."""
    return str(error).strip().rpartition("\n")[2].rstrip(".") or type(error).__name__


def _compute_task(version: str, compute: list[Any], task: Any) -> Any:
    """Compute a task in a worker process of the cluster; `compute` holds a reference."""
    if version != __version__:
        raise NmtError(
            f"{platform.node()} has nmt {__version__}, expected {version} as on the machine of the "
            "command; install the same version on all machines"
        )
    return _get_function(compute[0])(task)


@functools.lru_cache(maxsize=1)
def _get_function(reference: Any) -> Callable[[Any], Any]:
    """Return the function that a reference stands for; a process gets it once."""
    import ray

    tune_memory()
    use_one_thread()
    compute: Callable[[Any], Any] = ray.get(reference)
    return compute
