"""Limits of control groups are found in the layouts of containers, services, pods and jobs."""

from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.machine import control_groups
from nmt.machine.control_groups import allowed_cores, allowed_memory, free_memory
from nmt.machine.processor import available_cores, installed_memory

V1 = {
    "memory": "32 31 0:28 {root} {top}/memory rw,nosuid - cgroup cgroup rw,memory",
    "cpu": "33 31 0:29 {root} {top}/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct",
    "systemd": "34 31 0:30 {root} {top}/systemd rw - cgroup cgroup rw,xattr,name=systemd",
}
V2 = "30 23 0:26 {root} {top} ro,nosuid,nodev shared:4 - cgroup2 cgroup2 rw,nsdelegate"
HYBRID = "35 31 0:31 {root} {top}/unified rw - cgroup2 cgroup2 rw"
OTHER = "22 27 0:21 / /proc rw,relatime - proc proc rw"

SetUp = Callable[..., None]


@pytest.fixture
def set_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> SetUp:
    """A function that describes groups: own lines, mounts, where those begin, and their files."""
    monkeypatch.setattr(control_groups, "_PROCESS", tmp_path)
    monkeypatch.setattr("os.sched_getaffinity", lambda process: range(8))
    request.addfinalizer(allowed_cores.cache_clear)

    def write(own: str, mounts: list[str], root: str, files: dict[str, str]) -> None:
        allowed_cores.cache_clear()
        top = tmp_path / "sys/fs/cgroup"
        (tmp_path / "cgroup").write_text(own)
        lines = [line.format(root=root, top=top) for line in (OTHER, *mounts)]
        (tmp_path / "mountinfo").write_text("\n".join(lines) + "\n")
        for name, content in files.items():
            (top / name).parent.mkdir(parents=True, exist_ok=True)
            (top / name).write_text(f"{content}\n")

    return write


