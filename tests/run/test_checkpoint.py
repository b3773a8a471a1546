"""A checkpoint is whole or it is refused, and a failure to save costs nothing that was there."""

import errno
import hashlib
import io
import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nmt.errors import CheckpointError
from nmt.run.checkpoint import (
    average_weights,
    intact_checkpoints,
    load_into,
    load_state,
    load_weights,
    recover_newest_checkpoint,
    save_checkpoint,
    weights_digest,
    weights_of,
)
from nmt.run.checkpoint_files import MANIFEST, STATE, WEIGHTS

STATE_CONTENT = {"step": 3, "moments": torch.arange(5.0), "best": {"bleu": None}, "names": ["a"]}


def weights(seed: int = 1) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {
        "layer.weight": torch.randn(3, 4, generator=generator),
        "layer.bias": torch.randn(3, generator=generator),
    }


def saved(path: Path, seed: int = 1) -> Path:
    save_checkpoint(path, weights(seed), STATE_CONTENT)
    return path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def assert_same(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


def write_manifest(path: Path, **entries: Any) -> None:
    """Change entries of a manifest; None removes one."""
    manifest = json.loads((path / MANIFEST).read_text()) | entries
    kept = {name: value for name, value in manifest.items() if value is not None}
    (path / MANIFEST).write_text(json.dumps(kept))


def test_what_is_saved_is_loaded_and_named_in_the_manifest(tmp_path: Path) -> None:
    path = saved(tmp_path / "deep" / "step-3")
    assert_same(load_weights(path), weights())
    state = load_state(path)
    assert torch.equal(state.pop("moments"), torch.arange(5.0))
    assert state == {name: STATE_CONTENT[name] for name in ("step", "best", "names")}
    assert names(path.parent) == ["step-3"]
    manifest = json.loads((path / MANIFEST).read_text())
    assert manifest.keys() == {"format", WEIGHTS, STATE}
    for name in (WEIGHTS, STATE):
        data = (path / name).read_bytes()
        assert manifest[name] == {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    again = saved(tmp_path / "again")
    assert (again / WEIGHTS).read_bytes() == (path / WEIGHTS).read_bytes()


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-1], lambda data: b"", lambda data: data + b"\0", None]
)
@pytest.mark.parametrize("name", [WEIGHTS, STATE, MANIFEST])
def test_a_file_that_is_cut_empty_longer_or_absent_is_refused_and_named(
    tmp_path: Path, name: str, damage: Callable[[bytes], bytes] | None
) -> None:
    path = saved(tmp_path / "step-3")
    data = (path / name).read_bytes()
    (path / name).write_bytes(damage(data)) if damage else (path / name).unlink()
    for own, load in ((WEIGHTS, load_weights), (STATE, load_state)):
        if name in (own, MANIFEST):
            with pytest.raises(CheckpointError, match=rf"step-3.*{name}"):
                load(path)
        else:
            assert load(path)


@pytest.mark.parametrize(("name", "load"), [(WEIGHTS, load_weights), (STATE, load_state)])
def test_a_flipped_bit_anywhere_is_noticed(
    tmp_path: Path, name: str, load: Callable[[Path], object]
) -> None:
    file = saved(tmp_path / "step-3") / name
    data = bytearray(file.read_bytes())
    for place in range(0, len(data), 7):
        data[place] ^= 1 << place % 8
        file.write_bytes(data)
        with pytest.raises(CheckpointError, match=rf"step-3.*{name}: damaged: its SHA-256 is not"):
            load(file.parent)
        data[place] ^= 1 << place % 8


@pytest.mark.parametrize("text", ["[]", "{}", "null", '{"model.safetensors": 1}'])
def test_a_manifest_of_another_shape_is_refused(tmp_path: Path, text: str) -> None:
    path = saved(tmp_path / "step-3")
    (path / MANIFEST).write_text(text)
    with pytest.raises(CheckpointError, match="no usable checkpoint"):
        load_weights(path)


class Bomb:
    def __reduce__(self) -> tuple[Any, ...]:
        return pytest.fail, ("executed",)


