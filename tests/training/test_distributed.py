"""Any number of processes learns from the same pairs at each step, and to the same effect."""

import os
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch

from nmt.checkpoint import load_state
from nmt.config import Config
from nmt.config_file import dump_config
from nmt.data.tokens.token_store import TokenStore
from nmt.run_directory import RunDirectory
from nmt.training.distributed import ProcessGroup, shard
from nmt.training.train import train
from tests.training.runs import (
    Recipe,
    losses,
    processes_by_rank,
    quiet,
    run_script,
    torchrun,
    wait_for_records,
)

SETTINGS = [
    "model.dropout=0.0",
    "training.log_every=1",
    "training.validate_every=6",
    "training.checkpoint_every=6",
    "training.batch_tokens=40",  # so that some steps have fewer pairs than there are processes
]


@pytest.mark.parametrize("pairs", [0, 1, 3, 50])
@pytest.mark.parametrize("size", [1, 2, 4])
def test_shares_are_the_whole_step_and_alike(pairs: int, size: int) -> None:
    random = np.random.default_rng(pairs)
    lengths = random.integers(1, 60, 80)
    indices = random.permutation(80)[:pairs]
    store = TokenStore.of([[5] * n for n in lengths], [[5] * n for n in lengths])
    shares = [shard(store, indices, rank, size) for rank in range(size)]
    assert sorted(np.concatenate(shares)) == sorted(indices)
    tokens = [int(lengths[share].sum()) for share in shares]
    assert max(tokens) - min(tokens) <= 60


def test_a_process_that_trains_alone_is_the_main_process() -> None:
    alone = ProcessGroup()
    assert (
        alone.is_main
        and alone.all_reduce_sum(torch.tensor(1.5)) == 1.5
        and alone.all_reduce_max(7) == 7
    )
    assert alone.all_gather("a") == ["a"] and alone.broadcast_from_main(lambda: 3) == 3
    assert alone.main_process_first(lambda: 4) == 4 and alone.all_reduce_max(5) == 5


def together(config: Config, folder: Path, processes: int) -> RunDirectory:
    done = subprocess.run(
        torchrun(config, folder, processes), capture_output=True, encoding="utf-8", timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("translate with:") == 1  # one of them talks
    return RunDirectory(folder / "run")


# One of two processes has little memory: for more positions there is none.
SCARCE = """
import os, sys
from pathlib import Path
from nmt.config_file import load_config
from nmt.model.transformer import Transformer
from nmt.training.train import train

folder, refused = Path(sys.argv[1]), []


def outputs(self, source, *arguments, **options):
    if self.training and os.environ["RANK"] == "1" and source.numel() > 24:
        refused.append(source.numel())
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried 8 GB")
    return original(self, source, *arguments, **options)


original, Transformer.outputs = Transformer.outputs, outputs
train(load_config(str(folder / "recipe.yaml"), []), folder / "run", lambda message: None)
(folder / f"refused-{os.environ['RANK']}").write_text(str(len(refused)))
"""


def test_one_of_several_processes_that_lacks_memory_computes_less_at_once(
    recipe: Recipe, tmp_path: Path
) -> None:
    config = recipe(*SETTINGS, "training.batch_tokens=120")
    alone = losses(train(config, tmp_path / "alone", quiet))
    (tmp_path / "recipe.yaml").write_text(dump_config(config), "utf-8")
    (tmp_path / "script.py").write_text(SCARCE, "utf-8")
    run_script(2, tmp_path / "script.py", tmp_path)
    found = losses(RunDirectory(tmp_path / "run"))
    assert found.keys() == alone.keys()
    for step, (loss, tokens) in alone.items():
        assert found[step][0] == pytest.approx(loss, abs=1e-4) and found[step][1] == tokens
    last = load_state(RunDirectory(tmp_path / "run").saved_checkpoints()[-1])
    assert [size["halved"] for size in last["micro_batches"]] == [False, True]
    rejected = [int((tmp_path / f"refused-{rank}").read_text()) for rank in (0, 1)]
    assert rejected[0] == 0 < rejected[1]


@pytest.mark.slow
@pytest.mark.parametrize("whom", ["the launcher", "all", "the leader"])
def test_a_stopped_process_group_saves_and_resumes(
    recipe: Recipe, tmp_path: Path, whom: str
) -> None:
    settings = [*SETTINGS, "training.checkpoint_every=4000", "training.validate_every=4000"]
    config = recipe(*settings, "training.max_steps=4000")
    command = torchrun(config, tmp_path, restarts=0)
    launcher = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    run = RunDirectory(tmp_path / "run")
    wait_for_records(run, 1)
    ranks = processes_by_rank(launcher)
    if whom != "the leader":
        launcher.send_signal(signal.SIGTERM)
    for rank in {"the launcher": [], "all": [0, 1], "the leader": [0]}[whom]:
        os.kill(ranks[rank], signal.SIGTERM)
    launcher.communicate(timeout=240)
    (saved,) = run.saved_checkpoints()
    taken = max(losses(run))
    assert RunDirectory.step_of(saved) == taken
    together(recipe(*settings, f"training.max_steps={taken + 5}"), tmp_path, 2)
    assert max(losses(run)) == taken + 5


@pytest.mark.slow
def test_an_error_of_the_main_process_is_printed_once(recipe: Recipe, tmp_path: Path) -> None:
    config = recipe("data.validation.source=no/such.en")
    done = subprocess.run(
        torchrun(config, tmp_path, restarts=0), capture_output=True, encoding="utf-8", timeout=120
    )
    assert done.returncode != 0
    said = done.stderr.partition("torch.distributed.elastic")[0]
    assert said.count("no/such.en") == 1 and "Connection closed" not in done.stderr
