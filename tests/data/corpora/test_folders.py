"""A folder is there with everything in it, or it is not there."""

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from nmt.data.corpora.folders import locked, new_folder
from nmt.errors import DataError


def test_folder_appears_when_it_is_full(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "folder"
    with new_folder(folder) as new:
        (new / "inside").mkdir()
        (new / "inside" / "file").write_text("text")
        assert not folder.exists()
    assert (folder / "inside" / "file").read_text() == "text"
    assert [path.name for path in folder.parent.iterdir()] == ["folder"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_nothing_stays_after_an_error(tmp_path: Path, error: type[BaseException]) -> None:
    with pytest.raises(error), new_folder(tmp_path / "folder") as new:
        (new / "file").write_text("text")
        raise error
    assert list(tmp_path.iterdir()) == []


def test_leftovers_of_a_killed_process_are_swept_away(tmp_path: Path) -> None:
    script = (
        "import os, pathlib, sys\n"
        "from nmt.data.corpora.folders import new_folder\n"
        "with new_folder(pathlib.Path(sys.argv[1])) as new:\n"
        "    (new / 'half').write_text('written')\n"
        "    os._exit(9)\n"
    )
    folder = tmp_path / "folder"
    assert subprocess.run([sys.executable, "-c", script, folder], check=False).returncode == 9
    assert not folder.exists()
    with new_folder(folder) as new:
        (new / "file").write_text("text")
    assert [path.name for path in tmp_path.rglob("*")] == ["folder", "file"]


def test_damaged_folder_of_that_name_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "old").write_text("")
    with new_folder(tmp_path / "folder") as new:
        (new / "new").write_text("")
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["new"]


def test_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    message = "file.*: cannot be written: Not a directory; free some space, or set data.directory"
    with pytest.raises(DataError, match=message), new_folder(tmp_path / "file" / "folder"):
        pass
    lock = locked(tmp_path / "file", "folder", lambda message: None)
    with pytest.raises(DataError, match=r"file: cannot be written: File exists"), lock:
        pass


def test_second_process_waits_for_the_first(tmp_path: Path) -> None:
    script = (
        "import pathlib, sys\n"
        "from nmt.data.corpora.folders import locked\n"
        "with locked(pathlib.Path(sys.argv[1]), 'thing', lambda m: print(m, flush=True)):\n"
        "    print('mine', flush=True)\n"
    )
    with ExitStack() as stack:
        stack.enter_context(locked(tmp_path, "thing", lambda message: None))
        command = [sys.executable, "-c", script, str(tmp_path)]
        second = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert second.stdout is not None
        assert second.stdout.readline().startswith("waiting for another process that works on")
        assert second.poll() is None
    assert second.communicate(timeout=30) == ("mine\n", None)


def test_lock_can_be_taken_again(tmp_path: Path) -> None:
    messages: list[str] = []
    for _ in range(2):
        with locked(tmp_path, "thing", messages.append):
            pass
    assert messages == []
