"""Only libraries that are whole, and that nobody else can have written, are loaded and kept."""

import ctypes
import itertools
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from nmt.machine import library_cache
from nmt.machine.library_cache import cache_folders, keep, load_kept, warn_once

NUMBERS = itertools.count()


def compiled(answer: int, folder: Path) -> bytes:
    """A library whose function gives this answer."""
    source, library = folder / "answer.c", folder / "answer.so"
    source.write_text(f"int answer(void) {{ return {answer}; }}")
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", library], check=True)
    return library.read_bytes()


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[int, bytes]:
    """The library that is right, which gives 42, and that of an attacker, which gives 13."""
    folder = tmp_path_factory.mktemp("answers")
    try:
        return {answer: compiled(answer, folder) for answer in (42, 13)}
    except OSError:
        pytest.skip("needs a C compiler")


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders for compiled libraries, in a folder of this test."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))  # for other processes
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    warn_once.cache_clear()
    return list(cache_folders())


@pytest.fixture
def name() -> str:
    """The name of a library; the linker believes that it knows one whose name it has seen."""
    return f"answer-{next(NUMBERS)}.so"


@pytest.fixture
def folder(folders: list[Path], libraries: dict[int, bytes], name: str) -> Path:
    """The first of these folders, in which an attacker has put a library."""
    folders[0].mkdir(mode=0o700, parents=True)
    write_with_checksum(folders[0] / name, libraries[13])
    (folders[0] / name).chmod(0o700)
    return folders[0]


def give_to_another_user(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs to be root, to give a file to another user")
    os.chown(path, 4321, 4321, follow_symlinks=False)


def answer_of(library: ctypes.CDLL | None) -> int | None:
    return None if library is None else library.answer()


def put_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def put_file(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))
    folder.touch()


Change = Callable[[Path], object]
DAMAGES: dict[str, tuple[Change, str]] = {
    "empty": (lambda file: os.truncate(file, 0), "it is damaged"),
    "a byte": (lambda file: os.truncate(file, 1), "it is damaged"),
    "a page": (lambda file: os.truncate(file, 4096), "it is damaged"),
    "truncated": (lambda file: os.truncate(file, 9000), "it is damaged"),
    "last byte": (lambda file: os.truncate(file, file.stat().st_size - 1), "it is damaged"),
    "garbage": (lambda file: file.write_bytes(os.urandom(9000)), "it is damaged"),
    "zeros": (lambda file: file.write_bytes(bytes(9000)), "it is damaged"),
    "text": (lambda file: file.write_text("<html>"), "it is damaged"),
    "bit in the middle": (lambda file: flip_bit(file, 5000), "it is damaged"),
    "bit in the header": (lambda file: flip_bit(file, 18), "it is damaged"),
    "bit in the checksum": (lambda file: flip_bit(file, -1), "it is damaged"),
    "no library": (lambda file: write_with_checksum(file, b"text"), "file too short"),
    "pipe": (put_pipe, "it is damaged"),
    "group": (lambda file: file.chmod(0o770), "other users may write it"),
    "all": (lambda file: file.chmod(0o606), "other users may write it"),
    "another user": (give_to_another_user, "it belongs to another user"),
    "link": (lambda file: move_away(file), "Too many levels of symbolic links"),
}


def flip_bit(file: Path, place: int) -> None:
    content = bytearray(file.read_bytes())
    content[place] ^= 4
    file.write_bytes(content)


def write_with_checksum(file: Path, library: bytes) -> None:
    file.write_bytes(library_cache.with_checksum(library))


def move_away(path: Path) -> None:
    """Leave a symbolic link to a file or folder in its place."""
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_file_that_is_damaged_or_not_safe_is_replaced(
    damage: str, folder: Path, libraries: dict[int, bytes], name: str
) -> None:
    change, reason = DAMAGES[damage]
    change(folder / name)
    reasons: list[str] = []
    assert load_kept(name.removesuffix(".so"), reasons) is None
    (told,) = reasons
    assert told.startswith(f"{folder / name}: ") and told.endswith(reason)
    assert answer_of(keep(name, lambda: libraries[42])) == 42
    assert answer_of(load_kept(name, reasons)) == 42
    assert len(reasons) == 1
    assert not (folder / name).is_symlink()


