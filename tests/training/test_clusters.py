"""The scripts for clusters in nmt/training/README.md start one training in two processes."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from nmt.run.directory import RunDirectory
from tests.training.runs import Recipe, losses, write_recipe

README = Path(__file__).resolve().parents[2] / "nmt" / "training" / "README.md"
SRUN = """#!/bin/sh
# starts the command once for each of two machines
"$@" & first=$!
"$@" & second=$!
wait $first && wait $second
"""


def fenced(language: str) -> str:
    """The block of a language in the README, with a free port for its own."""
    [block] = re.findall(rf"```{language}\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return str(block).replace("29400", str(one.getsockname()[1]))


def workplace(folder: Path, recipe: Recipe) -> dict[str, str]:
    """Write mine.yaml and the programs of the cluster; return the environment."""
    write_recipe(recipe("training.max_steps=4"), folder).rename(folder / "mine.yaml")
    programs = folder / "bin"
    programs.mkdir()
    torchrun = f'#!/bin/sh\nexec {sys.executable} -m torch.distributed.run "$@"\n'
    for name, text in {
        "srun": SRUN,
        "scontrol": "#!/bin/sh\necho localhost\n",
        "torchrun": torchrun,
    }.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1"}


def check_that_two_trained(folder: Path, err: str) -> None:
    run = RunDirectory(folder / "runs" / "mine")
    assert max(losses(run)) == 4, err
    assert "2 processes" in err


@pytest.mark.slow
def test_slurm(recipe: Recipe, tmp_path: Path) -> None:
    environment = workplace(tmp_path, recipe)
    environment |= {"SLURM_JOB_NODELIST": "node[1-2]", "SLURM_NNODES": "2", "SLURM_JOB_ID": "7"}
    done = subprocess.run(
        ["bash", "-c", fenced("sh")],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    check_that_two_trained(tmp_path, done.stderr)


@pytest.mark.slow
def test_kubernetes(recipe: Recipe, tmp_path: Path) -> None:
    environment = workplace(tmp_path, recipe)
    _, job = yaml.safe_load_all(fenced("yml"))
    [container] = job["spec"]["template"]["spec"]["containers"]
    [script] = container["args"]
    script = script.replace("nmt-0.nmt", "localhost").replace("--nproc-per-node 4", "")
    pods = [
        subprocess.Popen(
            [*container["command"], script],
            env={**environment, "JOB_COMPLETION_INDEX": str(index)},
            cwd=tmp_path,
            stderr=subprocess.PIPE,
            text=True,
        )
        for index in range(job["spec"]["completions"])
    ]
    errors = [pod.communicate(timeout=240)[1] for pod in pods]
    assert [pod.returncode for pod in pods] == [0, 0], errors
    check_that_two_trained(tmp_path, "".join(errors))
