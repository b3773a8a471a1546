"""Files are replaced whole or not at all, and one of a newer format is recognised."""

import os
import shutil
import sys
import threading
from pathlib import Path
from queue import Queue

import pytest

from nmt.errors import CheckpointError
from nmt.files import (
    check_format,
    create_folder_atomically,
    locked,
    read_json,
    write_atomically,
    write_folder_atomically,
    write_json,
)


@pytest.mark.parametrize("content", ["größer\n", b"\x00\xff"])
def test_a_file_is_replaced_and_nothing_else_stays(tmp_path: Path, content: str | bytes) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    write_atomically(path, content)
    assert path.read_bytes() == (content if isinstance(content, bytes) else content.encode())
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_that_fails_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "file"
    path.write_text("old")
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_json_object_is_read_as_it_was_written(tmp_path: Path) -> None:
    for value in ({"name": "größer", "steps": [1, 2]}, {"file": "gr\udcf6n"}):
        write_json(tmp_path / "a.json", value)
        assert read_json(tmp_path / "a.json") == value
    (tmp_path / "a.json").write_text("[1]")
    with pytest.raises(ValueError, match="expected a JSON object, found list"):
        read_json(tmp_path / "a.json")


def test_a_newer_format_is_refused_and_an_absent_number_means_the_first() -> None:
    for record in ({}, {"format": 1}, {"format": 2}):
        check_format(record, 2, Path("a"), "write it again")
    message = r"a was written by a newer nmt \(format 3; this one knows up to 2\): update nmt or x"
    with pytest.raises(CheckpointError, match=message):
        check_format({"format": 3}, 2, Path("a"), "x", CheckpointError)


def test_the_next_folder_removes_what_a_killed_process_has_left(tmp_path: Path) -> None:
    living, other = f".new.{os.getppid()}.tmp", ".newer.99999999.tmp"
    for name in (living, other, ".new.99999999.tmp", ".new.tmp.tmp"):
        (tmp_path / name / "inside").mkdir(parents=True)
    with create_folder_atomically(tmp_path / "new"):
        pass
    assert {path.name for path in tmp_path.iterdir()} == {living, other, "new", ".new.tmp.tmp"}


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_folder_appears_when_it_is_full_and_not_after_an_error(
    tmp_path: Path, error: type[BaseException]
) -> None:
    folder = tmp_path / "deep" / "folder"
    with pytest.raises(error), create_folder_atomically(folder) as new:
        (new / "file").write_text("text")
        raise error
    assert list(folder.parent.iterdir()) == []
    with create_folder_atomically(folder) as new:
        (new / "inside").mkdir()
        (new / "inside" / "file").write_text("text")
        assert not folder.exists()
    assert [path.name for path in (folder / "inside").iterdir()] == ["file"]


def test_a_second_user_of_a_lock_waits_for_the_first(tmp_path: Path) -> None:
    messages: Queue[str] = Queue()

    def second() -> None:
        with locked(tmp_path, "thing", messages.put):
            messages.put("mine")

    thread = threading.Thread(target=second)
    with locked(tmp_path, "thing", print):
        thread.start()
        assert messages.get(timeout=30).startswith("waiting for another process that works on")
        assert messages.empty()
    thread.join(30)
    second()  # it can be taken again
    assert [messages.get(timeout=30) for _ in range(2)] == ["mine"] * 2 and messages.empty()


@pytest.mark.skipif(sys.platform != "linux", reason="reads the names of descriptors from /proc")
@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_rename_is_on_disk_before_the_old_folder_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_replaced: bool
) -> None:
    calls: list[tuple[str, Path]] = []
    sync, rename, remove = os.fsync, Path.rename, shutil.rmtree

    def traced_sync(descriptor: int) -> None:
        calls.append(("sync", Path(os.readlink(f"/proc/self/fd/{descriptor}"))))
        sync(descriptor)

    def traced_rename(path: Path, target: Path) -> Path:
        calls.append(("rename", target))
        return rename(path, target)

    def traced_remove(path: Path, ignore_errors: bool) -> None:
        if path.exists():
            calls.append(("remove", path))
        remove(path, ignore_errors=ignore_errors)

    folder = tmp_path / "step-1"
    if is_replaced:
        write_folder_atomically(folder, {"weights": b"old"})
    monkeypatch.setattr(os, "fsync", traced_sync)
    monkeypatch.setattr(Path, "rename", traced_rename)
    monkeypatch.setattr(shutil, "rmtree", traced_remove)
    write_folder_atomically(folder, {"weights": b"new"})
    written = f".step-1.{os.getpid()}.tmp"
    old = tmp_path / ".step-1.old"
    assert calls == [
        ("sync", tmp_path / written / "weights"),
        ("sync", tmp_path / written),
        *([("rename", old)] if is_replaced else []),
        ("rename", folder),
        ("sync", tmp_path),
        *([("remove", old)] if is_replaced else []),
    ]
    assert (folder / "weights").read_bytes() == b"new" and list(tmp_path.iterdir()) == [folder]
