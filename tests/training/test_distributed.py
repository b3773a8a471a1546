"""Processes find those they were started with, divide each step, and stop together."""

import os
import random
import signal
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.distributed import HashStore  # type: ignore[attr-defined]

from nmt.data.tokens.token_store import TokenStore
from nmt.errors import NmtError
from nmt.run.directory import RunDirectory
from nmt.training import distributed
from nmt.training.distributed import join_process_group, rendezvous, shard
from nmt.training.train import train
from tests.training.runs import (
    Recipe,
    contents,
    losses,
    processes_by_rank,
    quiet,
    torchrun,
    wait_for_records,
)


@pytest.mark.parametrize("pairs", [0, 1, 3, 50])
@pytest.mark.parametrize("size", [1, 2, 4])
def test_shards_are_the_whole_step_and_alike(pairs: int, size: int) -> None:
    draw = np.random.default_rng(pairs)
    lengths = draw.integers(1, 60, 80)
    indices = draw.permutation(80)[:pairs]
    store = TokenStore.of([[5] * n for n in lengths], [[5] * n for n in lengths])
    shards = [shard(store, indices, rank, size) for rank in range(size)]
    assert sorted(np.concatenate(shards)) == sorted(indices)
    tokens = [int(lengths[rows].sum()) for rows in shards]
    assert max(tokens) - min(tokens) <= 60


@pytest.mark.parametrize("size", [1, 2, 4])
def test_restarted_processes_get_a_new_name(size: int) -> None:
    store, patience = HashStore(), timedelta(seconds=60)
    names = set()
    with ThreadPoolExecutor(size) as pool:
        for _ in range(3):  # in the same store, as the launcher keeps it
            ranks = range(size)
            together = [pool.submit(rendezvous, store, rank, size, patience) for rank in ranks]
            (name,) = {one.result() for one in together}
            names.add(name)
    assert len(names) == 3


def test_missing_processes_are_named_after_the_timeout() -> None:
    store, patience = HashStore(), timedelta(seconds=0.2)
    with pytest.raises(TimeoutError, match=r"processes \[1, 2\] of 3 have not come"):
        rendezvous(store, 0, 3, patience)
    with pytest.raises(torch.distributed.DistError):
        rendezvous(store, 1, 3, patience)


