"""Verified texts of a corpus, downloaded or copied, and the record of earlier downloads.

The size and sha256 of a text must be the published ones. If none are published, those of the first
download are recorded, and a later download that differs is an error. Likewise a corpus keeps the
revision or version that was the newest at its first download.
"""

import gzip
import hashlib
import os
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from nmt.data.corpora.download import AbsentError, DiskError, disk_errors, fetch
from nmt.data.text.compressed import DAMAGED, DAMAGED_FILE, SUFFIXES, decompress
from nmt.data.text.lines import open_bytes
from nmt.errors import DataError, Log
from nmt.files import FORMAT_KEY, check_format, read_json, write_json

FORMAT = 1
"""The version of the file format of the record of downloads."""

_CHUNK = 1 << 18  # bytes

Entry = dict[str, str | int]
"""`sha256` and `bytes` of a text, or the `revision` or `version` of a corpus"""


def test_data(name: str) -> Path | None:
    """Return the folder $NMT_TEST_DATA/`name`, which holds copies of a corpus; None if absent."""
    root = os.environ.get("NMT_TEST_DATA")
    folder = Path(root) / name if root else None
    return folder if folder and folder.is_dir() else None


@dataclass(frozen=True)
class RemoteText:
    """A text file to download: plain, compressed, or a member of a zip or tar archive."""

    url: str
    size: int | None = None
    """bytes of the text, decompressed; None if `sha256` is None"""
    sha256: str | None = None
    """hash of the decompressed text, in hex; None: not published"""
    member: str | None = None
    """base name of the text inside the archive; None: the URL is no archive"""
    also: Sequence[str] = ()
    """other names that a copy in `Origin.folder` may have"""

    @property
    def address(self) -> str:
        """The key of the text in the record of downloads."""
        return f"{self.url}#{self.member}" if self.member else self.url

    @property
    def name(self) -> str:
        """The name of the file at its URL."""
        return PurePosixPath(urlsplit(self.url).path).name


@dataclass(frozen=True)
class Origin:
    """Where the texts of a corpus come from, and the record of earlier downloads."""

    folder: Path | None
    """the folder with local copies of the upstream files; None: download them"""
    downloads: Path
    """the folder for downloaded files, before they are unpacked"""
    record: Path
    """the JSON file that maps each address (of a text or corpus) to an `Entry`"""
    log: Log

    def recall(self, address: str) -> Entry:
        """Return the entry of an earlier download from the record; empty if there is none.

        Raises:
            DataError: the record cannot be read.
        """
        return self._entries().get(address, {})

    def remember(self, address: str, entry: Entry) -> None:
        """Write an entry into the record, flushed to disk.

        Raises:
            DataError: the record cannot be read or written.
        """
        entries = {FORMAT_KEY: FORMAT, **self._entries(), address: entry}
        with disk_errors(self.record):
            self.record.parent.mkdir(parents=True, exist_ok=True)
            write_json(self.record, entries)

    def _entries(self) -> dict[str, Entry]:
        """Return the whole record: {address: entry}."""
        try:
            entries = read_json(self.record)
            check_format(entries, FORMAT, self.record, "choose another data.directory")
            entries.pop(FORMAT_KEY, None)
            if not all(isinstance(entry, dict) for entry in entries.values()):
                raise ValueError("not an object of objects")
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise DataError(
                f"{self.record}: not a record of downloads ({error}); delete it to accept what is "
                "downloaded next"
            ) from error
        return entries


def obtain(text: RemoteText, path: Path, origin: Origin) -> None:
    """Write a text to `path`, verified and decompressed: from `origin.folder`, or downloaded.

    If no hash is published, that of the download is recorded. After an error, `path` may exist.

    Raises:
        AbsentError: the server has no such file, or the tar archive no such text.
        DataError: the text cannot be downloaded or read, or is not the expected one.
    """
    if origin.folder is not None:
        # a copy is either the file at the URL, or the text from it, plain or compressed
        plain_name = text.member or text.name.removesuffix(".gz")
        names = [text.name]
        for name in (plain_name, *text.also):
            names += [name, *(name + suffix for suffix in SUFFIXES)]
        copies = [origin.folder / name for name in names if (origin.folder / name).is_file()]
        if not copies:
            raise DataError(f"{origin.folder}: none of {', '.join(dict.fromkeys(names))} is here")
        _install(copies[0], text, path, origin)  # the first of the names counts
        return
    downloaded = download(text, origin)
    try:
        entry = _install(downloaded, text, path, origin)
    except (DiskError, AbsentError):
        raise  # the download is good: a later call starts from it
    except DataError:
        downloaded.unlink()
        raise
    if text.sha256 is None:
        origin.remember(text.address, entry)


