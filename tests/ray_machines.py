"""A Ray cluster on this machine, for tests: its machines are processes, and can be killed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


class RayMachines:
    """A machine without cores, where the command runs, and others of one core each."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self._others: list[Any] = []

    @property
    def address(self) -> str:
        return str(self._cluster.address)

    def have(self, count: int) -> None:
        """Start or kill machines of one core until there are so many."""
        while len(self._others) > count:
            self._cluster.remove_node(self._others.pop(), allow_graceful=False)
        while len(self._others) < count:
            self._others.append(self._cluster.add_node(num_cpus=1))


@pytest.fixture(scope="module")
def _ray_cluster(project: Path) -> Iterator[RayMachines]:
    pytest.importorskip("ray", reason="needs the extra nmt[ray]")
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(project))
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
        yield RayMachines(cluster)
        cluster.shutdown()


@pytest.fixture
def machines(_ray_cluster: RayMachines) -> RayMachines:
    """A Ray cluster with two cores, on two machines."""
    _ray_cluster.have(2)
    return _ray_cluster
