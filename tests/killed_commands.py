"""Commands of `nmt` in processes of their own, which a test kills at any moment."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
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
