"""Cores and memory that the control groups of this process allow; on Linux, versions 1 and 2.

A container, a pod, a service or a job of a cluster is such a group: a folder whose files hold its
limits. Version 2 has one tree of groups. Version 1 has a tree for each resource. In a container,
the folder at which a tree is mounted is the container's own group.
"""

import functools
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

_Number = TypeVar("_Number", int, float)
_PROCESS = Path("/proc/self")
"""the folder in which the kernel describes this process: its groups, and what is mounted where"""


@functools.cache  # it reads files, and each sentence that is encoded asks for the cores
def allowed_cores() -> float:
    """Return the number of cores whose time the groups allow; `sys.maxsize` without a limit."""
    return _least(_cpu_quota(group) for group in control_groups()) or sys.maxsize


def allowed_memory() -> int | None:
    """Return the bytes of memory that the groups allow; None without a limit.

    Above `memory.high` the kernel slows a process down until it hardly moves, so that limit counts
    as the others do.
    """
    return _least(_memory_limit(group) for group in control_groups())


def free_memory() -> int | None:
    """Return the bytes of memory that the groups may still take; None without a limit."""
    return _least(_free_in_group(group) for group in control_groups())


def control_groups() -> list[Path]:
    """Return the folders of this process's groups and of those around them, innermost first.

    The limits of each of them hold. Some folders may not exist.
    """
    try:
        lines = (_PROCESS / "cgroup").read_text("utf-8").splitlines()
        mounts = (_PROCESS / "mountinfo").read_text("utf-8").splitlines()
    except (OSError, ValueError):
        return []
    # "4:cpu,cpuacct:/docker/1f" has a path for two resources; "0::/job" is that of version 2
    entries = [line.split(":", 2) for line in lines if line.count(":") >= 2]
    paths = {name: path for _, names, path in entries for name in names.split(",")}
    folders = (folder for mount in mounts for folder in _mounted_groups(mount, paths))
    return list(dict.fromkeys(folders))


def _mounted_groups(line: str, paths: dict[str, str]) -> Iterator[Path]:
    """Yield the groups of `paths`, {resource: path}, that are visible by a line of mountinfo.

    Such as "31 23 0:28 /docker/1f /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu,cpuacct": below the
    folder /sys/fs/cgroup/cpu stand the group /docker/1f and those inside.
    """
    fields, _, device = line.partition(" - ")
    kind, _, options = device.partition(" ")
    if kind not in {"cgroup", "cgroup2"} or len(fields.split()) < 5:
        return
    # spaces are written as "\040"
    root, top = (
        Path(re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), field))
        for field in fields.split()[3:5]
    )
    resources = {""} if kind == "cgroup2" else {"cpu", "memory"} & set(re.split("[ ,]", options))
    for path in (Path(paths[name]) for name in sorted(resources) if name in paths):
        # a group outside of those that a container sees is none of its folders
        is_visible = path.is_relative_to(root) and ".." not in path.parts
        inner = top / path.relative_to(root) if is_visible else top
        yield from (folder for folder in (inner, *inner.parents) if folder.is_relative_to(top))


def _cpu_quota(group: Path) -> float | None:
    """Return the number of cores whose time a group allows; None if it sets no limit."""
    try:
        # two numbers of µs: the processor time that is allowed in each period, and the period
        if (group / "cpu.max").exists():
            limit, period = (group / "cpu.max").read_text("ascii").split()
        else:
            names = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
            limit, period = ((group / name).read_text("ascii").strip() for name in names)
        return None if limit in {"max", "-1"} else int(limit) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return None


def _memory_limit(group: Path) -> int | None:
    """Return the bytes of memory that a group allows; None if it sets no limit."""
    names = ("memory.max", "memory.high", "memory.limit_in_bytes")
    return _least(_read_number(group / name) for name in names)


def _free_in_group(group: Path) -> int | None:
    """Return the bytes that a group may still take; None if it sets no limit.

    It counts cached files as used, but can free them.
    """
    names = ("memory.current", "memory.usage_in_bytes")  # of version 2 and 1
    limit, used = _memory_limit(group), _least(_read_number(group / name) for name in names)
    if limit is None or used is None:
        return None
    try:
        lines = (group / "memory.stat").read_text("ascii").splitlines()
    except (OSError, ValueError):
        lines = []
    statistics = dict(line.split() for line in lines if line.count(" ") == 1)
    # in version 1, "total" counts the groups inside as well, as version 2 does
    version_1 = "total_" if "total_inactive_file" in statistics else ""
    cached = (statistics.get(f"{version_1}{kind}_file", "0") for kind in ("active", "inactive"))
    return limit - used + sum(map(int, cached))


def _least(numbers: Iterable[_Number | None]) -> _Number | None:
    """Return the least number that is known, None if none is."""
    return min((number for number in numbers if number is not None), default=None)


def _read_number(path: Path) -> int | None:
    """Return the number in a file of a group; None if it is "max", or not readable."""
    try:
        return int(path.read_text("ascii"))
    except (OSError, ValueError):
        return None
