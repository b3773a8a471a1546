"""A Ray cluster computes what one process does, also when processes and machines die."""

import importlib
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from nmt.errors import (
    CheckpointError,
    ConfigError,
    MissingExtraError,
    NmtError,
    StoppedBySignal,
)
from nmt.translation import ray_pool
from nmt.translation.ray_pool import RayCluster, RayPool
from tests.ray_machines import RayMachines

needs_ray = pytest.mark.skipif(not find_spec("ray"), reason="needs the extra nmt[ray]")


def squared(number: int) -> int:
    time.sleep(0.01 * (number % 3))
    return number * number


def pool_of(compute: Callable[[Any], Any], address: str) -> "closing[RayPool[Any, Any]]":
    return closing(RayPool(compute, RayCluster(address)))


def test_a_missing_ray_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(
        MissingExtraError, match=r"translating with Ray needs the extra 'ray': .*'nmt\[ray\]'"
    ):
        RayPool(squared, RayCluster("local"))


@needs_ray
@pytest.mark.parametrize("address", ["here", "localhost", "ray://localhost:1", "localhost:x", ""])
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(ConfigError, match="expected local, auto or HOST:PORT"):
        RayPool(squared, RayCluster(address))


@needs_ray
def test_an_unreachable_cluster() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    address = f"127.0.0.1:{port}"
    with pytest.raises(
        NmtError, match=f"Ray at {address}: the cluster cannot be reached .*refused"
    ):
        RayPool(squared, RayCluster(address))


@needs_ray
def test_no_cluster_runs_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with pytest.raises(NmtError, match="Ray at auto: the cluster cannot be joined: .*; start Ray"):
        RayPool(squared, RayCluster("auto"))


@needs_ray
@pytest.mark.slow
def test_results_come_in_the_order_of_the_tasks_and_errors_in_their_place(
    machines: RayMachines,
) -> None:
    handlers = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    read: list[int] = []

    def tasks() -> Iterator[int]:
        for number in range(40):
            read.append(number)
            yield number
        raise CheckpointError("of the tasks")

    found = []
    with pool_of(squared, machines.address) as pool:
        with pytest.raises(CheckpointError, match="of the tasks"):
            for yielded, result in enumerate(pool.map(tasks())):
                assert len(read) <= yielded + 2 * 2 * 2 + 1
                found.append(result)
        assert list(pool.map([])) == []
    assert found == [number * number for number in range(40)]
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == handlers

    def fail_at_five(number: int) -> int:
        if number == 5:
            raise CheckpointError("five")
        if number == 7:
            raise ZeroDivisionError("seven")
        return number

    with pool_of(fail_at_five, machines.address) as pool:
        found = []
        with pytest.raises(CheckpointError, match="^five$"):
            found += pool.map(range(9))
        with pytest.raises(NmtError, match="a machine failed: .*ZeroDivisionError: seven; every"):
            list(pool.map([7]))
    with (
        pool_of(squared, machines.address) as pool,
        pytest.MonkeyPatch.context() as patch,
        pytest.raises(NmtError, match=r"has nmt \S+, expected 9\.9 as on the machine of the comm"),
    ):
        patch.setattr(ray_pool, "__version__", "9.9")
        list(pool.map([1]))


def test_a_signal_raises_the_error_of_its_handler() -> None:
    def wait_as_ray_does() -> None:
        raise SystemError("a result with an exception set") from StoppedBySignal("stopped")

    with pytest.raises(StoppedBySignal, match="stopped"):
        ray_pool._interruptible(wait_as_ray_does)()


class Elsewhere:
    """A function of a package that the other machines lack."""

    def __call__(self, number: int) -> int:
        return number

    def __reduce__(self) -> tuple[object, ...]:
        return importlib.import_module, ("not_installed",)


@needs_ray
@pytest.mark.slow
def test_a_machine_that_lacks_a_package_is_one_sentence(machines: RayMachines) -> None:
    expected = "a machine failed: .*No module named 'not_installed'; every machine needs the same"
    with pool_of(Elsewhere(), machines.address) as pool, pytest.raises(NmtError, match=expected):
        list(pool.map(range(3)))


@needs_ray
@pytest.mark.slow
def test_a_batch_whose_process_dies_is_computed_again_and_not_forever(
    machines: RayMachines, tmp_path: Path
) -> None:
    def die(number: int) -> int:
        mark = tmp_path / f"{number}"
        if number == 0 or (number == 3 and not mark.exists()):
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    with pool_of(die, machines.address) as pool:
        assert list(pool.map(range(1, 9))) == list(range(1, 9))
        with pytest.raises(NmtError, match=r"a batch was lost 4 times with its process or machine"):
            list(pool.map([0]))


@needs_ray
@pytest.mark.slow
def test_a_machine_that_dies_is_replaced_until_none_is_left(
    machines: RayMachines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_pool, "STALL_SECONDS", 1)

    def slowly(number: int) -> tuple[int, str]:
        import ray

        time.sleep(0.05)
        return number, ray.get_runtime_context().get_node_id()

    with pool_of(slowly, machines.address) as pool:
        results = pool.map(range(120))
        found = [next(results) for _ in range(20)]
        assert len({machine for _, machine in found}) == 2
        threading.Timer(0.02, machines.have, (1,)).start()
        found += results
        assert [number for number, _ in found] == list(range(120))
        assert len({machine for _, machine in found[60:]}) == 1
        machines.have(0)
        with pytest.raises(NmtError, match="no machine of the cluster that runs has a CPU; start"):
            list(pool.map(range(5)))
    with pytest.raises(NmtError, match="no machine of the cluster that runs has a CPU; start"):
        RayPool(squared, RayCluster(machines.address))
