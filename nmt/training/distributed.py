"""Several processes that train one model, each computing a part of every step.

`torchrun --nproc-per-node N -m nmt train --config C` starts them, on one machine or on several that
share the run directory, and starts them anew from the last checkpoint when one dies. Each takes
every N-th pair of a step, shortest first; PyTorch's DistributedDataParallel adds up their
gradients, so all of them make the same update. One of them, the leader, writes and talks.
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

# Whose functions would keep the group, were they loaded when there is one: its threads would still
# run when Python ends, which aborts the process now and then.
import torch.distributed.nn.functional
from torch import Tensor, nn
from torch.distributed import PrefixStore, Store  # type: ignore[attr-defined]
from torch.distributed.rendezvous import rendezvous as torch_rendezvous
from torch.nn.parallel import DistributedDataParallel

from nmt.data.tokens.token_store import Indices, Lengths
from nmt.errors import ConfigError, NmtError

_T = TypeVar("_T")

# The others wait while the leader validates or prepares data.
_PATIENCE = timedelta(hours=6)
# Processes that do not find each other in that time are better started anew.
_TIME_TO_MEET = timedelta(minutes=5)
_LOOK_EVERY = 0.02  # seconds


@dataclass(frozen=True)
class ProcessGroup:
    """This process and those that train with it; a process alone leads itself."""

    rank: int = 0
    size: int = 1

    @property
    def is_main(self) -> bool:
        """Whether this is the one that writes and talks."""
        return self.rank == 0

    def shard(self, indices: Indices, source_lengths: Lengths, target_lengths: Lengths) -> Indices:
        """The pairs of a step that this process computes; lengths are alike in all shares."""
        if self.size == 1:
            return indices
        total = target_lengths[indices] + source_lengths[indices]
        return indices[total.argsort(kind="stable")[self.rank :: self.size]]

    def data_parallel(self, module: nn.Module) -> nn.Module:
        """The module, its gradients being averaged over all processes in the backward pass."""
        if self.size == 1:
            return module
        with warnings.catch_warnings():  # 2.13 has another word for it, which 2.11 does not know
            warnings.simplefilter("ignore", FutureWarning)
            return DistributedDataParallel(module, broadcast_buffers=False)

    def all_reduce_sum(self, value: Tensor) -> Tensor:
        """The sum of a tensor over all processes, computed where the tensor is."""
        if self.size > 1:
            torch.distributed.all_reduce(value)
        return value

    def all_reduce_max(self, value: int) -> int:
        """The largest of a number over all processes."""
        if self.size == 1:
            return value
        number = torch.tensor(value)
        torch.distributed.all_reduce(number, torch.distributed.ReduceOp.MAX)
        return int(number)

    def all_gather(self, value: _T) -> list[_T]:
        """A value of each process, by rank."""
        if self.size == 1:
            return [value]
        values: list[_T] = [value] * self.size
        torch.distributed.all_gather_object(values, value)
        return values

    def broadcast_from_main(self, make: Callable[[], _T]) -> _T:
        """What the leader makes, for all."""
        return self.all_gather(make() if self.is_main else None)[0]  # type: ignore[return-value]

    def main_process_first(self, make: Callable[[], _T]) -> _T:
        """Let each process make something of its own once the leader has succeeded in it.

        Where it has not, the others leave without a word: it says why.
        """
        if not self.is_main:
            if exit_code := self.all_gather(0)[0]:
                sys.exit(exit_code)
            return make()
        try:
            made = make()
        except NmtError as error:
            self.all_gather(error.exit_code)
            raise
        self.all_gather(0)
        return made


def rendezvous(store: Store, rank: int, size: int, patience: timedelta) -> str:
    """A name that the processes started together agree on, and none started before them knows.

    PyTorch's launcher keeps its store when it starts processes anew (seen in 2.13), with the
    addresses of the dead in it; who reads one of those waits for ever. So each process announces
    itself under a name of its own, and the leader answers to that name until all have heard it.

    Raises:
        TimeoutError: some have not come, says the leader after its `patience`.
        torch.distributed.DistStoreError: the leader has not answered, say the others.
    """
    own = uuid.uuid4().hex
    if rank > 0:
        store.set(f"nmt/arrived/{rank}", own)
        store.wait([f"nmt/answer/{own}"], patience)
        room = store.get(f"nmt/answer/{own}").decode()
        store.set(f"nmt/heard/{room}/{rank}", "")
        return room
    missing, deadline = set(range(1, size)), time.monotonic() + patience.total_seconds()
    while missing:
        for other in sorted(missing):
            if store.check([f"nmt/heard/{own}/{other}"]):
                missing.remove(other)
            elif store.check([f"nmt/arrived/{other}"]):
                store.set(f"nmt/answer/{store.get(f'nmt/arrived/{other}').decode()}", own)
        if missing and time.monotonic() > deadline:
            raise TimeoutError(f"processes {sorted(missing)} of {size} have not come")
        time.sleep(_LOOK_EVERY)
    return own


@contextlib.contextmanager
def join_process_group(device: str) -> Iterator[ProcessGroup]:
    """Join the other processes if `torchrun` has started this one, and leave them at the end.

    Raises:
        ConfigError: `device` (auto, cpu or cuda) has fewer GPUs than processes on this machine.
        NmtError: they have not come, or cannot be reached.
    """
    if not torch.distributed.is_torchelastic_launched():
        yield ProcessGroup()
        return
    backend = "gloo"
    if device != "cpu" and torch.cuda.is_available():
        processes, count = int(os.environ["LOCAL_WORLD_SIZE"]), torch.cuda.device_count()
        if processes > count:
            raise ConfigError(
                f"torchrun started {processes} processes on a machine with {count} GPUs; start as "
                "many as there are GPUs, or set training.device: cpu"
            )
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        backend = "cpu:gloo,cuda:nccl"
    try:
        store, rank, size = next(torch_rendezvous("env://", timeout=_TIME_TO_MEET))
        store.set_timeout(_PATIENCE)
        room = PrefixStore(rendezvous(store, rank, size, _TIME_TO_MEET), store)
        torch.distributed.init_process_group(
            backend, store=room, rank=rank, world_size=size, timeout=_PATIENCE
        )
    except (TimeoutError, RuntimeError) as error:
        place = {name: os.environ.get(name, "?") for name in ("RANK", "MASTER_ADDR", "MASTER_PORT")}
        raise NmtError(
            f"process {place['RANK']} has not met the others: {_first_line(error)}; see that "
            "torchrun is started on every machine with the same command, and that each can reach "
            f"{place['MASTER_ADDR']}, port {place['MASTER_PORT']}"
        ) from error
    try:
        yield ProcessGroup(rank, size)
    finally:
        torch.distributed.destroy_process_group()


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(".")
