"""Loads the libraries in C: those of the installed wheel, or compiled here once.

A wheel for Linux brings them for each level of processors (`nmt.machine.levels`). A checkout brings
none, so they are compiled for this processor. Where there is no compiler, PyTorch computes instead,
and `why_no_library` says why.
"""

import ctypes
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import partial
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
from nmt.machine.library_cache import keep, load_kept, load_shipped, warn_once
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
COMPILATION_TIMEOUT = 300.0
"""seconds; it takes one or two, but much longer on a machine that is busy or slow"""


_NEEDS_COMPILER = "install a C compiler (gcc or clang), or name another one by CC"
_NEEDS_FOLDER = "name a private folder with free space by XDG_CACHE_HOME"


class NoLibraryError(Exception):
    """The reason why there is no library in C, as a clause such as "no C compiler was found".

    `remedy` says what the user can do; it is empty if nothing, or if the user wants it so.
    """

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(reason)
        self.remedy = remedy


def load_library(source: Path, *folders: Path, without: str = "") -> ctypes.CDLL | None:
    """Return the library of a C file; it is compiled first if neither wheel nor machine has it.

    It includes files of its own folder and of `folders`. Returns None where there is none; then
    `why_no_library` says why. `without` is a clause that says what is slow then: a warning says so
    once on this machine, unless the user has turned the libraries off.

    Raises:
        ConfigError: the value of the variable `NMT_NATIVE` is unknown, or this processor cannot run
            the level that it names.
    """
    try:
        return _load(source, folders)
    except NoLibraryError as reason:
        if without and not is_turned_off():
            warn_once(f"{reason}, so {without}: nmt doctor says more", topic=without)
        return None


def why_no_library(source: Path, *folders: Path) -> NoLibraryError | None:
    """Return why `load_library` finds no library, and what helps; None: there is one."""
    try:
        _load(source, folders)
    except NoLibraryError as reason:
        return reason
    return None


def what_was_loaded(source: Path, *folders: Path) -> str:
    """Return where the library of a C file is from, and for which instructions it was compiled.

    Such as: of the wheel, for AVX-512, VNNI.
    """
    library = _load(source, folders)
    library.nmt_instructions.restype = ctypes.c_char_p
    place = "of the wheel" if Path(library._name).parent == FOLDER else "compiled here"
    return f"{place}, for {library.nmt_instructions().decode()}"


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
    except (OSError, subprocess.SubprocessError) as error:
        printed: bytes = getattr(error, "stderr", None) or str(error).encode()
        lines = printed.decode(errors="replace").splitlines()
        first = next((line for line in lines if "error" in line.lower()), lines[0])
        if isinstance(error, subprocess.TimeoutExpired):
            first = f"it took more than {COMPILATION_TIMEOUT:.0f} s"
        raise NoLibraryError(f"{compiler[0]} failed: {first}", _NEEDS_COMPILER) from error
    if not target.is_file():
        raise NoLibraryError(f"{compiler[0]} failed: no library was written", _NEEDS_COMPILER)


def is_turned_off() -> bool:
    """Whether the user has turned the libraries in C off."""
    return os.environ.get(SWITCH) == "0"


def why_not_here() -> str | None:
    """Return why C code is not for this machine or not wanted, as a clause; None: it may run."""
    if is_turned_off():
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


def find_compiler() -> list[str] | None:
    """Return the command of the C compiler: that of the variable `CC`, else cc, gcc or clang.

    None: there is none. A warning says so if `CC` names no program.
    """
    value = os.environ.get("CC", "")
    try:
        wanted = shlex.split(value)  # such as "ccache gcc"
    except ValueError:  # a quotation mark is missing
        wanted = [value]
    commands = [command for command in (wanted, ["cc"], ["gcc"], ["clang"]) if command]
    found = next((command for command in commands if shutil.which(command[0])), None)
    if found and wanted and found is not wanted:
        warn_once(f"CC={value} names no program, so {found[0]} compiles the code in C")
    return found


def _load(source: Path, folders: Sequence[Path]) -> ctypes.CDLL:
    """Return the library of a C file: that of the wheel, else one that is compiled here.

    A warning says so if that of the wheel is damaged.

    Raises:
        NoLibraryError: there is none, for this reason.
    """
    if reason := why_not_here():
        raise NoLibraryError(reason)
    sources = digest_of_sources([source.parent, *folders])
    forced = _forced_level()
    level, damages = forced or best_level(processor_features()), list[str]()
    if level and os.environ.get(SWITCH) != "compile":
        shipped = find_library(FOLDER, source, sources, level)
        if shipped and (library := load_shipped(shipped, damages)):
            return library
    flags = (*PORTABLE_FLAGS, *forced.flags) if forced else FLAGS
    # a home folder may be shared by different machines
    all_that_counts = repr((sources, flags, ARCHITECTURE, sorted(processor_features())))
    digest = hashlib.sha256(all_that_counts.encode()).hexdigest()[:16]
    try:
        library = _load_compiled(source, flags, f"{source.stem}-{digest}")
    except NoLibraryError as error:
        clauses = ", and ".join([*damages, str(error)])
        remedy = f"install nmt again, or {error.remedy}" if damages else error.remedy
        raise NoLibraryError(clauses, remedy) from error
    for damage in damages:
        warn_once(f"{damage}, so one that was compiled here is used; install nmt again")
    return library


def _load_compiled(source: Path, flags: Sequence[str], name: str) -> ctypes.CDLL:
    """Return the library that was compiled before by the same compiler, or else compile it.

    Without a compiler, that of any other compiler is as good.

    Raises:
        NoLibraryError: there is none, for this reason.
    """
    compiler, damages = find_compiler(), list[str]()
    name = f"{name}-{_version(compiler)}.so" if compiler else name
    if library := load_kept(name, damages):
        return library
    if compiler is None:
        reason = ", and ".join([*damages, "no C compiler was found"])
        raise NoLibraryError(reason, _NEEDS_COMPILER)
    try:
        library = keep(name, partial(_compile, source, flags, compiler))
    except OSError as error:
        raise NoLibraryError(str(error), _NEEDS_FOLDER) from error
    for damage in damages:
        warn_once(f"{damage}, so it was compiled again")
    return library


def _compile(source: Path, flags: Sequence[str], compiler: Sequence[str]) -> bytes:
    """Return the library of a C file, compiled where no other user can change it."""
    try:
        with tempfile.TemporaryDirectory(prefix="nmt-") as folder:
            library = Path(folder) / "library.so"
            compile_library(source, library, flags, compiler)
            return library.read_bytes()
    except OSError as error:
        reason = f"no temporary files can be written: {error.strerror}"
        raise NoLibraryError(reason, "free some space, or name another folder by TMPDIR") from error


def _version(compiler: Sequence[str]) -> str:
    """Return a hash of a command and its programs, which are other files after an upgrade.

    Asking the compiler for its version would take milliseconds at each start.
    """
    programs = [os.path.realpath(path) for path in map(shutil.which, compiler) if path]
    files = [(path, os.stat(path).st_size, os.stat(path).st_mtime_ns) for path in programs]
    return hashlib.sha256(repr((compiler, files)).encode()).hexdigest()[:8]


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
