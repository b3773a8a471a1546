"""The runs of a sweep: which are done, what the others take, and training some at a time."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from nmt.errors import ConfigError, NmtError, StoppedBySignal
from nmt.machine.processor import available_cores, is_cpu
from nmt.recipe.config import Config
from nmt.recipe.config_file import load_config
from nmt.recipe.variants import Point
from nmt.run.directory import RunDirectory
from nmt.training.changed_recipe import check_recipe_unchanged
from nmt.training.inheritance import inherit
from nmt.training.result import missing_part

POLL_SECONDS = 0.2
_SHOWN = 3  # mistakes that a message has
_SET_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of Linux: the signal that a process gets when its parent dies"""


def check_points(points: Mapping[str, Callable[[], Config]], folder: Path) -> dict[str, Config]:
    """Return the recipe of each point, by its name; the values of `points` load them.

    It is completed by the run that training.initialize_from names.

    Raises:
        ConfigError: A recipe has a mistake, or the run of its name in `folder` has begun with
            another one. The message has the first mistakes, each with the first point that has it.
    """
    recipes: dict[str, Config] = {}
    mistakes: dict[str, str] = {}
    for name, load in points.items():
        try:
            directory = RunDirectory(folder / name)
            recipes[name] = inherit(load(), directory)
            check_recipe_unchanged(directory, recipes[name])
        except NmtError as error:
            mistakes.setdefault(str(error), name)
    if mistakes:
        lines = [f"{name}: {mistake}" for mistake, name in mistakes.items()]
        more = [f"and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
        raise ConfigError("\n".join([*lines[:_SHOWN], *more]))
    return recipes


def is_done(directory: RunDirectory, recipe: Config) -> bool:
    """Return whether a run has been trained by this recipe to its end, and its test set scored.

    It is False as well if only training can tell, as when the recipe has more steps now.
    """
    if missing_part(directory, recipe):
        return False
    with contextlib.suppress(ConfigError):
        return load_config(str(directory.config)).model_dump() == recipe.model_dump()
    return False


def estimate_costs(recipes: Sequence[Config]) -> list[tuple[float, int]]:
    """Return (seconds, bytes on disk) of each run on this machine, whose text is prepared once.

    Steps of the first recipe are timed, and the others are taken to follow their number of
    operations. Another process computes this, so that this one keeps no memory of the device.

    Raises:
        NmtError: A recipe cannot be planned, see `nmt.planning.plan.make_plan`.
    """
    ends_silently = (signal.SIGINT, signal.SIG_DFL)
    with ProcessPoolExecutor(1, get_context("spawn"), signal.signal, ends_silently) as process:
        return process.submit(_estimate_costs, recipes).result()


def _estimate_costs(recipes: Sequence[Config]) -> list[tuple[float, int]]:
    from nmt.planning.plan import Plan, make_plan

    plans: dict[str, Plan] = {}  # of recipes that differ in more than the seed
    costs = []
    prepared = set()
    for recipe in recipes:
        of_any_seed = str(recipe.model_copy(update={"seed": 1}))
        plan = plans.get(of_any_seed) or make_plan(recipe, measure=not plans)
        plans[of_any_seed] = plan
        first = next(iter(plans.values()))
        assert first.time is not None  # it was measured
        preparation = first.time.preparation or 0.0
        seconds = (first.time.total - preparation) * plan.operations / first.operations
        text = f"{recipe.data} {recipe.tokenizer}"
        if text not in prepared:
            seconds += plan.workload.preparation or 0.0
        prepared.add(text)
        costs.append((seconds, plan.disk["total"]))
    return costs


def gpus_for(device: str) -> list[str]:
    """Return the GPUs, as CUDA_VISIBLE_DEVICES names them, that training.device may mean."""
    if device not in ("auto", "cuda") or is_cpu(device):
        return []
    import torch

    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return visible.split(",") if visible else list(map(str, range(torch.cuda.device_count())))


def start_training(
    arguments: Sequence[str], log: Path, place: int, jobs: int, gpus: Sequence[str]
) -> subprocess.Popen[bytes]:
    """Start a training by the arguments of its command, on its share of the machine.

    It is number `place` (from 0) of `jobs` at a time, and gets every `jobs`-th core (on Linux), or
    one of `gpus`. What it prints is appended to the file `log`. It has a process group of its own:
    Ctrl-C reaches this program alone, which stops it. On Linux the death of this program does too.
    """
    gpu = {"CUDA_VISIBLE_DEVICES": gpus[place % len(gpus)]} if gpus else {}
    set_option = getattr(ctypes.CDLL(None), "prctl", lambda *arguments: 0)
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "nmt", "train", *arguments],
            env=os.environ | gpu,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=lambda: set_option(_SET_DEATH_SIGNAL, signal.SIGTERM),
        )
    if jobs > 1 and hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))[: available_cores()]
        with contextlib.suppress(ProcessLookupError):  # it has ended already
            os.sched_setaffinity(process.pid, cores[place::jobs] or [cores[place % len(cores)]])
    return process


def run_all(
    points: Iterable[Point],
    start: Callable[[Point, int], subprocess.Popen[bytes]],
    jobs: int,
    ended: Callable[[str, int], object],
    is_unwanted: Callable[[str], bool] = lambda name: False,
) -> None:
    """Start a process for each point, `jobs` at a time, until there are no more and all have ended.

    `start` gets the number of a free place, from 0, and `ended` the name of the point and the exit
    code. A process is stopped early if `is_unwanted` says so of its point, which it says once.

    Raises:
        StoppedBySignal: A signal came. The processes were stopped, and have ended.
    """
    waiting = iter(points)
    running: dict[int, tuple[str, subprocess.Popen[bytes]]] = {}
    try:
        while True:
            for place in set(range(jobs)) - running.keys():
                if point := next(waiting, None):
                    running[place] = point.name, start(point, place)
            if not running:
                return
            time.sleep(POLL_SECONDS)
            for place, (name, process) in list(running.items()):
                if (code := process.poll()) is not None:
                    del running[place]
                    ended(name, code)
                elif is_unwanted(name):
                    process.terminate()
    finally:
        _stop([process for _name, process in running.values()])


def _stop(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Stop processes and wait while they save; another signal meanwhile stops them at once."""
    for _attempt in range(2):
        for process in processes:
            process.terminate()
        with contextlib.suppress(StoppedBySignal):
            for process in processes:
                process.wait()
            return
