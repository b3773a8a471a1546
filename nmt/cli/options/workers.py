"""The options of commands whose work several processes or machines share."""

import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Callable

    from nmt.machine.process_pool import Result, Task
    from nmt.translation.pipeline import Pipeline
    from nmt.translation.ray_pool import RayCluster, RayPool
    from nmt.translation.request import TranslationRequest
    from nmt.translation.translator import Translator


def _check_workers(text: str) -> str:
    if text != "auto" and not re.fullmatch("[1-9][0-9]{0,2}", text):
        raise typer.BadParameter(f"'{text[:20]}': expected auto or a number from 1 to 999")
    return text


@dataclass(frozen=True)
class RayOptions:
    """Whether a Ray cluster does the work."""

    ray: Annotated[str | None, typer.Option(metavar="ADDRESS")] = None
    """Compute on the machines of a Ray cluster: auto or HOST:PORT joins one that runs, local starts
    one on this machine. Needs the extra nmt[ray]."""

    def cluster(self, workers: str = "auto") -> "RayCluster | None":
        """Return the cluster that --ray names, or None without --ray.

        `workers` is the largest number of its workers; auto: one for each of its cores or GPUs.
        """
        if self.ray is None:
            return None
        from nmt.translation.ray_pool import RayCluster

        return RayCluster(self.ray, None if workers == "auto" else int(workers))

    def pool(
        self, compute: "Callable[[Task], Result]", device: str
    ) -> "RayPool[Task, Result] | None":
        """Return a pool that computes tasks on the cluster that --ray names; None without --ray.

        `compute` is the function that is called with each task; `device` is the type of device
        that it needs, such as cpu or cuda.

        Raises:
            NmtError: the cluster cannot be used.
        """
        from nmt.translation.ray_pool import RayPool

        cluster = self.cluster()
        return RayPool(compute, cluster, device) if cluster else None


@dataclass(frozen=True)
class WorkerOptions(RayOptions):
    """Who shares the work: processes of this machine, or a Ray cluster."""

    workers: Annotated[str, typer.Option(callback=_check_workers, metavar="auto|N")] = "auto"
    """Number of processes that translate, with one thread each. auto is one per core, but one in
    all on a GPU, for typed input and for a few lines; with --ray one per core or GPU of it."""

    def pipeline(
        self,
        translator: "Translator",
        request: "TranslationRequest | None" = None,
        is_typed: bool = False,
    ) -> "Pipeline":
        """Build the pipeline for a request, with the workers that the options ask for.

        `is_typed`: somebody types the lines at a terminal; then --workers auto is one process.

        Raises:
            ConfigError: the request contradicts itself, or --workers is too many for a GPU.
            NmtError: the Ray cluster cannot be used.
        """
        if cluster := self.cluster(self.workers):
            return translator.pipeline(request, cluster=cluster)
        processes = self.choose_processes(translator.loaded.device_type, is_typed)
        return translator.pipeline(request, processes)

    def choose_processes(self, device: str, is_typed: bool = False) -> int:
        """Return how many processes are to translate on a type of device, such as cpu or cuda.

        With --workers auto, that is one per core of a CPU, but one for typed input and outside of
        Linux. `ProcessPool` starts none of them for a single batch. With a number, on a CPU, this
        process is limited to one PyTorch thread too.

        Raises:
            ConfigError: --workers is more than 1 on a GPU.
        """
        from nmt.machine.process_pool import check_processes
        from nmt.machine.processor import available_cores, use_one_thread

        if self.workers == "auto":
            one_process = device != "cpu" or is_typed or sys.platform != "linux"
            return 1 if one_process else available_cores()
        processes = int(self.workers)
        if device == "cpu":
            use_one_thread()
        else:
            check_processes(processes)
        return processes
