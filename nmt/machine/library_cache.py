"""Keeps compiled libraries where nobody else can write, and finds damaged ones, also in a wheel.

A library runs with all rights of the user. So nothing is loaded that another user could have
written: the folder and its files belong to the user or to root, and nobody else may write them. A
truncated library would end the process by a signal, so the last bytes of a file are its checksum.
"""

import contextlib
import ctypes
import errno
import fcntl
import functools
import hashlib
import os
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from nmt.errors import print_warning

KEPT = 30
"""files in a folder: the least recently used ones are removed when another one is stored"""
SPACE = 1 << 20
"""free bytes that a folder needs, for a library and then some"""
DAY = 86_400.0
"""seconds"""
_LIBRARY, _TOLD, _UNFINISHED = ".so", ".told", ".tmp"
"""ends of the names of files: libraries, warnings that were printed, and files half written"""


def cache_folders() -> Iterator[Path]:
    """Yield the folders for compiled libraries, the best one first; they need not exist.

    They are in the user's folder for caches (`XDG_CACHE_HOME`, if it is absolute, as its standard
    says; else `~/.cache`), and in that for temporary files, where a home folder cannot be used.
    """
    caches = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(caches):
        caches = os.path.expanduser("~/.cache")  # relative if nobody knows the home folder
    if os.path.isabs(caches):
        yield Path(caches) / "nmt"
    with contextlib.suppress(FileNotFoundError):  # no folder for temporary files can be written
        temporary = tempfile.gettempdir()
        yield Path(temporary) / f"nmt-{os.geteuid()}"


@contextlib.contextmanager
def open_folder(path: Path, create: bool = True) -> Iterator[int]:
    """Yield the descriptor of a folder; `create`: it is made if it does not exist.

    It stays the same folder if somebody renames it and puts another one in its place.

    Raises:
        OSError: it cannot be opened, others may write in it, or libraries cannot run from it.
    """
    if create:
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700, parents=True)
    if path.is_symlink():  # somebody could lead us to another folder of the user
        raise OSError(errno.ELOOP, "it is a symbolic link", path)
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        _check_owner(folder, path)
        if os.fstatvfs(folder).f_flag & getattr(os, "ST_NOEXEC", 0):
            raise PermissionError(errno.EPERM, "its file system runs no programs (noexec)", path)
        yield folder
    finally:
        os.close(folder)


def load_kept(beginning: str, damages: list[str]) -> ctypes.CDLL | None:
    """Return a library that was kept under a name with this beginning; None: there is none.

    Why a file is not loaded is added to `damages`, as a clause.
    """
    for path in cache_folders():
        with contextlib.suppress(OSError), open_folder(path, create=False) as folder:
            names = [name for name in os.listdir(folder) if name.startswith(beginning)]
            for name in (name for name in names if name.endswith(_LIBRARY)):
                try:
                    return _load(folder, name)
                except OSError as error:
                    damages.append(_clause(error, path))
    return None


def load_shipped(path: Path, damages: list[str]) -> ctypes.CDLL | None:
    """Return a library of the installed wheel; None: it cannot be loaded.

    The reason is added to `damages`, as a clause. The owner of the file is not checked: who can
    write there can change the program too.
    """
    try:
        return _load_whole(path.read_bytes(), str(path), str(path))
    except OSError as error:
        damages.append(_clause(error, path.parent))
        return None


def keep(name: str, compiled: Callable[[], bytes]) -> ctypes.CDLL:
    """Keep the library that `compiled` returns under a name, and load it.

    It is compiled once a folder can take it. A warning says so if that is not the user's folder for
    caches.

    Raises:
        OSError: no folder can take it; its message is a clause about the first one.
    """
    library, reasons = b"", list[str]()
    for path in cache_folders():
        try:
            with open_folder(path) as folder:
                _check_can_write(folder, path)
                library = library or compiled()
                _store(folder, name, library)
                loaded = _load(folder, name)
        except OSError as error:
            reasons.append(_clause(error, path))
        else:
            for reason in reasons:
                warn_once(f"{reason}, so compiled libraries are kept in {path}")
            return loaded
    raise OSError(*reasons[:1])