def bomb() -> bytes:
    torch.save({"step": Bomb()}, buffer := io.BytesIO())
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "load", "content"),
    [
        (WEIGHTS, load_weights, b"\xff" * 100),
        (STATE, load_state, bomb()),
        (STATE, load_state, pickle.dumps({"step": Bomb()}, protocol=2)),
    ],
)
def test_content_that_the_manifest_vouches_for_is_still_not_trusted(
    tmp_path: Path, name: str, load: Callable[[Path], object], content: bytes
) -> None:
    path = saved(tmp_path / "step-3")
    (path / name).write_bytes(content)
    write_manifest(path, **{name: {"sha256": hashlib.sha256(content).hexdigest()}})
    with pytest.raises(CheckpointError, match=f"{name}: not readable"):
        load(path)


# -- the newest -----------------------------------------------------------------------------------


@pytest.mark.parametrize("file", [WEIGHTS, STATE, MANIFEST])
def test_the_newest_intact_checkpoint_is_taken_and_damaged_ones_are_renamed(
    tmp_path: Path, file: str
) -> None:
    paths = [saved(tmp_path / f"step-{n}") for n in range(3)]
    log: list[str] = []
    assert recover_newest_checkpoint(paths, log.append) == paths[2]
    assert recover_newest_checkpoint([], log.append) is None
    assert log == []
    (paths[1] / file).write_bytes((paths[1] / file).read_bytes()[:-1])
    (paths[2] / file).unlink()
    assert recover_newest_checkpoint(paths, log.append) == paths[0]
    assert names(tmp_path) == ["damaged-step-1", "damaged-step-2", "step-0"]
    assert "step-2" in log[0] and "step-1" in log[1]
    assert all(file in line and "set aside as damaged-step-" in line for line in log)


def test_if_all_are_damaged_none_is_renamed(tmp_path: Path) -> None:
    path = saved(tmp_path / "step-1")
    (path / STATE).unlink()
    with pytest.raises(CheckpointError, match=r"no checkpoint to resume from: .*step-1.*`run_dir`"):
        recover_newest_checkpoint([path], print)
    assert path.is_dir()


def test_a_checkpoint_that_the_system_cannot_read_is_neither_renamed_nor_left_out(
    tmp_path: Path,
) -> None:
    paths = [saved(tmp_path / f"step-{n}") for n in range(3)]
    (paths[2] / STATE).unlink()
    (paths[1] / WEIGHTS).unlink()
    (paths[1] / WEIGHTS).symlink_to(WEIGHTS)  # a link to itself cannot be read, even by root
    for read in (recover_newest_checkpoint, intact_checkpoints):
        with pytest.raises(
            CheckpointError, match=f"step-1/{WEIGHTS}: cannot be read: Too many levels.*disk"
        ):
            read(paths, print)
    assert names(tmp_path) == ["step-0", "step-1", "step-2"]


def test_a_checkpoint_without_a_version_is_read_and_one_of_a_newer_version_is_not(
    tmp_path: Path,
) -> None:
    old, newer = saved(tmp_path / "step-1"), saved(tmp_path / "step-2")
    assert json.loads((old / MANIFEST).read_text())["format"] == 1
    write_manifest(old, format=None)
    assert_same(load_weights(old), weights())
    write_manifest(newer, format=2)
    for read in (
        load_weights,
        load_state,
        lambda path: recover_newest_checkpoint([old, path], print),
    ):
        with pytest.raises(CheckpointError, match="written by a newer nmt .format 2; .*update nmt"):
            read(newer)
    assert newer.is_dir()


# -- saving ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("call", "number"), [("fsync", 1), ("fsync", 3), ("mkdir", 1)])
def test_a_full_disk_leaves_the_old_checkpoint_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int
) -> None:
    calls: list[Any] = []

    def fail_at_number(*arguments: Any) -> None:
        calls.append(arguments)
        if len(calls) == number:
            raise OSError(errno.ENOSPC, "No space left on device")

    path = saved(tmp_path / "averaged")
    with monkeypatch.context() as patched:
        patched.setattr(os, call, fail_at_number)
        with pytest.raises(
            CheckpointError, match=r"not saved: No space left.*\(needs 1 MiB, \d+ MiB"
        ):
            save_checkpoint(path, weights(seed=2), {})
    assert names(tmp_path) == ["averaged"]
    assert_same(load_weights(path), weights())
    assert load_state(path)["step"] == 3


