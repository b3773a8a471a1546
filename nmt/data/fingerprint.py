"""A short name for input files and settings: equal names mean equal prepared data."""

import contextlib
import hashlib
import json
import time
from pathlib import Path
from typing import Any

from nmt.config import Config, TextPair
from nmt.errors import DataError
from nmt.files import read_json, write_json

CONTENT_VERSION = 2
"""Raise this when the same inputs and settings give other ids than before."""

# A file changed more recently than this could change again without another time stamp.
_UNSETTLED_NS = 2_000_000_000


def fingerprint(
    config: Config, texts: list[TextPair], directory: Path, *, remember: bool = True
) -> str:
    """Return sixteen hex digits of a hash of `texts` and every setting that shapes a token store.

    The hash of each file is kept in `directory` under the file's path, size and time stamp, so that
    an unchanged corpus is not read again. `remember=False` only reads these hashes.

    Raises:
        DataError: a file of `texts` cannot be read.
    """
    hashes = _FileHashes(directory / "hashes.json")
    parts = {
        "format": CONTENT_VERSION,
        "texts": [
            {
                "files": [hashes.hash_file(Path(path)) for path in text.paths],
                "fields": [text.source_field, text.target_field],
                # the keys of records if `fields` names none
                "languages": config.data.languages if text.file else None,
            }
            for text in texts
        ],
        "tokenizer": {
            **config.tokenizer.model_dump(exclude={"sampling", "model", "target_model"}),
            "models": [hashes.hash_file(Path(path)) for path in config.tokenizer.models],
        },
        "cleaning": config.data.cleaning.model_dump(),
    }
    if remember:
        hashes.save()
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


class _FileHashes:
    """The sha256 of files, kept in a JSON file for as long as a file does not change."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, Any] = {}
        with contextlib.suppress(OSError, ValueError):  # else the files are read again
            self._known = read_json(path)

    def hash_file(self, path: Path) -> str:
        """Return the file's suffix, which decides how it is decompressed, and its sha256."""
        try:
            stat = path.stat()
            key, state = str(path.resolve()), [stat.st_size, stat.st_mtime_ns]
            if self._known.get(key, [])[:2] == state:
                return str(self._known[key][2])
            with open(path, "rb") as file:
                digest = path.suffix + hashlib.file_digest(file, "sha256").hexdigest()
        except FileNotFoundError as error:
            raise DataError(f"{path}: no such file; check the path in the configuration") from error
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror}") from error
        if time.time_ns() - stat.st_mtime_ns > _UNSETTLED_NS:
            self._known[key] = [*state, digest]
        return digest

    def save(self) -> None:
        """Keep the hashes for the next time if the directory can be written."""
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_json(self._path, self._known)
