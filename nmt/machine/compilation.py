"""Compiles C files of this package for this processor, once, and loads the result.

A compiler that knows the processor uses all of its instructions, and no binary has to be shipped
for each kind. Where there is no compiler, PyTorch computes instead.
"""

import ctypes
import hashlib
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from nmt.machine.processor import processor_features

SWITCH = "NMT_NATIVE"
"""environment variable: 0 turns all libraries in C off"""
FLAGS = (
    *("-std=gnu11", "-O3", "-march=native", "-shared", "-fPIC", "-fvisibility=hidden"),
    # errno and floating-point traps are used nowhere, and would forbid vector instructions
    *("-fno-math-errno", "-fno-trapping-math"),
    "-mprefer-vector-width=512",  # else Clang divides vectors of 512 bits
)
NEEDED = {"avx2", "fma"}
"""features of the processor without which the C code cannot run"""
COMPILATION_TIMEOUT = 60.0
"""seconds; it takes one or two"""


def load_library(source: Path, *folders: Path) -> ctypes.CDLL | None:
    """Return the library of a C file; it is compiled first if this machine has not done it before.

    It includes files of its own folder and of `folders`. Returns None where it cannot be used:
    another kind of processor, no C compiler, no folder to store it in, or the variable `NMT_NATIVE`
    is 0.
    """
    if is_turned_off() or not runs_on_this_processor():
        return None
    compiler = os.environ.get("CC", "cc")
    try:
        path = cache_folder() / f"{source.stem}-{_digest([source.parent, *folders], compiler)}.so"
        if not path.exists():
            _compile(source, compiler, path)
        return ctypes.CDLL(str(path))
    except (OSError, subprocess.SubprocessError, RuntimeError):  # RuntimeError: no home folder
        return None


def is_turned_off() -> bool:
    """Whether the user has turned the libraries off by the variable `NMT_NATIVE`."""
    return os.environ.get(SWITCH) == "0"


def runs_on_this_processor() -> bool:
    """Whether the C code is for processors of this kind: x86 with AVX2, on Linux."""
    return processor_features() >= NEEDED


def cache_folder() -> Path:
    """Return the folder for compiled libraries, in the user's folder for caches."""
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches) / "nmt"


def _digest(folders: Sequence[Path], compiler: str) -> str:
    """Return a hash of all that the library depends on: sources, flags, compiler and processor."""
    contents = hashlib.sha256()
    for folder in folders:
        for file in sorted(folder.glob("*.[ch]")):
            contents.update(file.read_bytes())
    # a home folder may be shared by different machines
    contents.update(repr((FLAGS, compiler, sorted(processor_features()))).encode())
    return contents.hexdigest()[:16]


def _compile(source: Path, compiler: str, path: Path) -> None:
    """Compile a C file into the file `path`, which appears only when it is complete."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        unfinished = Path(folder) / path.name
        command = [compiler, *FLAGS, str(source), "-o", str(unfinished), "-lm"]
        subprocess.run(command, check=True, capture_output=True, timeout=COMPILATION_TIMEOUT)
        unfinished.replace(path)