def test_a_checkpoint_is_replaced_as_a_whole_also_beside_what_a_killed_save_left(
    tmp_path: Path,
) -> None:
    path = saved(tmp_path / "averaged")
    leftover = tmp_path / f".averaged.{os.getpid()}.tmp"
    leftover.mkdir()
    (leftover / WEIGHTS).write_bytes(b"half")
    save_checkpoint(path, weights(seed=2))
    assert_same(load_weights(path), weights(seed=2))
    assert not (path / STATE).exists()
    assert names(tmp_path) == ["averaged"]


def test_a_folder_that_cannot_be_made_is_a_checkpoint_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="not saved: Not a directory"):
        saved(tmp_path / "file" / "step-3")


# -- the average ----------------------------------------------------------------------------------


def test_only_intact_ones_are_averaged(tmp_path: Path) -> None:
    paths = [saved(tmp_path / f"step-{n}") for n in range(3)]
    (paths[1] / WEIGHTS).write_bytes(b"")
    log: list[str] = []
    assert intact_checkpoints(paths, log.append) == [paths[0], paths[2]]
    assert len(log) == 1 and "step-1" in log[0] and log[0].endswith("it is left out")


@pytest.mark.parametrize("count", [1, 3])
def test_average_is_the_mean(tmp_path: Path, count: int) -> None:
    average = average_weights([saved(tmp_path / str(seed), seed) for seed in range(count)])
    for name, weight in average.items():
        expected = torch.stack([weights(seed)[name].double() for seed in range(count)]).mean(0)
        assert weight.dtype == torch.float32
        assert torch.equal(weight, expected.float())


@pytest.mark.parametrize(
    "other",
    [
        {"layer.weight": torch.zeros(3, 5), "layer.bias": torch.zeros(3)},
        {"layer.weight": torch.zeros(3, 4)},
        {"layer.weight": torch.zeros(3, 4), "layer.bias": torch.zeros(3), "x": torch.zeros(1)},
    ],
)
def test_different_models_are_not_averaged(tmp_path: Path, other: dict[str, Tensor]) -> None:
    first, second = saved(tmp_path / "first"), tmp_path / "second"
    save_checkpoint(second, other)
    with pytest.raises(CheckpointError, match=r"second: its model is not that of .*first"):
        average_weights([first, second])
    with pytest.raises(CheckpointError, match="no checkpoints to average"):
        average_weights([])


# -- into a model and out of it -------------------------------------------------------------------


def test_weights_move_from_model_to_model_and_tied_ones_are_saved_once(tmp_path: Path) -> None:
    first, second = (nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)) for _ in range(2))
    for model in (first, second):
        model[1].weight = model[0].weight
    save_checkpoint(tmp_path / "tied", weights_of(first))
    loaded = load_weights(tmp_path / "tied")
    assert loaded.keys() == {"0.weight", "0.bias", "1.bias"}
    load_into(second, loaded, tmp_path)
    assert_same(weights_of(second), weights_of(first))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bias": torch.zeros(2)}, r"bias is \(2,\), the configuration expects \(3,\)"),
        ({"gain": torch.zeros(1)}, r"gain is \(1,\), .* expects no such tensor"),
        ({"bias": None}, r"bias is missing, the configuration expects \(3,\)"),
    ],
)
def test_weights_of_another_model_are_refused(change: dict[str, Any], message: str) -> None:
    changed = {**weights_of(nn.Linear(4, 3)), **change}
    found = {name: weight for name, weight in changed.items() if weight is not None}
    with pytest.raises(CheckpointError, match=f"origin: weights of another model: {message}"):
        load_into(nn.Linear(4, 3), found, Path("origin"))


def test_a_digest_tells_weights_apart_by_name_shape_and_value() -> None:
    model, other = nn.Linear(2, 2), nn.Linear(2, 2)
    other.load_state_dict(model.state_dict())
    assert weights_digest(model) == weights_digest(other)
    with torch.no_grad():
        other.weight[0, 0] += 1
    assert weights_digest(model) != weights_digest(other)
    assert weights_digest(nn.Sequential(model)) != weights_digest(model)
    assert weights_digest(model.bfloat16()) != weights_digest(other.bfloat16())
