"""Two machines that a cable joins: network namespaces, each with an end of a virtual one."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from nmt.config import Config
from nmt.run_directory import RunDirectory
from nmt.training.train import train
from tests.training.runs import Recipe, losses, quiet, write_recipe

# Lays the cable from this namespace to another, and runs a command in both: $0 torchrun's options
# and $@ what it starts. --local-addr matters: both machines go by one host name.
TWO_MACHINES = """
set -e
unshare --net sleep infinity & other=$!
trap 'kill $other' EXIT
until [ "$(readlink /proc/$other/ns/net)" != "$(readlink /proc/$$/ns/net)" ]; do sleep 0.05; done
inside() { nsenter --target $other --net "$@"; }
ip link set lo up
ip link add name one type veth peer name two netns $other
ip addr add 10.77.0.1/24 dev one
ip link set one up
inside ip addr add 10.77.0.2/24 dev two
inside ip link set lo up
inside ip link set two up
group="--nnodes 2 --nproc-per-node 1 --master-addr 10.77.0.1 --master-port 29400 $0"
GLOO_SOCKET_IFNAME=two inside "$PYTHON" -m torch.distributed.run $group \
    --node-rank 1 --local-addr 10.77.0.2 "$@" & second=$!
GLOO_SOCKET_IFNAME=one "$PYTHON" -m torch.distributed.run $group \
    --node-rank 0 --local-addr 10.77.0.1 "$@"
wait $second
"""


def can_divide_the_network() -> bool:
    """Whether a user may have network namespaces here, and the programs for them."""
    if not all(map(shutil.which, ("unshare", "nsenter", "ip"))):
        return False
    probe = ["unshare", "--map-root-user", "--net", "ip", "link", "add", "a1", "type", "veth"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


def on_two_machines(config: Config, folder: Path, options: str = "") -> str:
    """Train in both namespaces together; what they say on stderr."""
    recipe = write_recipe(config, folder)
    nmt = ["-m", "nmt", "train", "--config", str(recipe), "--run-dir", str(folder / "run")]
    process = subprocess.Popen(
        ["unshare", "--map-root-user", "--net", "bash", "-c", TWO_MACHINES, options, *nmt],
        env={**os.environ, "PYTHON": sys.executable},
        stderr=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,
    )
    try:
        _, said = process.communicate(timeout=240)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    assert process.returncode == 0, said
    return said


@pytest.mark.slow
def test_two_machines_learn_what_one_process_learns(recipe: Recipe, tmp_path: Path) -> None:
    if not can_divide_the_network():
        pytest.skip("no network namespaces here, or neither unshare nor nsenter nor ip")
    config = recipe("model.dropout=0.0", "training.log_every=1", "training.batch_tokens=40")
    alone = train(config, tmp_path / "alone", quiet)
    said = on_two_machines(config, tmp_path)
    assert said.count("translate with:") == 1
    found, expected = losses(RunDirectory(tmp_path / "run")), losses(alone)
    assert found.keys() == expected.keys()
    for step in range(1, 11):
        assert found[step][0] == pytest.approx(expected[step][0], abs=1e-4)
