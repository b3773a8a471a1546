"""Files by URL are read and written like local ones, and each error is one sentence."""

import gzip
import lzma
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import fsspec
import pytest
import zstandard
from fsspec.implementations.memory import MemoryFileSystem

from nmt.data.text.lines import read_lines
from nmt.data.text.remote_files import (
    RemotePath,
    before_upload,
    check_service,
    is_file,
    open_file,
    upload,
    with_urls,
)
from nmt.errors import ConfigError, DataError

LINES = ["ein Hund", "", "a\u2028b \U0001f600", "zu Ende"]
CONTENT = "".join(f"{line}\n" for line in LINES).encode()


class DeniedFiles(MemoryFileSystem):  # type: ignore[misc]
    """A service that allows nothing."""

    protocol = "denied"

    def open(self, path: str, mode: str = "rb", **options: object) -> object:
        raise PermissionError("Forbidden")

    def put_file(self, lpath: str, rpath: str, **options: object) -> None:
        raise PermissionError("Forbidden")


class BrokenFiles(MemoryFileSystem):  # type: ignore[misc]
    """A service whose connection breaks while a file is read."""

    protocol = "broken"

    def open(self, path: str, mode: str = "rb", **options: object) -> object:
        return self

    def readinto(self, buffer: object) -> int:
        raise ConnectionResetError("the peer went away")

    def close(self) -> None:
        return


fsspec.register_implementation("denied", DeniedFiles)
fsspec.register_implementation("broken", BrokenFiles)


@pytest.fixture(autouse=True)
def empty_memory() -> Iterator[None]:
    yield
    MemoryFileSystem.store.clear()


def url(text: str) -> RemotePath:
    path = with_urls(Path(text))
    assert isinstance(path, RemotePath)
    return path


@pytest.mark.parametrize("text", ["s3://b/d/f.gz", "gs://b/f", "hf://datasets/a/b/c.txt"])
def test_a_url_is_a_path_that_keeps_its_text(text: str) -> None:
    path = url(text)
    assert str(path) == f"{path}" == os.fspath(path) == text
    assert str(path / "part") == f"{text}/part"
    assert path.name == text.rpartition("/")[2]
    assert before_upload(path) == Path(path.name)


@pytest.mark.parametrize("text", ["a/b", "/a/b", "-", "a:b", "C:/b", "s3:", "folder/s3://b"])
def test_other_paths_stay_as_they_are(text: str) -> None:
    path = Path(text)
    assert with_urls(path) is path is before_upload(path)


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [
        ("", bytes),
        (".gz", gzip.compress),
        (".xz", lzma.compress),
        (".zst", zstandard.ZstdCompressor().compress),
    ],
)
def test_lines_are_read_and_decompressed(suffix: str, compress: Callable[[bytes], bytes]) -> None:
    path = url(f"memory://texts/in.txt{suffix}")
    MemoryFileSystem().pipe_file(str(path), compress(CONTENT))
    assert list(read_lines(path)) == LINES
    assert is_file(path) and not is_file(path.with_name("other"))


def test_an_upload_is_what_the_file_holds(tmp_path: Path) -> None:
    local, path = tmp_path / "out.part", url("memory://texts/out.txt")
    for content in (CONTENT, b"replaced\n"):
        local.write_bytes(content)
        upload(local, path)
        with open_file(path) as file:
            assert file.read() == content


def test_errors_name_the_url_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def error_of(kind: type[Exception], action: Callable[[RemotePath], object], text: str) -> str:
        with pytest.raises(kind) as raised:
            action(url(text))
        message = str(raised.value)
        assert message.startswith(text) and "\n" not in message
        return message

    def write(path: RemotePath) -> None:
        upload(tmp_path / "local", path)

    def read(path: RemotePath) -> None:
        list(read_lines(path))

    (tmp_path / "local").write_bytes(CONTENT)
    assert "no such file or bucket; check the URL" in error_of(DataError, read, "memory://none")
    denied = "access is denied; check the credentials, and what they allow"
    assert f"cannot be read: {denied}" in error_of(DataError, read, "denied://b/in")
    assert f"cannot be written: {denied}" in error_of(DataError, write, "denied://b/out")
    broken = error_of(DataError, read, "broken://b/in")
    assert broken == "broken://b/in: cannot be read: the peer went away"
    for action in (read, write, check_service, is_file):
        unknown = error_of(ConfigError, action, "s4://b/in")
        assert "no service is known for s4://; expected s3://, gs://, hf:// or another" in unknown
    monkeypatch.setitem(sys.modules, "s3fs", None)
    missing = error_of(ConfigError, check_service, "s3://b/out")
    assert "the package for s3:// is missing: Install s3fs" in missing
