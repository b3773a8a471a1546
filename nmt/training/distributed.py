"""Several processes that train one model, each computing a part of every step.

`torchrun --nproc-per-node N -m nmt train --config C` starts them, on one machine or on several that
share the run directory, and restarts them from the last checkpoint when one dies. A step's pairs
are sorted by length, and each process takes every N-th. DistributedDataParallel averages the
gradients, so all processes make the same update. The main process, rank 0, writes files and logs.
"""

import contextlib
import os
import sys
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import torch
import torch.distributed

# Imported before there is a process group: these functions would keep a reference to it, and its
# threads would still run when Python ends, which sometimes aborts the process.
import torch.distributed.nn.functional
from torch import Tensor, nn
from torch.distributed import PrefixStore, Store  # type: ignore[attr-defined]
from torch.distributed.rendezvous import rendezvous as torch_rendezvous
from torch.nn.parallel import DistributedDataParallel

from nmt.data.tokens.token_store import Indices, TokenStore
from nmt.errors import (
    CheckpointError,
    ConfigError,
    DivergedError,
    NmtError,
    StoppedBySignal,
)

_T = TypeVar("_T")

# The longest time that the other processes wait while the main one validates or prepares data.
_COLLECTIVE_TIMEOUT = timedelta(hours=6)
# Processes that do not find each other in this time should be restarted by torchrun.
_RENDEZVOUS_TIMEOUT = timedelta(minutes=5)
_SECONDS_BETWEEN_CHECKS = 0.02
_LOST_CONNECTION = ("Connection closed by peer", "Connection reset by peer", "Broken pipe")
"""parts of the messages of gloo when another process has ended"""


def shard(store: TokenStore, rows: Indices, index: int, count: int) -> Indices:
    """Cut pairs of `store` into `count` shards of similar length; return shard `index` (from 0).

    `rows` and the result are row indices of the store.
    """
    if count == 1:
        return rows
    lengths = store.target.lengths[rows] + store.source.lengths[rows]
    sorted_rows = rows[lengths.argsort(kind="stable")]
    return sorted_rows[index::count]


@dataclass(frozen=True)
class ProcessGroup:
    """This process and those that train with it; by default it trains alone.

    In all methods but `is_main`, all processes must make the same call together.
    """

    rank: int = 0
    size: int = 1

    @property
    def is_main(self) -> bool:
        """Whether this process is the one that writes files and logs: the one of rank 0."""
        return self.rank == 0

    def data_parallel(self, module: nn.Module) -> nn.Module:
        """Return the module, wrapped to average gradients if there are several processes."""
        if self.size == 1:
            return module
        with warnings.catch_warnings():  # PyTorch 2.13 renames an argument that 2.11 needs
            warnings.simplefilter("ignore", FutureWarning)
            return DistributedDataParallel(module, broadcast_buffers=False)

    def all_reduce_sum(self, value: Tensor) -> Tensor:
        """Replace `value` by its sum over all processes, in place, and return it."""
        if self.size > 1:
            torch.distributed.all_reduce(value)
        return value

    def all_reduce_max(self, value: int) -> int:
        """Return the largest of the values that the processes pass."""
        number = torch.tensor(value)
        if self.size > 1:
            torch.distributed.all_reduce(number, torch.distributed.ReduceOp.MAX)
        return int(number)

    def all_gather(self, value: _T) -> list[_T]:
        """Return the values of all processes, in order of rank; a value can be any object."""
        if self.size == 1:
            return [value]
        values: list[_T] = [value] * self.size
        torch.distributed.all_gather_object(values, value)
        return values

    def broadcast_from_main(self, make: Callable[[], _T]) -> _T:
        """Call `make` in the main process only, and return its result in all processes."""
        own_result = make() if self.is_main else None
        return self.all_gather(own_result)[0]  # type: ignore[return-value]

    def main_process_first(self, make: Callable[[], _T]) -> _T:
        """Call `make` in the main process, then in all others; return each process's own result.

        So the main process can write files that the others read. If it raises a NmtError there,
        the others exit with the same code and print nothing.
        """
        if not self.is_main:
            exit_code = self.all_gather(0)[0]  # what the main process passes; 0: no error
            if exit_code:
                sys.exit(exit_code)
            return make()
        try:
            result = make()
        except NmtError as error:
            self.all_gather(error.exit_code)
            raise
        self.all_gather(0)
        return result