@pytest.mark.parametrize(
    ("own", "mounts", "root", "files", "cores", "memory"),
    [
        pytest.param("", [], "/", {}, 8, None, id="no groups"),
        pytest.param(
            "0::/\n", [V2], "/", {"memory.max": "600", "cpu.max": "150000 100000"}, 2, 600,
            id="container, version 2, with a namespace of its own",
        ),
        pytest.param(
            "0::/docker/1f\n", [V2], "/docker/1f", {"memory.max": "600"}, 8, 600,
            id="container, version 2, whose group is not visible",
        ),
        pytest.param(
            "0::/../other\n", [V2], "/", {"memory.max": "600"}, 8, 600,
            id="a group outside of the namespace",
        ),
        pytest.param(
            "0::/system.slice/nmt.service\n", [V2], "/",
            {
                "system.slice/nmt.service/memory.max": "max",
                "system.slice/nmt.service/memory.high": "500",
                "system.slice/memory.max": "700",
                "system.slice/cpu.max": "300000 100000",
            }, 3, 500, id="service of systemd with MemoryHigh, in a slice with limits",
        ),
        pytest.param(
            "5:memory:/docker/1f\n4:cpu,cpuacct:/docker/1f\n1:name=systemd:/docker/1f\n",
            list(V1.values()), "/docker/1f",
            {
                "memory/memory.limit_in_bytes": "600",
                "cpu,cpuacct/cpu.cfs_quota_us": "50000",
                "cpu,cpuacct/cpu.cfs_period_us": "100000",
            }, 1, 600, id="container, version 1",
        ),
        pytest.param(
            "5:memory:/docker/1f/job\n4:cpu,cpuacct:/docker/1f\n", list(V1.values()), "/docker/1f",
            {
                "memory/memory.limit_in_bytes": "600",
                "memory/job/memory.limit_in_bytes": "500",
                "cpu,cpuacct/cpu.cfs_quota_us": "-1",
                "cpu,cpuacct/cpu.cfs_period_us": "100000",
            }, 8, 500, id="a group inside a container, version 1",
        ),
        pytest.param(
            "9:memory:/kubepods/burstable/pod7/c3\n8:cpu,cpuacct:/kubepods/burstable/pod7/c3\n",
            list(V1.values()), "/",
            {
                "memory/kubepods/burstable/pod7/c3/memory.limit_in_bytes": "9223372036854771712",
                "memory/kubepods/burstable/pod7/memory.limit_in_bytes": "800",
                "cpu,cpuacct/kubepods/burstable/pod7/cpu.cfs_quota_us": "220000",
                "cpu,cpuacct/kubepods/burstable/pod7/cpu.cfs_period_us": "100000",
            }, 3, 800, id="pod of Kubernetes, version 1, seen from the machine",
        ),
        pytest.param(
            "7:memory:/slurm/uid_5/job_4/step_0/task_0\n4:cpu,cpuacct:/\n", list(V1.values()), "/",
            {
                "memory/slurm/uid_5/job_4/memory.limit_in_bytes": "700",
                "memory/slurm/uid_5/job_4/step_0/memory.limit_in_bytes": "900",
            }, 8, 700, id="job of Slurm, version 1",
        ),
        pytest.param(
            "0::/system.slice/slurmstepd.scope/job_4/step_0/user/task_0\n", [V2], "/",
            {"system.slice/slurmstepd.scope/job_4/memory.max": "700"}, 8, 700,
            id="job of Slurm, version 2",
        ),
        pytest.param(
            "4:memory:/job\n1:cpu:/\n0::/\n",
            [V1["memory"], V1["cpu"].replace("cpu,cpuacct", "cpu"), HYBRID], "/",
            {
                "memory/job/memory.limit_in_bytes": "600",
                "cpu/cpu.cfs_quota_us": "400000",
                "cpu/cpu.cfs_period_us": "100000",
            }, 4, 600, id="hybrid: memory and cpu in version 1, version 2 beside them",
        ),
        pytest.param(
            "0::/jobs/job 1:2\n", [V2.replace("{top}", r"{top}/the\040groups")], "/",
            {"the groups/jobs/job 1:2/memory.max": "600"}, 8, 600, id="spaces and colons in names",
        ),
        pytest.param(
            "0::/\n", [V2], "/",
            {"memory.max": "damaged", "cpu.max": "1 0", "memory.limit_in_bytes": "x"}, 8, None,
            id="damaged files",
        ),
        pytest.param("damaged\n", ["a - cgroup2", "31 - cgroup"], "/", {}, 8, None, id="damaged"),
    ],
)  # fmt: skip
def test_limits_are_found_in_the_layout_of(
    set_up: SetUp,
    own: str,
    mounts: list[str],
    root: str,
    files: dict[str, str],
    cores: int,
    memory: int | None,
) -> None:
    set_up(own, mounts, root, files)
    assert (available_cores(), allowed_memory()) == (cores, memory)
    assert memory is None or installed_memory() in (memory, None)


@pytest.mark.parametrize(
    ("quota", "cores"),
    [("max 100000", 8), ("150000 100000", 2), ("900000 100000", 8), ("5000 100000", 1)],
)
def test_a_broken_number_of_cores_counts_as_the_next_whole_one(
    set_up: SetUp, quota: str, cores: int
) -> None:
    set_up("0::/\n", [V2], "/", {"cpu.max": quota})
    assert available_cores() == cores


def test_cached_files_of_a_group_can_be_freed(set_up: SetUp) -> None:
    statistics = "cache 9\ninactive_file 1\nactive_file 2\n"
    files = {"memory.max": "1000", "memory.high": "max", "memory.current": "600"}
    set_up("0::/\n", [V2], "/", files)
    assert free_memory() == 400
    set_up("0::/\n", [V2], "/", files | {"memory.stat": statistics})
    assert free_memory() == 403
    files = {"memory/memory.limit_in_bytes": "700", "memory/memory.usage_in_bytes": "600"}
    totals = "total_inactive_file 30\ntotal_active_file 20\n"
    set_up("4:memory:/\n", [V1["memory"]], "/", files | {"memory/memory.stat": statistics + totals})
    assert free_memory() == 150
    set_up("", [], "/", {})
    assert free_memory() is None


def test_a_system_without_groups_has_no_limits(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setattr(control_groups, "_PROCESS", Path("/nowhere"))
    request.addfinalizer(allowed_cores.cache_clear)
    allowed_cores.cache_clear()
    assert allowed_memory() is None and free_memory() is None
    assert available_cores() >= 1