def download(text: RemoteText, origin: Origin) -> Path:
    """Return the path of the downloaded file that holds a text; several may be in one archive.

    Raises:
        AbsentError: the server has no such file.
        DataError: the file cannot be downloaded.
    """
    path = origin.downloads / text.name
    if not path.is_file():
        origin.log(f"downloading {text.url}")
        fetch(text.url, path)
    return path


def _install(archive: Path, text: RemoteText, path: Path, origin: Origin) -> Entry:
    """Unpack a text from `archive` to `path`, and return its size and sha256 for the record.

    Raises:
        DataError: the text differs from the published one, or from that of the first download.
    """
    recorded = {} if text.sha256 else origin.recall(text.address)
    digest, size = hashlib.sha256(), 0
    with disk_errors(path), open(path, "wb") as file:
        for chunk in _unpack(archive, text.member):
            digest.update(chunk)
            size += len(chunk)
            if text.size is not None and size > text.size:
                break  # do not fill the disk with a wrong text
            file.write(chunk)
    sha256 = digest.hexdigest()
    if text.sha256 not in (None, sha256) or text.size not in (None, size):
        raise DataError(
            f"{archive}: not the text expected from {text.url} (sha256 {text.sha256}, "
            f"{text.size} bytes); it was changed, or damaged on its way: try again"
        )
    if recorded.get("sha256", sha256) != sha256:
        raise DataError(
            f"{archive}: not the text that {text.address} gave when it was first downloaded "
            f"(sha256 {sha256}, expected {recorded['sha256']}); it was changed upstream, or "
            f"damaged on its way: try again, or delete {origin.record} to accept it"
        )
    return {"sha256": sha256, "bytes": size}


def _unpack(archive: Path, member: str | None) -> Iterator[bytes]:
    """Yield the decompressed bytes of the text in `archive`, in chunks.

    Nothing is written to the paths that the archive names: of a zip or tar archive, the first
    member whose base name is `member` is read, in whatever folder it is.
    """
    if archive.name.endswith((".tar", ".tar.gz", ".tgz")):
        yield from _tar_member(archive, str(member))
        return
    if archive.suffix != ".zip":
        with open_bytes(archive) as file:
            yield from iter(lambda: file.read(_CHUNK), b"")
        return
    try:
        with zipfile.ZipFile(archive) as files:
            infos = [info for info in files.infolist() if not info.is_dir()]
            matches = [info for info in infos if PurePosixPath(info.filename).name == member]
            if not matches:
                raise DataError(f"{archive}: holds no file called {member}")
            with files.open(matches[0]) as file:
                yield from iter(lambda: file.read(_CHUNK), b"")
    except (*DAMAGED, ValueError, RuntimeError, zipfile.BadZipFile) as error:
        raise DataError(DAMAGED_FILE.format(archive, error)) from error


def _tar_member(archive: Path, member: str) -> Iterator[bytes]:
    """Yield the bytes of a file in a tar archive; if its name ends in .gz, decompressed.

    The archive is read to its end, because its checksum stands there.
    """
    found = False
    try:
        with ExitStack() as stack:
            if archive.suffix == ".tgz":  # a name of .tar.gz
                stream = decompress(stack.enter_context(archive.open("rb")), ".gz", str(archive))
            else:
                stream = stack.enter_context(open_bytes(archive))
            files = stack.enter_context(tarfile.open(fileobj=stream, mode="r|"))
            for info in files:
                if found or not info.isfile() or PurePosixPath(info.name).name != member:
                    continue
                found = True
                file = files.extractfile(info)
                assert file is not None  # it is a file
                text = gzip.GzipFile(fileobj=file) if member.endswith(".gz") else file
                while chunk := text.read(_CHUNK):
                    yield chunk
            while stream.read(_CHUNK):
                pass
    except (*DAMAGED, tarfile.TarError) as error:
        raise DataError(DAMAGED_FILE.format(archive, error)) from error
    if not found:
        raise AbsentError(f"{archive}: holds no file called {member}")
