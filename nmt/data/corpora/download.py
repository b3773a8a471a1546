"""Downloads of files: an interrupted one continues where it stopped, in `NAME.part`."""

import http.client
import json
import time
import urllib.error
import urllib.request
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any

from tqdm import tqdm

from nmt.errors import DataError
from nmt.files import explain_os_errors

_CHUNK = 1 << 18  # bytes
_ATTEMPTS = 5
_PAUSE_S = 1.0  # before the second attempt; twice as long before the third, and so on
_TIMEOUT_S = 30
BY_HAND = "download it by hand, for `nmt data download --from`"
"""what to do instead of a download, the end of several messages"""


class AbsentError(DataError):
    """The server has no such file."""


class DiskError(DataError):
    """A file or folder of this machine that cannot be written."""


def disk_errors(path: Path) -> AbstractContextManager[None]:
    """Turn an `OSError` inside the block into a `DiskError` that names `path` and a remedy."""
    remedy = "free some space, or set data.directory to another folder"
    return explain_os_errors(path, "written", DiskError, remedy)


def fetch(url: str, path: Path) -> None:
    """Download a file to `path`, in a few attempts; a later call continues from `path`.part.

    Raises:
        DataError: the server refuses or lacks the file (`AbsentError`); no connection; a full disk.
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
            if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE:  # `part` is too long
                part.unlink(missing_ok=True)
            elif error.code < 500 and error.code != http.client.TOO_MANY_REQUESTS:  # do not retry
                kind = AbsentError if error.code == http.client.NOT_FOUND else DataError
                raise kind(f"{url}: {reason}; {BY_HAND}") from error
        except (OSError, http.client.HTTPException) as error:
            cause = getattr(error, "reason", error)  # urllib wraps some errors
            reason = str(cause) or type(error).__name__
    raise DataError(
        f"{url}: {reason} ({_size(part):,} bytes so far); run the command again to continue, or "
        f"{BY_HAND}"
    )


def fetch_json(url: str, timeout_s: float) -> Any:
    """Return the JSON that a server answers, in one attempt.

    `timeout_s` limits each wait for the server (connecting, reading), not all of them together.

    Raises:
        DataError: there is no connection or no answer, or it is not JSON.
    """
    request = urllib.request.Request(url, headers={"User-Agent": "nmt"})
    host = request.host
    try:
        opener = urllib.request.build_opener(_SecureRedirects)
        with closing(opener.open(request, timeout=timeout_s)) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        raise DataError(f"{host}: HTTP {error.code} {error.reason}") from error
    except (OSError, http.client.HTTPException) as error:
        cause = getattr(error, "reason", error)  # urllib wraps some errors
        # the first of these that is not empty
        reason = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
        raise DataError(f"{host}: {reason}") from error
    except ValueError as error:
        raise DataError(f"{host}: an answer that is not JSON") from error


def _size(part: Path) -> int:
    """Return the bytes of a partial download; 0 if there is none."""
    return part.stat().st_size if part.exists() else 0


def _receive(url: str, part: Path) -> bool:
    """Append the missing bytes to the file `part`, and return whether it is then complete.

    If the server sends the whole file instead, `part` is written from its start.
    """
    have = _size(part)  # bytes
    headers = {"User-Agent": "nmt", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    opener = urllib.request.build_opener(_SecureRedirects)
    request = urllib.request.Request(url, headers=headers)
    with closing(opener.open(request, timeout=_TIMEOUT_S)) as response:
        if response.status != http.client.PARTIAL_CONTENT:
            have = 0
        elif not response.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
            part.unlink()  # the server sent another part of the file: start again
            return False
        length = response.headers.get("Content-Length")
        expected = have + int(length) if length else None
        bar = tqdm(total=expected, initial=have, unit="B", unit_scale=True, disable=None)
        with bar, open(part, "ab" if have else "wb") as file:
            while chunk := response.read(_CHUNK):
                with disk_errors(part):
                    file.write(chunk)
                    file.flush()
                bar.update(len(chunk))
            return expected is None or file.tell() == expected


class _SecureRedirects(urllib.request.HTTPRedirectHandler):
    """Follow redirects, but never from https to something else."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        if req.full_url.startswith("https:") and not newurl.startswith("https:"):
            raise DataError(f"{req.full_url}: redirected to {newurl}, which is not encrypted")
        return super().redirect_request(req, fp, code, msg, headers, newurl)
