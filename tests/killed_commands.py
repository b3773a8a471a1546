"""Commands of `nmt` in processes of their own, which a test kills at any moment."""

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

# Forks a child for each line it reads; the child runs a command until it is killed or done.
_FORKING_PROCESS = """
import importlib, json, os, pkgutil, signal, sys, time
import torch
from nmt.cli.app import app
import nmt.evaluation.metrics, nmt.training.train, nmt.translation.synthesis
import torch._dynamo  # which every optimiser loads: once, and not in each child

torch.set_num_threads(1)
for name, value in json.loads(sys.argv[1]).items():
    module, _, constant = name.rpartition(".")
    setattr(importlib.import_module(module), constant, value)


def die_at(name, count):
    owner, _, name = name.rpartition(".")
    owner, calls = pkgutil.resolve_name(owner), []
    original = getattr(owner, name)
    def counted(*arguments, **named):
        calls.append(1)
        if len(calls) == count:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*arguments, **named)
    setattr(owner, name, counted)


for line in sys.stdin:
    plan = json.loads(line)
    child = os.fork()
    if child == 0:
        os.dup2(2, 1)  # the answers alone go to stdout
        if plan["point"]:
            die_at(plan["point"], plan["count"])
        app(plan["words"], standalone_mode=False)
        os._exit(0)
    if plan["seconds"] is not None:
        time.sleep(plan["seconds"])
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    print(json.dumps(os.waitstatus_to_exitcode(status)), flush=True)
"""


@dataclass(frozen=True)
class CommandForks:
    """Runs commands in forks of a process that has loaded PyTorch, so that each starts at once."""

    _requests: IO[str]
    _answers: IO[str]

    def run(
        self,
        words: Sequence[object],
        seconds: float | None = None,
        point: str | None = None,
        count: int = 1,
    ) -> int:
        """Run a command line; return its exit code, which is -SIGKILL if it was killed.

        It is killed after so many `seconds`, or before call number `count` of the function that
        `point` names, such as `os.fsync`.
        """
        plan = {"words": list(map(str, words)), "seconds": seconds, "point": point, "count": count}
        print(json.dumps(plan), file=self._requests, flush=True)
        return int(json.loads(self._answers.readline()))


@contextmanager
def command_forks(constants: Mapping[str, object] | None = None) -> Iterator[CommandForks]:
    """Yield what runs commands; `constants` change constants of modules, {dotted name: value}."""
    with subprocess.Popen(
        [sys.executable, "-c", _FORKING_PROCESS, json.dumps(dict(constants or {}))],
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin and process.stdout
        yield CommandForks(process.stdin, process.stdout)


def kill_at_random(
    forks: CommandForks, words: Sequence[object], take_results: Callable[[], object], kills: int
) -> None:
    """Kill a command so often; whenever it has come to its end, its results must be the same.

    `take_results` returns what a complete command has made, and removes it.
    """
    times, results = [], []
    for _ in range(2):  # the first one loads modules, and is slower
        start = time.monotonic()
        assert forks.run(words) == 0
        times.append(time.monotonic() - start)
        results.append(take_results())
    whole = results[0]
    assert results[1] == whole
    draw, killed = random.Random(1), 0
    while killed < kills:
        exit_code = forks.run(words, seconds=draw.uniform(0, min(times)))
        if exit_code:
            assert exit_code == -signal.SIGKILL
            killed += 1
        else:
            assert take_results() == whole
    assert forks.run(words) == 0
    assert take_results() == whole
