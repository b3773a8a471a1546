"""Processes find those they were started with, and leave each other without a trace."""

import socket
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
import torch
from torch.distributed import HashStore  # type: ignore[attr-defined]

from nmt.config_file import dump_config
from nmt.errors import NmtError
from nmt.training import distributed
from nmt.training.distributed import join_process_group, rendezvous
from tests.training.runs import Recipe, run_script


@pytest.mark.parametrize("size", [1, 2, 4])
def test_restarted_processes_get_a_new_name(size: int) -> None:
    store, patience = HashStore(), timedelta(seconds=60)
    with ThreadPoolExecutor(size) as pool:
        rooms = []
        for _ in range(3):  # in the same store, as the launcher keeps it
            together = [
                pool.submit(rendezvous, store, rank, size, patience) for rank in range(size)
            ]
            (room,) = {one.result() for one in together}
            rooms.append(room)
    assert len(set(rooms)) == 3


def test_missing_processes_are_named_after_the_timeout() -> None:
    patience = timedelta(seconds=0.2)
    store = HashStore()
    with pytest.raises(TimeoutError, match=r"processes \[1, 2\] of 3 have not come"):
        rendezvous(store, 0, 3, patience)
    with pytest.raises(torch.distributed.DistError):
        rendezvous(store, 1, 3, patience)


@pytest.fixture
def unused_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.mark.parametrize("rank", ["0", "1"])
def test_a_process_that_finds_no_others_says_so_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, unused_port: int, rank: str
) -> None:
    started = {"RANK": rank, "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "1", "LOCAL_RANK": "0"}
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(unused_port)}
    for name, value in {**started, **place, "TORCHELASTIC_RUN_ID": "test"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(distributed, "_RENDEZVOUS_TIMEOUT", timedelta(seconds=1))
    expected = f"process {rank} has not met the others: .*, port {unused_port}$"
    with pytest.raises(NmtError, match=expected) as raised, join_process_group("cpu"):
        pass
    assert "\n" not in str(raised.value)


# Trains under torchrun, and says which threads of the group are left when that has ended.
TRAIN = """
import os, signal, sys, threading
from pathlib import Path
from nmt.config_file import load_config
from torch.distributed import HashStore  # type: ignore[attr-defined]

from nmt.errors import NmtError
from nmt.training.train import train
from nmt.training.trainer import Trainer

folder, ending = Path(sys.argv[1]), sys.argv[2]


def begin(trainer):
    if ending == "stopped" and os.environ["RANK"] == "0":
        threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGTERM)).start()
    original(trainer)


original, Trainer.train = Trainer.train, begin
try:
    train(load_config(str(folder / "recipe.yaml"), []), folder / "run", lambda message: None)
    ended = "finished"
except NmtError as error:
    ended = str(error)
names = [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
left = [name for name in names if "gloo" in name]
(folder / os.environ["RANK"]).write_text(f"{left} {ended}")
"""


@pytest.mark.parametrize(
    ("ending", "settings"),
    [
        ("finished", []),
        ("diverged", ["training.largest_spike=1e-3", "training.peak_learning_rate=3"]),
        ("stopped", ["training.max_steps=1_000_000", "training.validate_every=1_000_000"]),
    ],
)
def test_no_thread_outlives_the_process_group(
    recipe: Recipe, tmp_path: Path, ending: str, settings: list[str]
) -> None:
    """It would abort the process now and then, if it were about to let go of a tensor."""
    if not Path("/proc/self/task").is_dir():
        pytest.skip("threads are counted as Linux tells them")
    (tmp_path / "recipe.yaml").write_text(dump_config(recipe(*settings)), "utf-8")
    (tmp_path / "script.py").write_text(TRAIN, "utf-8")
    run_script(2, tmp_path / "script.py", tmp_path, ending)
    for rank in ("0", "1"):
        said = (tmp_path / rank).read_text("utf-8")
        assert said.startswith("[] ") and (ending in said or "loss is" in said)
