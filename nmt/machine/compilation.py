"""Loads the libraries in C: those of the installed wheel, or compiled here once.

A wheel for Linux brings them for each level of processors (`nmt.machine.levels`). A checkout brings
none, so they are compiled for this processor. Where there is no compiler, PyTorch computes instead,
and `why_no_library` says why.
"""

import contextlib
import ctypes
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from nmt.errors import ConfigError
from nmt.machine.levels import (
    FOLDER,
    LEVELS,
    WIDE_VECTORS,
    Level,
    best_level,
    digest_of_sources,
    find_library,
)
from nmt.machine.processor import processor_features

SWITCH = "NMT_NATIVE"
"""environment variable: 0 turns all libraries in C off, `compile` passes over those of the wheel,
and the name of a level forces this level"""
PORTABLE_FLAGS = (
    *("-std=gnu11", "-O3", "-shared", "-fPIC", "-fvisibility=hidden"),
    # errno and floating-point traps are used nowhere, and would forbid vector instructions
    *("-fno-math-errno", "-fno-trapping-math"),
)
"""flags for a compiler that hold for every processor"""
NATIVE_FLAGS = {"x86_64": ("-march=native", WIDE_VECTORS), "aarch64": ("-mcpu=native",)}
"""flags for the processor of this machine, by architecture; on others PyTorch computes"""
NEEDED = {"x86_64": {"avx2": "AVX2", "fma": "FMA"}, "aarch64": {"asimd": "Advanced SIMD"}}
"""features of the processor without which the C code cannot run, and their names for the user"""
ARCHITECTURE = platform.machine().replace("arm64", "aarch64")
"""the kind of processor: "x86_64", or "aarch64", which is "arm64" on macOS"""
FLAGS = (*PORTABLE_FLAGS, *NATIVE_FLAGS.get(ARCHITECTURE, ()))
COMPILATION_TIMEOUT = 60.0
"""seconds; it takes one or two"""


class NoLibraryError(Exception):
    """The reason why there is no library in C, as a clause such as "no C compiler was found"."""


def load_library(source: Path, *folders: Path) -> ctypes.CDLL | None:
    """Return the library of a C file; it is compiled first if neither wheel nor machine has it.

    It includes files of its own folder and of `folders`. Returns None where there is none; then
    `why_no_library` says why.

    Raises:
        ConfigError: the value of the variable `NMT_NATIVE` is unknown, or this processor cannot run
            the level that it names.
    """
    try:
        return _load(source, folders)
    except NoLibraryError:
        return None


def why_no_library(source: Path, *folders: Path) -> str | None:
    """Return why `load_library` finds no library, as a clause; None: there is one."""
    try:
        _load(source, folders)
    except NoLibraryError as reason:
        return str(reason)
    return None


def compile_library(
    source: Path, target: Path, flags: Sequence[str], compiler: Sequence[str]
) -> None:
    """Compile a C file into a library, the file `target`.

    `compiler` is a command, such as ["ccache", "gcc"]; `flags` say for which processor.

    Raises:
        NoLibraryError: the compiler is not there or fails.
    """
    command = [*compiler, *flags, str(source), "-o", str(target), "-lm"]
    # its messages in English; its temporary files where those of this call are removed
    settings = {**os.environ, "LC_ALL": "C", "TMPDIR": str(target.parent)}
    try:
        subprocess.run(
            command,
            env=settings,
            check=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=COMPILATION_TIMEOUT,
        )
    except OSError as error:
        raise NoLibraryError(f"the C compiler {compiler[0]} cannot be started: {error}") from error
    except subprocess.TimeoutExpired as error:
        message = f"the C compiler {compiler[0]} took more than {COMPILATION_TIMEOUT:.0f} s"
        raise NoLibraryError(message) from error
    except subprocess.CalledProcessError as error:
        message = f"the C compiler {compiler[0]} failed"
        lines = error.stderr.decode(errors="replace").splitlines()
        reasons = [line for line in lines if "error:" in line] or lines
        raise NoLibraryError(": ".join([message, *reasons[:1]])) from error


def why_not_here() -> str | None:
    """Return why C code is not for this machine or not wanted, as a clause; None: it may run."""
    if os.environ.get(SWITCH) == "0":
        return f"{SWITCH}=0 turns the code in C off"
    system = platform.system()
    # of x86, only Linux tells what the processor can do
    is_known = system == "Linux" or (system, ARCHITECTURE) == ("Darwin", "aarch64")
    if not is_known or ARCHITECTURE not in NEEDED:
        known = "Linux on x86_64 or aarch64 and for macOS on ARM"
        return f"the code in C is for {known}, not {system} on {platform.machine()}"
    missing = [
        name for key, name in NEEDED[ARCHITECTURE].items() if key not in processor_features()
    ]
    return f"this processor has no {' and no '.join(missing)}" if missing else None


def cache_folder() -> Path:
    """Return the folder for compiled libraries, in the user's folder for caches."""
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches) / "nmt"


def find_compiler() -> list[str]:
    """Return the command of the C compiler: that of the variable `CC`, else cc, gcc or clang.

    Raises:
        NoLibraryError: there is none.
    """
    commands = [shlex.split(os.environ.get("CC", "")), ["cc"], ["gcc"], ["clang"]]
    found = (command for command in commands if command and shutil.which(command[0]))
    if command := next(found, None):
        return command
    raise NoLibraryError("no C compiler was found")


def _load(source: Path, folders: Sequence[Path]) -> ctypes.CDLL:
    """Return the library of a C file, or raise a NoLibraryError."""
    if reason := why_not_here():
        raise NoLibraryError(reason)
    sources = digest_of_sources([source.parent, *folders])
    forced = _forced_level()
    level = forced or best_level(processor_features())
    if level and os.environ.get(SWITCH) != "compile":
        shipped = find_library(FOLDER, source, sources, level)
        with contextlib.suppress(OSError):
            if shipped:
                return ctypes.CDLL(str(shipped))
    flags = (*PORTABLE_FLAGS, *forced.flags) if forced else FLAGS
    compiler = find_compiler()
    # a home folder may be shared by different machines
    all_that_counts = repr((sources, flags, compiler, sorted(processor_features())))
    digest = hashlib.sha256(all_that_counts.encode()).hexdigest()[:16]
    try:
        path = cache_folder() / f"{source.stem}-{digest}.so"
        if not path.exists():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=path.parent) as folder:
                unfinished = Path(folder) / path.name
                compile_library(source, unfinished, flags, compiler)
                unfinished.replace(path)
        return ctypes.CDLL(str(path))
    except (OSError, RuntimeError) as error:  # RuntimeError: no home folder
        raise NoLibraryError(str(error)) from error


def _forced_level() -> Level | None:
    """Return the level that the variable `NMT_NATIVE` names; None: it names none.

    Raises:
        ConfigError: its value is unknown, or this processor cannot run the level.
    """
    value, features = os.environ.get(SWITCH, ""), processor_features()
    if value in ("", "0", "1", "compile"):
        return None
    level = next((level for level in LEVELS if level.name == value), None)
    if level and level.features <= features:
        return level
    missing = sorted(level.features - features) if level else []
    wrong = f"this processor has no {', '.join(missing)}" if missing else "this value is unknown"
    usable = [each.name for each in LEVELS if each.features <= features]
    raise ConfigError(
        f"{SWITCH}={value}: {wrong}; choose one of {', '.join(['0', 'compile', *usable])}"
    )