def rendezvous(store: Store, rank: int, size: int, timeout: timedelta) -> str:
    """Return a new random name, the same in all processes that were started together.

    The name is a prefix for the keys that this start writes into `store`, the key-value store of
    torchrun. Without it a process would wait forever: after a restart the store still holds
    addresses of dead processes (seen in PyTorch 2.13). To agree on the name, each process writes a
    random id of its own into the store, and the main process answers each id with the name.

    Raises:
        TimeoutError: in the main process: some processes have not announced themselves.
        torch.distributed.DistStoreError: in another process: the main one has not answered.
    """
    if rank > 0:
        own_id = uuid.uuid4().hex
        store.set(f"nmt/arrived/{rank}", own_id)
        store.wait([f"nmt/answer/{own_id}"], timeout)
        name = store.get(f"nmt/answer/{own_id}").decode()
        store.set(f"nmt/received/{name}/{rank}", "")
        return name
    name = uuid.uuid4().hex
    missing, deadline = set(range(1, size)), time.monotonic() + timeout.total_seconds()
    while missing:
        for other in sorted(missing):
            if store.check([f"nmt/received/{name}/{other}"]):
                missing.remove(other)
            elif store.check([f"nmt/arrived/{other}"]):
                # perhaps the id of a dead process: then the living one will write another
                announced_id = store.get(f"nmt/arrived/{other}").decode()
                store.set(f"nmt/answer/{announced_id}", name)
        if missing and time.monotonic() > deadline:
            raise TimeoutError(f"processes {sorted(missing)} of {size} have not come")
        time.sleep(_SECONDS_BETWEEN_CHECKS)
    return name


def _pick_backend(device: str) -> str:
    """Return the backends of the group, such as cpu:gloo,cuda:nccl; give each process its GPU.

    Raises:
        ConfigError: this machine has fewer GPUs than processes, or they cannot train together.
    """
    accelerator = torch.accelerator.current_accelerator(check_available=True)
    kind = "cuda" if device == "auto" else device
    if not accelerator or accelerator.type != kind:
        return "gloo"  # if the device is missing, that is said later, by the main process alone
    if kind == "mps" and int(os.environ["WORLD_SIZE"]) > 1:
        raise ConfigError("processes cannot train together on mps; set training.device: cpu")
    processes, gpus = int(os.environ["LOCAL_WORLD_SIZE"]), torch.accelerator.device_count()
    if processes > gpus:
        raise ConfigError(
            f"torchrun started {processes} processes on a machine with {gpus} GPUs; start as "
            "many as there are GPUs, or set training.device: cpu"
        )
    torch.accelerator.set_device_index(int(os.environ["LOCAL_RANK"]))
    return f"cpu:gloo,{kind}:{torch.distributed.get_default_backend_for_device(kind)}"


def _start_process_group(device: str) -> ProcessGroup:
    """Meet the other processes of `torchrun`; return the group, which is to be destroyed later.

    Raises:
        ConfigError: `device` is one GPU, or this machine has fewer GPUs than processes.
        NmtError: some processes have not started or cannot be reached.
    """
    if ":" in device:  # such as cuda:1
        raise ConfigError(
            f"training.device: {device} is one GPU, and torchrun gives each process one of its "
            "own; set training.device: cuda"
        )
    backend = _pick_backend(device)
    try:
        # from the environment variables that torchrun has set; the iterator yields once
        store, rank, size = next(torch_rendezvous("env://", timeout=_RENDEZVOUS_TIMEOUT))
        store.set_timeout(_COLLECTIVE_TIMEOUT)
        own_store = PrefixStore(rendezvous(store, rank, size, _RENDEZVOUS_TIMEOUT), store)
        torch.distributed.init_process_group(
            backend, store=own_store, rank=rank, world_size=size, timeout=_COLLECTIVE_TIMEOUT
        )
    except (TimeoutError, RuntimeError) as error:
        names = ("RANK", "MASTER_ADDR", "MASTER_PORT")
        own_rank, address, port = (os.environ.get(name, "?") for name in names)
        reason = str(error).partition("\n")[0].rstrip(".")
        raise NmtError(
            f"process {own_rank} has not met the others: {reason}; check that torchrun is "
            "started on every machine with the same command, and that each machine can reach "
            f"{address}, port {port}"
        ) from error
    return ProcessGroup(rank, size)


@contextlib.contextmanager
def join_process_group(device: str) -> Iterator[ProcessGroup]:
    """Yield the group of the processes of `torchrun`, or of this one alone; leave it at the end.

    An error that all processes have raised together leaves the block in the main process only; the
    others exit with the same code and print nothing.

    Raises:
        ConfigError: `device` is one GPU, or this machine has fewer GPUs than processes.
        NmtError: some processes have not started, cannot be reached, or have ended too early.
    """
    if not torch.distributed.is_torchelastic_launched():
        yield ProcessGroup()
        return
    group = _start_process_group(device)
    try:
        yield group
    except (StoppedBySignal, DivergedError, CheckpointError) as error:
        if not group.is_main:
            sys.exit(error.exit_code)
        raise
    except RuntimeError as error:
        if not _is_lost_connection(error):
            raise
        raise NmtError(
            f"process {group.rank} of {group.size} stops, because another process has ended: "
            "the last checkpoint is kept. torchrun starts all of them again as often as "
            "--max-restarts says; after that, the same command continues"
        ) from error
    finally:
        torch.distributed.destroy_process_group()


def _is_lost_connection(error: RuntimeError) -> bool:
    """Return whether an error of PyTorch means that another process of the group has ended."""
    is_of_group = isinstance(error, torch.distributed.DistError)  # such as NCCL's
    return is_of_group or any(text in str(error) for text in _LOST_CONNECTION)
