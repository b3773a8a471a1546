"""A folder is there with everything in it, or it is not there."""

import subprocess
import sys
from pathlib import Path

import pytest

from nmt.data.corpora.folders import locked, new_folder
from nmt.errors import DataError
from tests.data.corpora.site import names, silent


def test_a_folder_appears_when_it_is_full_and_replaces_a_damaged_one(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "folder"
    for name in ("old", "new"):
        with new_folder(folder) as new:
            (new / "inside").mkdir()
            (new / "inside" / name).write_text("text")
            assert folder.exists() is (name == "new")
        assert names(folder / "inside") == [name]
    assert names(folder.parent) == ["folder"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_nothing_stays_after_an_error(tmp_path: Path, error: type[BaseException]) -> None:
    with pytest.raises(error), new_folder(tmp_path / "folder") as new:
        (new / "file").write_text("text")
        raise error
    assert names(tmp_path) == []


def run(script: str, *arguments: object) -> "subprocess.Popen[str]":
    """Start a program that knows `folder`, its first argument."""
    head = (
        "import os, pathlib, sys\n"
        "from nmt.data.corpora.folders import locked, new_folder\n"
        "folder = pathlib.Path(sys.argv[1])\n"
    )
    command = [sys.executable, "-c", head + script, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_leftovers_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    script = "with new_folder(folder) as new:\n    (new / 'half').touch()\n    os._exit(9)\n"
    with run(script, folder) as killed:
        assert killed.wait() == 9
    assert names(tmp_path) == ["folder.partial"]
    with new_folder(folder) as new:
        (new / "file").write_text("text")
    assert (names(tmp_path), names(folder)) == (["folder"], ["file"])


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    message = "file.*: cannot be written: Not a directory; free some space, or set data.directory"
    with pytest.raises(DataError, match=message), new_folder(tmp_path / "file" / "folder"):
        pass
    lock = locked(tmp_path / "file", "folder", silent)
    with pytest.raises(DataError, match=r"file: cannot be written: File exists"), lock:
        pass


def test_a_second_process_waits_for_the_first(tmp_path: Path) -> None:
    script = (
        "with locked(folder, 'thing', lambda m: print(m, flush=True)):\n"
        "    print('mine', flush=True)\n"
    )
    with locked(tmp_path, "thing", silent):
        second = run(script, tmp_path)
        assert second.stdout is not None
        assert second.stdout.readline().startswith("waiting for another process that works on")
        assert second.poll() is None
    assert second.communicate(timeout=30)[0] == "mine\n"


def test_a_lock_can_be_taken_again(tmp_path: Path) -> None:
    messages: list[str] = []
    for _ in range(2):
        with locked(tmp_path, "thing", messages.append):
            pass
    assert messages == []
