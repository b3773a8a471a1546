"""Getting files from elsewhere: resumable, verified, and never under their final name before that.

A download grows in `NAME.part`. What it unpacks to is hashed while it is written beside its final
name, and renamed only if size and sha256 are the expected ones: those that are published, or else
those of the first download.
"""

import hashlib
import http.client
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from tqdm import tqdm

from nmt.data.corpora.archives import find_copy, unpacked
from nmt.data.corpora.provenance import Entry, Provenance
from nmt.errors import DataError

_CHUNK = 1 << 18
_ATTEMPTS = 5
_PAUSE_S = 1.0
_TIMEOUT_S = 30

Log = Callable[[str], None]


class AbsentError(DataError):
    """The server has no such file."""


class DiskError(DataError):
    """Our own disk refuses; what was received is not to blame."""


@dataclass(frozen=True)
class Origin:
    """Where text comes from, and where downloads wait until they are whole."""

    folder: Path | None
    """copies of the upstream files; None: download them"""
    downloads: Path
    log: Log
    record: Provenance | None = None
    """what was downloaded before; None: nothing is remembered"""


@dataclass(frozen=True)
class RemoteText:
    """A text file and where it comes from: plain, compressed, or the member of a zip archive."""

    url: str
    size: int | None = None
    """bytes of the text itself, decompressed; published together with `sha256` or not at all"""
    sha256: str | None = None
    """of those bytes; None: not published, so that of the first download"""
    member: str | None = None
    """base name of the zip archive's member that is the text"""
    also: tuple[str, ...] = ()
    """other names under which a copy may lie in a folder"""

    @property
    def address(self) -> str:
        """What is remembered of it goes by this name."""
        return f"{self.url}#{self.member}" if self.member else self.url


def obtain(text: RemoteText, path: Path, origin: Origin) -> None:
    """Put a verified text at `path`.

    Raises:
        DataError: it cannot be had, or is not what was expected; nothing is then at `path`.
    """
    name = PurePosixPath(urlsplit(text.url).path).name
    if origin.folder is not None:
        names = (name, text.member or name.removesuffix(".gz"), *text.also)
        _install(find_copy(origin.folder, names), text, path, origin)
        return
    archive = origin.downloads / name
    if not archive.is_file():
        origin.log(f"downloading {text.url}")
        fetch(text.url, archive)
    try:
        entry = _install(archive, text, path, origin)
    except DiskError:
        raise  # the archive is good: a later call starts from it
    except DataError:
        archive.unlink()
        raise
    if origin.record is not None and text.sha256 is None:
        origin.record.remember(text.address, entry)


def fetch(url: str, path: Path) -> None:
    """Download to `path` by way of `path.part`, going on where an earlier attempt was cut off.

    Raises:
        DataError: the server refuses, the connection fails again and again, or the disk is full.
    """
    part = path.with_name(path.name + ".part")
    with disk_errors(part.parent):
        part.parent.mkdir(parents=True, exist_ok=True)
    reason = ""
    for attempt in range(_ATTEMPTS):
        time.sleep(attempt * _PAUSE_S)
        try:
            if _receive(url, part):
                part.replace(path)
                return
            reason = "the connection was cut"
        except urllib.error.HTTPError as error:
            reason = f"HTTP {error.code} {error.reason}"
            if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
                part.unlink(missing_ok=True)
            elif error.code == http.client.NOT_FOUND:
                raise AbsentError(f"{url}: {reason}; fetch it by hand and use --from") from error
            elif error.code < 500 and error.code != http.client.TOO_MANY_REQUESTS:
                raise DataError(f"{url}: {reason}; fetch it by hand and use --from") from error
        except (OSError, http.client.HTTPException) as error:
            reason = str(getattr(error, "reason", error)) or type(error).__name__
    have = part.stat().st_size if part.exists() else 0
    raise DataError(
        f"{url}: {reason} ({have:,} bytes so far); run the command again to go on, or fetch it by "
        "hand and use --from"
    )


def _receive(url: str, part: Path) -> bool:
    """Append to `part` what is missing; tell whether all of it has come."""
    have = part.stat().st_size if part.exists() else 0
    headers = {"User-Agent": "nmt", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    opener = urllib.request.build_opener(_SecureRedirects)
    request = urllib.request.Request(url, headers=headers)
    with closing(opener.open(request, timeout=_TIMEOUT_S)) as response:
        if response.status != http.client.PARTIAL_CONTENT:
            have = 0
        elif not response.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
            part.unlink()
            return False
        length = response.headers.get("Content-Length")
        expected = have + int(length) if length else None
        with _bar(expected, have) as bar, open(part, "ab" if have else "wb") as file:
            while chunk := response.read(_CHUNK):
                with disk_errors(part):
                    file.write(chunk)
                    file.flush()
                bar.update(len(chunk))
            return expected is None or file.tell() == expected


def _bar(total: int | None, initial: int) -> "tqdm[Any]":
    return tqdm(total=total, initial=initial, unit="B", unit_scale=True, disable=None)


class _SecureRedirects(urllib.request.HTTPRedirectHandler):
    """Follow redirects, but never from https to something else."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        if req.full_url.startswith("https:") and not newurl.startswith("https:"):
            raise DataError(f"{req.full_url}: redirected to {newurl}, which is not encrypted")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn what the operating system says about writing `path` into a `DiskError`."""
    try:
        yield
    except OSError as error:
        raise DiskError(
            f"{path}: cannot be written: {error.strerror}; free some space or choose another "
            "directory"
        ) from error


def _install(archive: Path, text: RemoteText, path: Path, origin: Origin) -> Entry:
    """Unpack `archive` to `path` if its text is the one expected; return its size and sha256."""
    before = origin.record.recall(text.address) if origin.record and not text.sha256 else {}
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    digest, size = hashlib.sha256(), 0
    try:
        with disk_errors(beside), open(beside, "wb") as file:
            for chunk in unpacked(archive, text.member):
                digest.update(chunk)
                size += len(chunk)
                if text.size is not None and size > text.size:
                    break
                file.write(chunk)
        found = digest.hexdigest()
        if text.sha256 not in (None, found) or text.size not in (None, size):
            raise DataError(
                f"{archive}: not the text expected from {text.url} (sha256 {text.sha256}, "
                f"{text.size} bytes); it was changed, or damaged on its way: try again"
            )
        if origin.record is not None and before.get("sha256", found) != found:
            raise DataError(
                f"{archive}: not the text that {text.address} gave when it was first downloaded "
                f"(sha256 {found}, expected {before['sha256']}); it was changed upstream, or "
                f"damaged on its way: try again, or delete {origin.record.path} to accept it"
            )
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    return {"sha256": found, "bytes": size}