REFUSED: dict[str, tuple[Change, str]] = {
    "group": (lambda folder: folder.chmod(0o770), "other users may write it"),
    "all": (lambda folder: folder.chmod(0o777), "other users may write it"),
    "sticky": (lambda folder: folder.chmod(0o1777), "other users may write it"),
    "another user": (give_to_another_user, "it belongs to another user"),
    "link": (move_away, "it is a symbolic link"),
    "file": (put_file, "Not a directory"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_nothing_is_loaded_from_a_folder_in_which_others_may_write(
    kind: str,
    folder: Path,
    folders: list[Path],
    libraries: dict[int, bytes],
    capsys: pytest.CaptureFixture[str],
    name: str,
) -> None:
    change, reason = REFUSED[kind]
    change(folder)
    assert load_kept(name, []) is None
    for _ in range(2):
        assert answer_of(keep(name, lambda: libraries[42])) == 42
        warn_once.cache_clear()
    assert answer_of(load_kept(name, [])) == 42
    (told,) = capsys.readouterr().err.splitlines()
    assert told.startswith(f"warning: {folder}: {reason}")
    assert told.endswith(f", so compiled libraries are kept in {folders[1]}")
    assert folders[1].stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("f_flag", os.ST_NOEXEC, "its file system runs no programs (noexec)"),
        ("f_flag", os.ST_RDONLY, "Read-only file system"),
        ("f_bavail", 3, "No space left on device"),
    ],
)
def test_nothing_is_compiled_for_a_folder_that_cannot_take_it(
    field: str,
    value: int,
    reason: str,
    folders: list[Path],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    disk = {"f_flag": 0, "f_bavail": 10**6, "f_frsize": 4096} | {field: value}
    monkeypatch.setattr(os, "fstatvfs", lambda descriptor: SimpleNamespace(**disk))
    with pytest.raises(OSError, match=rf"{folders[0]}: {reason}".replace("(", r"\(")[:-1]):
        keep(name, lambda: pytest.fail("compiled in vain"))


def test_a_folder_that_cannot_be_made_is_passed_over(
    folders: list[Path], libraries: dict[int, bytes], capsys: pytest.CaptureFixture[str], name: str
) -> None:
    folders[0].parent.write_text("a file, where a folder is expected")
    assert answer_of(keep(name, lambda: libraries[42])) == 42
    assert f"{folders[0]}: Not a directory, so" in capsys.readouterr().err
    folders[1].parent.rename(folders[1].parent.with_name("gone"))
    folders[1].parent.touch()
    with pytest.raises(OSError, match=f"{folders[0]}: Not a directory"):
        keep(name, lambda: libraries[42])


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"XDG_CACHE_HOME": "/caches"}, "/caches/nmt"),
        ({"XDG_CACHE_HOME": "relative"}, "/users/me/.cache/nmt"),
        ({"XDG_CACHE_HOME": "./relative"}, "/users/me/.cache/nmt"),
        ({"XDG_CACHE_HOME": ""}, "/users/me/.cache/nmt"),
        ({}, "/users/me/.cache/nmt"),
        ({"HOME": "relative"}, None),
    ],
)
def test_the_folder_for_caches_is_that_of_the_standard(
    variables: dict[str, str], expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    for name, value in ({"HOME": "/users/me"} | variables).items():
        monkeypatch.setenv(name, value)
    paths = list(cache_folders())
    assert [str(path) for path in paths[:-1]] == ([expected] if expected else [])
    assert paths[-1].name == f"nmt-{os.geteuid()}"


def test_without_a_home_folder_that_of_the_user_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("HOME")
    assert Path("~/.cache/nmt").expanduser() in cache_folders()


def test_the_least_recently_used_files_are_removed(
    folder: Path, libraries: dict[int, bytes], name: str
) -> None:
    now = time.time()
    for number in range(40):
        old = folder / f"{number}{('.so', '.told', '.tmp')[number % 3]}"
        old.touch()
        os.utime(old, (now, now - 2e6 - number))
    (folder / "kept.txt").touch()
    os.utime(folder / name, (now, now - 9e6))
    assert load_kept(name, [])  # used: now it is new
    keep("new.so", lambda: libraries[13])
    left = {path.name for path in folder.iterdir()}
    assert {name, "new.so", "kept.txt", "0.so"} <= left
    assert len(left) == library_cache.KEPT + 1


def test_an_interrupted_compilation_leaves_nothing(
    folders: list[Path], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def interrupted(*_: object, **__: object) -> bytes:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        keep(name, interrupted)
    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        keep(name, lambda: b"library")
    assert not list(folders[0].iterdir())


def test_several_may_keep_it_at_once(
    folders: list[Path], libraries: dict[int, bytes], name: str
) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: keep(name, lambda: libraries[42]), range(40)))
    assert {answer_of(library) for library in found} == {42}
    assert [path.name for path in folders[0].iterdir()] == [name]


def test_a_warning_is_printed_once_on_a_machine(
    folders: list[Path],
) -> None:
    command = [sys.executable, "-c", "from nmt.machine.library_cache import warn_once as w\n"]
    command[-1] += "w('slow'); w('slow'); w('slower')"
    printed = [subprocess.run(command, capture_output=True, check=True) for _ in range(2)]
    assert printed[0].stderr.decode().splitlines() == ["warning: slow", "warning: slower"]
    assert not (printed[1].stderr + printed[0].stdout)
    for path in folders:  # nothing can be remembered, so in each process
        path.mkdir(exist_ok=True)
        path.chmod(0o777)
    for _ in range(2):
        again = subprocess.run(command, capture_output=True, check=True)
        assert again.stderr == printed[0].stderr
