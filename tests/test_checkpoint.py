"""A checkpoint is whole or it is refused, and a failure to save costs nothing that was there."""

import errno
import hashlib
import json
import os
import pickle
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from nmt.checkpoint import (
    MANIFEST,
    STATE,
    WEIGHTS,
    load_state,
    load_weights,
    newest_checkpoint,
    save_checkpoint,
    weights_of,
)
from nmt.errors import CheckpointError
from tests.checkpoints import STATE_CONTENT, saved, weights


def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


def empty(file: Path) -> None:
    file.write_bytes(b"")


def flip_a_bit(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[-2] ^= 1
    file.write_bytes(data)


def append(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"\0")


DAMAGES = [truncate, empty, flip_a_bit, append, Path.unlink]


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    path = saved(tmp_path / "deep" / "step-3")
    loaded, expected = load_weights(path), weights()
    assert loaded.keys() == expected.keys()
    assert all(torch.equal(loaded[name], expected[name]) for name in expected)
    state = load_state(path)
    torch.testing.assert_close(state.pop("moments"), STATE_CONTENT["moments"], rtol=0, atol=0)
    assert state == {key: value for key, value in STATE_CONTENT.items() if key != "moments"}
    assert [p.name for p in path.parent.iterdir()] == ["step-3"]


def test_manifest_holds_size_and_hash_of_each_file(tmp_path: Path) -> None:
    path = saved(tmp_path / "step-3")
    manifest = json.loads((path / MANIFEST).read_text())
    assert {p.name for p in path.iterdir()} == {WEIGHTS, STATE, MANIFEST}
    for name in (WEIGHTS, STATE):
        data = (path / name).read_bytes()
        assert manifest[name] == {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def test_same_weights_make_the_same_bytes(tmp_path: Path) -> None:
    first, second = saved(tmp_path / "a"), saved(tmp_path / "b")
    assert (first / WEIGHTS).read_bytes() == (second / WEIGHTS).read_bytes()


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_weights_are_refused_and_named(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    path = saved(tmp_path / "step-3")
    damage(path / WEIGHTS)
    with pytest.raises(CheckpointError, match=rf"step-3.*{WEIGHTS}"):
        load_weights(path)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_state_is_refused_and_named(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    path = saved(tmp_path / "step-3")
    damage(path / STATE)
    with pytest.raises(CheckpointError, match=rf"step-3.*{STATE}"):
        load_state(path)
    assert load_weights(path)


@pytest.mark.parametrize("damage", [truncate, empty, Path.unlink])
def test_a_damaged_manifest_is_refused_and_named(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    path = saved(tmp_path / "step-3")
    damage(path / MANIFEST)
    for load in (load_weights, load_state):
        with pytest.raises(CheckpointError, match=rf"step-3.*{MANIFEST}"):
            load(path)


@pytest.mark.parametrize("text", ["[]", "{}", "null", '{"model.safetensors": 1}'])
def test_a_manifest_of_another_shape_is_refused(tmp_path: Path, text: str) -> None:
    path = saved(tmp_path / "step-3")
    (path / MANIFEST).write_text(text)
    with pytest.raises(CheckpointError, match="no usable checkpoint"):
        load_weights(path)


def with_honest_manifest(path: Path, name: str, data: bytes) -> None:
    """Replace a file and vouch for it."""
    (path / name).write_bytes(data)
    manifest = json.loads((path / MANIFEST).read_text())
    manifest[name] = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    (path / MANIFEST).write_text(json.dumps(manifest))


def test_weights_that_are_no_safetensors_are_refused(tmp_path: Path) -> None:
    path = saved(tmp_path / "step-3")
    with_honest_manifest(path, WEIGHTS, b"\xff" * 100)
    with pytest.raises(CheckpointError, match=f"{WEIGHTS}: not readable"):
        load_weights(path)


class Bomb:
    def __init__(self, witness: Path) -> None:
        self.witness = witness

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.witness),)


@pytest.mark.parametrize("by_torch", [True, False])
def test_a_pickle_bomb_is_never_executed(tmp_path: Path, by_torch: bool) -> None:
    path, witness = saved(tmp_path / "step-3"), tmp_path / "executed"
    bomb = tmp_path / "bomb"
    if by_torch:
        torch.save({"step": Bomb(witness)}, bomb)
    else:
        bomb.write_bytes(pickle.dumps({"step": Bomb(witness)}, protocol=2))
    with_honest_manifest(path, STATE, bomb.read_bytes())
    with pytest.raises(CheckpointError, match=f"{STATE}: not readable"):
        load_state(path)
    assert not witness.exists()


# -- the newest -----------------------------------------------------------------------------------


def test_the_newest_whole_checkpoint_is_taken(tmp_path: Path) -> None:
    paths = [saved(tmp_path / f"step-{n}") for n in range(3)]
    log: list[str] = []
    assert newest_checkpoint(paths, log.append) == paths[2]
    assert log == []


@pytest.mark.parametrize("file", [WEIGHTS, STATE, MANIFEST])
def test_damaged_ones_are_set_aside_and_named(tmp_path: Path, file: str) -> None:
    paths = [saved(tmp_path / f"step-{n}") for n in range(3)]
    truncate(paths[1] / file)
    (paths[2] / file).unlink()
    log: list[str] = []
    assert newest_checkpoint(paths, log.append) == paths[0]
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "damaged-step-1",
        "damaged-step-2",
        "step-0",
    ]
    assert "step-2" in log[0] and "step-1" in log[1]
    assert all(file in line and "set aside as damaged-step-" in line for line in log)


def damage_somewhere(folder: Path, draw: random.Random) -> str:
    """Flip a bit, zero a stretch, cut off or delete one of the files; says which."""
    file = folder / draw.choice([WEIGHTS, STATE, MANIFEST])
    data = bytearray(file.read_bytes())
    place = draw.randrange(len(data))
    how = draw.choice(["flip", "zero", "cut", "delete"])
    if how == "flip":
        data[place] ^= 1 << draw.randrange(8)
    elif how == "zero":
        data[place : place + 64] = bytes(len(data[place : place + 64]))
    elif how == "cut":
        del data[place:]
    unchanged = bytes(data) == file.read_bytes()
    file.unlink() if how == "delete" else file.write_bytes(data)
    return file.name if how == "delete" or not unchanged else ""


def test_damage_anywhere_is_noticed_and_named(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """A flipped bit in the manifest's white space or in its list of sizes does no harm."""
    for seed in range(1000 if pytestconfig.getoption("--slow") else 40):
        draw = random.Random(seed)
        folder = tmp_path / str(seed)
        old, new = saved(folder / "step-1"), saved(folder / "step-2", seed=2)
        damaged = damage_somewhere(new, draw)
        log: list[str] = []
        taken = newest_checkpoint([old, new], log.append)
        if taken == new:
            assert damaged in (MANIFEST, "")
            assert all(torch.equal(load_weights(new)[n], w) for n, w in weights(2).items())
        else:
            assert taken == old and "step-2" in log[0] and "set aside" in log[0]
            assert damaged in log[0] or damaged == MANIFEST
        shutil.rmtree(folder)


def test_where_all_are_damaged_none_is_moved(tmp_path: Path) -> None:
    path = saved(tmp_path / "step-1")
    (path / STATE).unlink()
    with pytest.raises(CheckpointError, match=r"no checkpoint to resume from: .*step-1.*--run-dir"):
        newest_checkpoint([path], lambda message: None)
    assert path.is_dir()


def fail(*arguments: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("call", ["os.fsync", "pathlib.Path.mkdir"])
def test_a_full_disk_leaves_the_old_checkpoint_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    path = saved(tmp_path / "averaged")
    with monkeypatch.context() as patched:
        patched.setattr(call, fail if call == "os.fsync" else lambda *a, **k: fail())
        with pytest.raises(CheckpointError, match=r"not saved: No space left.*needs \d+ MiB"):
            save_checkpoint(path, weights(seed=2), {})
    assert [p.name for p in tmp_path.iterdir()] == ["averaged"]
    assert torch.equal(load_weights(path)["layer.bias"], weights()["layer.bias"])
    assert load_state(path)["step"] == 3


def test_a_disk_that_fills_up_in_the_last_file_leaves_nothing_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[int] = []

    def third_fails(descriptor: int) -> None:
        flushed.append(descriptor)
        if len(flushed) == 3:
            fail()

    monkeypatch.setattr(os, "fsync", third_fails)
    with pytest.raises(CheckpointError, match="not saved"):
        saved(tmp_path / "step-3")
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = saved(tmp_path / "averaged")
    save_checkpoint(path, weights(seed=2))
    assert torch.equal(load_weights(path)["layer.bias"], weights(seed=2)["layer.bias"])
    assert not (path / STATE).exists()
    assert [p.name for p in tmp_path.iterdir()] == ["averaged"]


def test_what_a_killed_save_left_behind_is_no_checkpoint(tmp_path: Path) -> None:
    leftover = tmp_path / f".step-3.{os.getpid()}.tmp"
    leftover.mkdir()
    (leftover / WEIGHTS).write_bytes(b"half")
    path = saved(tmp_path / "step-3")
    assert load_weights(path)
    assert [p.name for p in tmp_path.iterdir()] == ["step-3"]


def test_a_folder_that_cannot_be_made_is_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="not saved: Not a directory"):
        saved(tmp_path / "file" / "step-3")


def test_a_checkpoint_without_a_version_has_version_1(tmp_path: Path) -> None:
    model = nn.Linear(3, 2)
    save_checkpoint(tmp_path / "old", weights_of(model))
    manifest = json.loads((tmp_path / "old" / MANIFEST).read_text())
    assert manifest.pop("format") == 1
    (tmp_path / "old" / MANIFEST).write_text(json.dumps(manifest))
    assert torch.equal(load_weights(tmp_path / "old")["weight"], model.weight)


def test_a_newer_checkpoint_is_named_and_stays_where_it_is(tmp_path: Path) -> None:
    for name in ("step-00000001", "step-00000002"):
        save_checkpoint(tmp_path / name, weights_of(nn.Linear(3, 2)), {"step": 1})
    newer = tmp_path / "step-00000002"
    manifest = json.loads((newer / MANIFEST).read_text())
    (newer / MANIFEST).write_text(json.dumps({**manifest, "format": 2}))
    for read in (load_weights, load_state):
        with pytest.raises(CheckpointError, match="written by a newer nmt .format 2; .*update nmt"):
            read(newer)
    with pytest.raises(CheckpointError, match="written by a newer nmt"):
        newest_checkpoint([tmp_path / "step-00000001", newer], print)
    assert newer.is_dir()
