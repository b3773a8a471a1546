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
    memory = directory / "hashes.json"
    known: dict[str, Any] = {}
    with contextlib.suppress(OSError, ValueError):  # else the files are read again
        known = read_json(memory)
    parts = {
        "format": CONTENT_VERSION,
        "texts": [
            {
                "files": [_hash_file(Path(path), known) for path in text.paths],
                "fields": [text.source_field, text.target_field],
                # the keys of records if `fields` names none
                "languages": config.data.languages if text.file else None,
            }
            for text in texts
        ],
        "tokenizer": {
            **config.tokenizer.model_dump(exclude={"sampling", "model", "target_model"}),
            "models": [_hash_file(Path(path), known) for path in config.tokenizer.models],
        },
        "cleaning": config.data.cleaning.model_dump(),
    }
    if remember:
        with contextlib.suppress(OSError):  # the directory may be read-only
            directory.mkdir(parents=True, exist_ok=True)
            write_json(memory, known)
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def _hash_file(path: Path, known: dict[str, Any]) -> str:
    """Return the file's suffix, which decides how it is decompressed, and its sha256.

    `known` holds the size, the time stamp and the hash of files, by path; this file is added.
    """
    try:
        stat = path.stat()
        key, state = str(path.resolve()), [stat.st_size, stat.st_mtime_ns]
        if known.get(key, [])[:2] == state:
            return str(known[key][2])
        with open(path, "rb") as file:
            digest = path.suffix + hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file; check the path in the configuration") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error
    if time.time_ns() - stat.st_mtime_ns > _UNSETTLED_NS:
        known[key] = [*state, digest]
    return digest
