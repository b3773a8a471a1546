"""A folder is there with everything in it, or it is not there."""

import threading
from pathlib import Path
from queue import Queue

import pytest

from nmt.data.corpora.folders import locked, replace_folder_atomically
from nmt.errors import DataError
from tests.data.corpora.site import names, silent


def test_a_folder_appears_when_it_is_full_and_replaces_a_damaged_one(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "folder"
    for name in ("old", "new"):
        with replace_folder_atomically(folder) as new:
            (new / "inside").mkdir()
            (new / "inside" / name).write_text("text")
            assert folder.exists() is (name == "new")
        assert names(folder / "inside") == [name]
    assert names(folder.parent) == ["folder"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_nothing_stays_after_an_error(tmp_path: Path, error: type[BaseException]) -> None:
    with pytest.raises(error), replace_folder_atomically(tmp_path / "folder") as new:
        (new / "file").write_text("text")
        raise error
    assert names(tmp_path) == []


def test_leftovers_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    (tmp_path / "folder.partial").mkdir()
    (tmp_path / "folder.partial" / "half").touch()
    with replace_folder_atomically(tmp_path / "folder") as new:
        (new / "file").write_text("text")
    assert (names(tmp_path), names(tmp_path / "folder")) == (["folder"], ["file"])


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    message = "file.*: cannot be written: Not a directory; free some space, or set data.directory"
    with (
        pytest.raises(DataError, match=message),
        replace_folder_atomically(tmp_path / "file" / "folder"),
    ):
        pass
    lock = locked(tmp_path / "file", "folder", silent)
    with pytest.raises(DataError, match=r"file: cannot be written: File exists"), lock:
        pass


def test_a_second_user_of_a_lock_waits_for_the_first(tmp_path: Path) -> None:
    messages: Queue[str] = Queue()

    def second() -> None:
        with locked(tmp_path, "thing", messages.put):
            messages.put("mine")

    thread = threading.Thread(target=second)
    with locked(tmp_path, "thing", silent):
        thread.start()
        assert messages.get(timeout=30).startswith("waiting for another process that works on")
        assert messages.empty()
    thread.join(30)
    second()  # it can be taken again
    assert [messages.get(timeout=30) for _ in range(2)] == ["mine"] * 2 and messages.empty()