def free_port() -> str:
    """A port that is free now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


@pytest.mark.parametrize("rank", ["0", "1"])
def test_a_process_that_finds_no_others_says_so_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, rank: str
) -> None:
    port = free_port()
    started = {"RANK": rank, "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "1", "LOCAL_RANK": "0"}
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    for name, value in {**started, **place, "TORCHELASTIC_RUN_ID": "test"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(distributed, "_RENDEZVOUS_TIMEOUT", timedelta(seconds=1))
    expected = f"process {rank} has not met the others: .*, port {port}$"
    with pytest.raises(NmtError, match=expected) as raised, join_process_group("cpu"):
        pass
    assert "\n" not in str(raised.value)


def launch(command: list[str], timeout: int = 300) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, capture_output=True, encoding="utf-8", timeout=timeout)


@pytest.mark.slow
@pytest.mark.parametrize("whom", ["the launcher", "all", "the main process"])
def test_a_stopped_process_group_saves_and_resumes(
    recipe: Recipe, tmp_path: Path, whom: str
) -> None:
    seldom = ["training.checkpoint_every=4000", "training.validate_every=4000"]
    settings = ["training.log_every=1", "training.batch_tokens=40", *seldom]
    command = torchrun(recipe(*settings, "training.max_steps=4000"), tmp_path, restarts=0)
    launcher = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    run = RunDirectory(tmp_path / "run")
    wait_for_records(run, 1)
    ranks = processes_by_rank(launcher)
    if whom != "the main process":
        launcher.send_signal(signal.SIGTERM)
    for rank in {"the launcher": [], "all": [0, 1], "the main process": [0]}[whom]:
        os.kill(ranks[rank], signal.SIGTERM)
    _, said = launcher.communicate(timeout=240)
    assert launcher.returncode == 1  # torchrun's code, whatever the processes end with
    assert said.count("nmt: stopped by SIGTERM after step ") == 1
    assert said.count("stopping and saving\n") == 1
    (saved,) = run.saved_checkpoints()
    taken = max(losses(run))
    assert RunDirectory.step_of(saved) == taken
    done = launch(torchrun(recipe(*settings, f"training.max_steps={taken + 5}"), tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("translate with:") == 1  # one of them talks
    assert max(losses(run)) == taken + 5


@pytest.mark.slow
@pytest.mark.parametrize("killed", [0, 1])
def test_a_process_whose_peer_is_killed_ends_with_one_sentence(
    recipe: Recipe, tmp_path: Path, killed: int
) -> None:
    settings = "training.max_steps=4000", "training.log_every=1", "training.validate_every=4000"
    command = torchrun(recipe(*settings), tmp_path, restarts=0)
    launcher = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    wait_for_records(RunDirectory(tmp_path / "run"), 3)
    os.kill(processes_by_rank(launcher)[killed], signal.SIGKILL)
    _, said = launcher.communicate(timeout=240)
    assert launcher.returncode == 1
    sentence = f"nmt: process {1 - killed} of 2 stops, because another process has ended: "
    assert said.count("nmt: ") == said.count(sentence) == 1
    assert "[rank" not in said  # where PyTorch shows the traceback of a process


@pytest.mark.slow
def test_an_error_of_the_main_process_is_printed_once(recipe: Recipe, tmp_path: Path) -> None:
    config = recipe("data.validation.source=no/such.en")
    done = launch(torchrun(config, tmp_path, restarts=0), timeout=120)
    assert done.returncode != 0
    said = done.stderr.partition("torch.distributed.elastic")[0]
    assert said.count("no/such.en") == 1 and "Connection closed" not in done.stderr


# -- SIGKILL to one of two processes: torchrun starts both again, with the same result ------------

STEPS = 80
SETTINGS = [
    f"training.max_steps={STEPS}",
    "training.log_every=1",
    "training.checkpoint_every=10",
    "training.validate_every=20",
]


@pytest.fixture(scope="module")
def undisturbed(recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """The contents of the run of two processes that nobody kills."""
    folder = tmp_path_factory.mktemp("undisturbed")
    done = launch(torchrun(recipe(*SETTINGS), folder))
    assert done.returncode == 0, done.stderr
    return contents(RunDirectory(folder / "run"))


@pytest.mark.slow
@pytest.mark.parametrize("number", range(10))
def test_a_killed_process_costs_no_more_than_time(
    recipe: Recipe, undisturbed: list[Any], tmp_path: Path, number: int
) -> None:
    command = torchrun(recipe(*SETTINGS), tmp_path)
    launcher = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    run = RunDirectory(tmp_path / "run")
    wait_for_records(run, random.Random(number).randint(15, STEPS // 2))
    os.kill(processes_by_rank(launcher)[number % 2], signal.SIGKILL)
    _, said = launcher.communicate(timeout=300)
    assert launcher.returncode == 0, said
    assert "resuming after step" in said
    assert contents(run) == undisturbed


# -- two machines, each with a launcher and a process of its own ----------------------------------


@pytest.mark.slow
def test_two_machines_learn_what_one_process_learns(recipe: Recipe, tmp_path: Path) -> None:
    config = recipe("model.dropout=0.0", "training.log_every=1", "training.batch_tokens=40")
    alone = train(config, tmp_path / "alone", quiet)
    both = "--nnodes=2", "--master-addr=127.0.0.1", f"--master-port={free_port()}"
    command = torchrun(config, tmp_path, 1, 0)
    command.remove("--standalone")
    launchers = [
        subprocess.Popen(
            [*command[:3], *both, f"--node-rank={rank}", *command[3:]],
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    said = "".join(launcher.communicate(timeout=240)[1] for launcher in launchers)
    assert [launcher.returncode for launcher in launchers] == [0, 0], said
    assert said.count("translate with:") == 1
    found, expected = losses(RunDirectory(tmp_path / "run")), losses(alone)
    assert found.keys() == expected.keys()
    for step in range(1, 11):
        assert found[step][0] == pytest.approx(expected[step][0], abs=1e-4)