@functools.cache
def warn_once(message: str, topic: str = "") -> None:
    """Print a warning, once on this machine, or once a process if no folder can remember it.

    With a topic, that is the only one about this topic, whatever the message is.
    """
    machine = os.uname().nodename  # a home folder may be shared by different machines
    name = hashlib.sha256(f"{machine} {topic or message}".encode()).hexdigest()[:16] + _TOLD
    for path in cache_folders():
        try:
            with open_folder(path) as folder:
                os.close(os.open(name, os.O_CREAT | os.O_EXCL, 0o600, dir_fd=folder))
            break
        except FileExistsError:
            return
        except OSError:
            continue
    print_warning(message)


def _clause(error: OSError, folder: Path) -> str:
    """Return what is wrong with a file, such as: /caches/nmt: No space left on device."""
    return f"{folder / (error.filename or '')}: {error.strerror or error}"


def _check_owner(descriptor: int, name: Path | str) -> None:
    """Raise a PermissionError if another user than root owns an open file, or may write it."""
    found = os.fstat(descriptor)
    if found.st_uid not in (0, os.geteuid()):
        raise PermissionError(errno.EPERM, "it belongs to another user", name)
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(errno.EPERM, "other users may write it", name)


def with_checksum(library: bytes) -> bytes:
    """Return the content of the file of a library: its last bytes are a checksum of the others."""
    return library + hashlib.sha256(library).digest()


def _remove_oldest(folder: int) -> None:
    """Remove all but the files that were used last, those of earlier versions among them."""
    ours = (_LIBRARY, _TOLD, _UNFINISHED)
    with contextlib.suppress(OSError):  # another process removes them, too
        with os.scandir(folder) as entries:
            files = [(e.stat().st_mtime, e.name) for e in entries if e.name.endswith(ours)]
        for _, name in sorted(files, reverse=True)[KEPT:]:
            os.unlink(name, dir_fd=folder)


def _load(folder: int, name: str) -> ctypes.CDLL:
    """Return a library of an open folder.

    Raises:
        OSError: it is damaged, others may write it, or it cannot be loaded.
    """
    # a link is not followed, and a pipe not waited for
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    with open(os.open(name, flags, dir_fd=folder), "rb") as file:
        descriptor = file.fileno()
        _check_owner(descriptor, name)
        content = file.read() if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
        if time.time() - os.fstat(descriptor).st_mtime > DAY:
            with contextlib.suppress(OSError):  # root's
                os.utime(descriptor)  # used of late
    path = f"/proc/self/fd/{folder}/{name}"
    if sys.platform == "darwin":
        opened = fcntl.fcntl(folder, fcntl.F_GETPATH, bytes(1024))
        path = f"{os.fsdecode(opened.rstrip(bytes(1)))}/{name}"
    return _load_whole(content, path, name)


def _load_whole(content: bytes, path: str, name: str) -> ctypes.CDLL:
    """Return the library of a path, whose file has this content, if it ends with its checksum.

    Raises:
        OSError: it is damaged, or cannot be loaded; the error has the file name `name`.
    """
    library = content[: -hashlib.sha256().digest_size]
    if content != with_checksum(library):
        raise OSError(errno.EIO, "it is damaged", name)
    try:
        return ctypes.CDLL(path)
    except OSError as error:
        raise OSError(errno.ENOEXEC, str(error).removeprefix(f"{path}: "), name) from error


def _store(folder: int, name: str, library: bytes) -> None:
    """Write a library into an open folder, where it appears when it is complete.

    Raises:
        OSError: it cannot be written.
    """
    unfinished = f"{name}.{os.getpid()}-{threading.get_ident()}{_UNFINISHED}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    try:
        with open(os.open(unfinished, flags, 0o700, dir_fd=folder), "wb") as file:
            file.write(with_checksum(library))
        os.replace(unfinished, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(unfinished, dir_fd=folder)
        raise
    _remove_oldest(folder)


def _check_can_write(folder: int, path: Path) -> None:
    """Raise an OSError if an open folder takes no library, so that none is compiled in vain."""
    disk = os.fstatvfs(folder)
    if disk.f_flag & os.ST_RDONLY:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)
    if disk.f_bavail * disk.f_frsize < SPACE:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
    if not os.access(path, os.W_OK):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES), path)
