"""A short name for inputs and settings: equal names mean equal prepared data."""

import hashlib
import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from nmt.config import Config, TextPair
from nmt.errors import DataError

# raise it when the same inputs and settings give other files than before
FORMAT = 2

# a file changed this recently could change again under the same time stamp
_UNSETTLED_NS = 2_000_000_000


def fingerprint(
    config: Config, texts: list[TextPair], directory: Path, *, remember: bool = True
) -> str:
    """Sixteen hex digits over the bytes of `texts` and every setting that shapes a token store.

    What each file's bytes hash to is remembered in `directory`, by path, size and time stamp, so
    that an unchanged corpus is not read again; if not to `remember`, what is known is looked up.

    Raises:
        DataError: a file of `texts` cannot be read.
    """
    hashes = _FileHashes(directory / "hashes.json")
    parts = {
        "format": FORMAT,
        "texts": [
            {
                "files": [hashes.of(Path(path)) for path in text.paths],
                "fields": [text.source_field, text.target_field],
                # the keys of records that name no fields
                "languages": config.data.languages if text.file else None,
            }
            for text in texts
        ],
        "tokenizer": {
            **config.tokenizer.model_dump(exclude={"sampling", "model", "target_model"}),
            "models": [hashes.of(Path(path)) for path in config.tokenizer.models],
        },
        "cleaning": config.data.cleaning.model_dump(),
    }
    if remember:
        hashes.save()
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


class _FileHashes:
    """The sha256 of files, each computed once as long as the file stays as it is."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, list[Any]] = {}
        try:
            known = json.loads(path.read_text(encoding="utf-8"))
            self._known = known if isinstance(known, dict) else {}
        except (OSError, ValueError):
            pass  # nothing remembered yet, or no longer legible: the files are read again

    def of(self, path: Path) -> str:
        """The file's suffix, which decides how it is decompressed, and the sha256 of its bytes."""
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
        """Remember for next time, where that is possible."""
        beside = self._path.with_suffix(f".{os.getpid()}.tmp")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            beside.write_text(json.dumps(self._known), encoding="utf-8")
            beside.replace(self._path)
        except OSError:
            with suppress(OSError):
                beside.unlink()
