"""What complete outputs were made with, so that `--resume` can compare it with what is asked now.

A record is a small file in the user's folder for caches; without one, nothing is known.
"""

import contextlib
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nmt.files import read_json, write_json
from nmt.machine.library_cache import cache_folders

KEPT = 1000
"""records; the oldest ones are removed"""


def keep_record(output: Path, settings: Mapping[str, object]) -> None:
    """Keep the settings of an output that is complete; nothing is kept where nothing can be."""
    with contextlib.suppress(OSError):
        path = _record(output)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_json(path, {"settings": settings, "output": _state(output)})
        records = sorted(path.parent.iterdir(), key=lambda each: each.stat().st_mtime)
        for old in records[:-KEPT]:
            old.unlink(missing_ok=True)


def recorded_settings(output: Path) -> Mapping[str, Any] | None:
    """Return the settings of an output; None: they are not known, or it was changed since."""
    with contextlib.suppress(OSError, ValueError, KeyError):
        record = read_json(_record(output))
        return dict(record["settings"]) if record["output"] == _state(output) else None
    return None


def _record(output: Path) -> Path:
    """Return where the record of an output is."""
    name = hashlib.sha256(os.fsencode(output.resolve())).hexdigest()[:32]
    return next(cache_folders()) / "outputs" / f"{name}.json"


def _state(output: Path) -> list[int]:
    """Return what differs once a file is written again."""
    state = output.stat()
    return [state.st_size, state.st_mtime_ns]
