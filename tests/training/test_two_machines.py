"""Two machines that share a disk and a network train as one process does.

The machines are two network namespaces with a cable between them, so that nothing but the network
and the run directory connects the processes.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.config import Config
from nmt.config_file import dump_config
from nmt.run_directory import RunDirectory
from nmt.training.train import train

Recipe = Callable[..., Config]

# Runs its arguments on both machines, followed by the number of the machine and the recipe.
MACHINES = r"""
set -e
recipe=$1; run=$2; python=$3
ip link set lo up
ip link add name cable0 type veth peer name cable1
unshare --net sleep 300 &
other=$!
trap 'kill $other' EXIT
while [ "$(readlink /proc/$other/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do sleep 0.05; done
ip link set cable1 netns $other
there="nsenter --target $other --net"
ip address add 10.77.0.1/24 dev cable0
ip link set cable0 up
$there ip link set lo up
$there ip address add 10.77.0.2/24 dev cable1
$there ip link set cable1 up
torchrun="$python -m torch.distributed.run --nnodes 2 --nproc-per-node 1
  --master-addr 10.77.0.1 --master-port 29517"
nmt="-m nmt train --config $recipe --run-dir $run"
GLOO_SOCKET_IFNAME=cable1 $there $torchrun --node-rank 1 $nmt &
second=$!
GLOO_SOCKET_IFNAME=cable0 $torchrun --node-rank 0 $nmt
wait $second
"""


def losses(run: RunDirectory) -> list[float]:
    lines = [json.loads(line) for line in run.metrics.read_text("utf-8").splitlines()]
    return [line["loss"] for line in lines if line["event"] == "train"]


@pytest.mark.slow
def test_two_machines_learn_what_one_process_learns(recipe: Recipe, tmp_path: Path) -> None:
    apart = ["unshare", "--map-root-user", "--net"]
    probe = [*apart, "ip", "link", "add", "name", "a", "type", "veth", "peer", "name", "b"]
    try:
        subprocess.run(probe, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no networks can be made here: {getattr(error, 'stderr', None) or error}")
    config = recipe("training.log_every=1", "model.dropout=0.0")
    (tmp_path / "recipe.yaml").write_text(dump_config(config), "utf-8")
    alone = train(config, tmp_path / "alone", lambda message: None)
    places = [str(tmp_path / "recipe.yaml"), str(tmp_path / "run"), sys.executable]
    done = subprocess.run(
        [*apart, "sh", "-c", MACHINES, "machines", *places],
        capture_output=True,
        encoding="utf-8",
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    found = losses(RunDirectory(tmp_path / "run"))
    assert found[:10] == pytest.approx(losses(alone)[:10], abs=1e-4)
