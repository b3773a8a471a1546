"""Tells whether the Python files that faster code replaces are unchanged.

The libraries in C, the kernels of a GPU and PyTorch's fused attention compute what the Python files
named in `python_code.sha256` say. Whoever changes one of these files wants the change to be
computed. So then all of it is computed by these files, in training and in translation.
"""

import functools
import hashlib
from pathlib import Path

from nmt.errors import print_warning

PACKAGE = Path(__file__).parent.parent
LIST = Path(__file__).with_suffix(".sha256")
"""a line for each file: its SHA-256, and its path from the folder of the package, as `sha256sum`
prints them"""


def changed_files(package: Path = PACKAGE) -> list[str]:
    """Return the paths of the files in the list that are not as they were when it was written.

    If the list itself is missing, its name is returned.
    """
    if not LIST.is_file():
        return [LIST.name]
    lines = [line.split() for line in LIST.read_text("utf-8").splitlines()]
    return [path for digest, path in lines if _digest(package.parent / path) != digest]


@functools.cache
def is_code_unchanged() -> bool:
    """Return whether faster code may compute; warn once if a file has been changed."""
    changed = changed_files()
    if changed:
        others = f" and {len(changed) - 1} other files" if len(changed) > 1 else ""
        print_warning(
            f"changed or missing: {changed[0]}{others}; so the code in C and other faster code, "
            "written for what was there before, is not used (see CONTRIBUTING.md)"
        )
    return not changed


def _digest(path: Path) -> str | None:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:  # it has been removed
        return None
