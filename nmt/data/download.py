"""Getting text from elsewhere: resumable, verified, and never under its final name before that.

A download grows in `NAME.part`. What it unpacks to is hashed while it is written beside its final
name, and renamed only if size and sha256 are the expected ones. Archives are never extracted: the
one member that is wanted is streamed out.
"""

import gzip
import hashlib
import http.client
import lzma
import os
import re
import sys
import time
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from tqdm import tqdm

from nmt.data.compressed import open_bytes
from nmt.errors import DataError, NmtError

_CHUNK = 1 << 18
_ATTEMPTS = 5
_PAUSE_S = 1.0
_TIMEOUT_S = 30
_ROWS = 1000
_LINE_ENDS = re.compile(r"[\r\n]+")


@dataclass(frozen=True)
class Origin:
    """Where text comes from, and where downloads wait until they are whole."""

    folder: Path | None
    """copies of the upstream files; None: download them"""
    downloads: Path
    log: Callable[[str], None]


@dataclass(frozen=True)
class RemoteText:
    """A text file and where it comes from: plain, compressed, or the member of a zip archive."""

    url: str
    size: int
    """bytes of the text itself, decompressed"""
    sha256: str
    """of those bytes"""
    member: str | None = None
    """base name of the zip archive's member that is the text"""
    also: tuple[str, ...] = ()
    """other names under which a copy may lie in a folder"""


def obtain(text: RemoteText, path: Path, origin: Origin) -> None:
    """Put a verified text at `path`.

    Raises:
        DataError: it cannot be had, or is not what was expected; nothing is then at `path`.
    """
    name = PurePosixPath(urlsplit(text.url).path).name
    if origin.folder is not None:
        _install(_find(origin.folder, name, text), text, path)
        return
    archive = origin.downloads / name
    if not archive.is_file():
        origin.log(f"downloading {text.url}")
        fetch(text.url, archive)
    try:
        _install(archive, text, path)
    except _DiskError:
        raise  # the archive is good: a later call starts from it
    except DataError:
        archive.unlink()
        raise


def fetch(url: str, path: Path) -> None:
    """Download to `path` by way of `path.part`, going on where an earlier attempt was cut off.

    Raises:
        DataError: the server refuses, the connection fails again and again, or the disk is full.
    """
    part = path.with_name(path.name + ".part")
    with _disk_errors(part.parent):
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
                with _disk_errors(part):
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


class _DiskError(DataError):
    """Our own disk refuses; what was received is not to blame."""


@contextmanager
def _disk_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _DiskError(
            f"{path}: cannot be written: {error.strerror}; free some space or choose another "
            "directory"
        ) from error


# -- files that are here already ------------------------------------------------------------------


def _find(folder: Path, name: str, text: RemoteText) -> Path:
    """The file of `folder` called as upstream calls it, or decompressed, or compressed anew."""
    plain = (text.member or name.removesuffix(".gz"), *text.also)
    suffixes = ("", ".gz", ".xz", ".zst")
    names = dict.fromkeys([name, *(stem + suffix for stem in plain for suffix in suffixes)])
    for candidate in names:
        if (folder / candidate).is_file():
            return folder / candidate
    raise DataError(f"{folder}: none of {', '.join(names)} is here")


def _install(archive: Path, text: RemoteText, path: Path) -> None:
    """Unpack `archive` to `path` if its text is the one expected."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    digest, size = hashlib.sha256(), 0
    try:
        with _disk_errors(beside), open(beside, "wb") as file:
            for chunk in _unpacked(archive, text.member):
                digest.update(chunk)
                size += len(chunk)
                if size > text.size:
                    break
                file.write(chunk)
        if size > text.size or digest.hexdigest() != text.sha256:
            raise DataError(
                f"{archive}: not the text expected from {text.url} (sha256 {text.sha256}, "
                f"{text.size:,} bytes); it was changed, or damaged on its way: try again"
            )
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _unpacked(archive: Path, member: str | None) -> Iterator[bytes]:
    """The bytes of the text inside `archive`."""
    try:
        if archive.suffix == ".zip":
            with zipfile.ZipFile(archive) as files, files.open(_member(files, member)) as file:
                yield from iter(lambda: file.read(_CHUNK), b"")
        else:
            with closing(open_bytes(archive)) as file:
                yield from iter(lambda: file.read(_CHUNK), b"")
    except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile, zipfile.BadZipFile) as error:
        raise DataError(f"{archive}: damaged or cut short ({error}); fetch it again") from error


def _member(files: zipfile.ZipFile, name: str | None) -> zipfile.ZipInfo:
    """The archive's one regular file of that base name."""
    for info in files.infolist():
        if not info.is_dir() and PurePosixPath(info.filename).name == name:
            return info
    raise DataError(f"{files.filename}: holds no file called {name}")


# -- Hugging Face ---------------------------------------------------------------------------------

SPLITS = ("train", "validation", "test")


def write_hub_text(
    name: str,
    configuration: str,
    revision: str,
    folder: Path,
    origin: Origin,
) -> None:
    """Write the three splits of a translation data set as {split}.{language} in `folder`.

    Read from the Hugging Face Hub at a pinned revision, or from the origin folder that holds its
    parquet files as the Hub lays them out, `CONFIGURATION/SPLIT-*.parquet`.

    Raises:
        DataError: the data set cannot be had, or its rows are not translations of the languages.
    """
    import datasets

    languages = configuration.split("-")
    if not sys.stderr.isatty():
        datasets.disable_progress_bars()
    try:
        if origin.folder is None:
            origin.log(f"loading {name} {configuration} from the Hugging Face Hub")
            rows = datasets.load_dataset(name, configuration, revision=revision)
        else:
            files = _parquet_files(origin.folder, configuration)
            cache = str(origin.downloads)
            rows = datasets.load_dataset(
                "parquet", data_files=files, streaming=True, cache_dir=cache
            )
        for split in SPLITS:
            _write_split(rows[split], split, languages, folder, origin.log)
    except NmtError:
        raise
    except Exception as error:  # the library and what it builds upon raise dozens of kinds
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DataError(
            f"{name} {configuration} cannot be read: {reason}; check the network, or fetch its "
            "parquet files by hand and use --from"
        ) from error


def _parquet_files(root: Path, configuration: str) -> dict[str, list[str]]:
    folder = root / configuration if (root / configuration).is_dir() else root
    files = {split: sorted(map(str, folder.glob(f"{split}-*.parquet"))) for split in SPLITS}
    for split, found in files.items():
        if not found:
            raise DataError(f"{folder}: no file called {split}-*.parquet is here")
    return files


def _write_split(
    rows: Any, split: str, languages: list[str], folder: Path, log: Callable[[str], None]
) -> None:
    """Write one split, a sentence a line: line ends inside a sentence become spaces."""
    pairs = joined = 0
    with ExitStack() as stack:
        files = [stack.enter_context(open(folder / f"{split}.{name}", "wb")) for name in languages]
        for batch in tqdm(rows.iter(_ROWS), desc=split, unit_scale=_ROWS, disable=None):
            pairs += len(batch["translation"])
            for file, language in zip(files, languages, strict=True):
                sentences = [row[language] for row in batch["translation"]]
                lines = [_LINE_ENDS.sub(" ", sentence) for sentence in sentences]
                joined += sum(map(str.__ne__, lines, sentences))
                with _disk_errors(folder):
                    file.write("".join(f"{line}\n" for line in lines).encode())
    log(f"{split}: {pairs:,} pairs; line ends inside {joined:,} sentences became spaces")
