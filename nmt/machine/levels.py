"""Levels of processors, and the compiled libraries that a wheel for Linux holds for each of them.

When a wheel is built, the processor that will run it is not known. So the wheel holds each
library once for each level, and the best one that the processor can run is loaded. A checkout and
the pure wheel hold none.
"""

import hashlib
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent / "libraries"
"""where an installed wheel has its libraries"""
WIDE_VECTORS = "-mprefer-vector-width=512"
"""a flag for x86, without which Clang divides vectors of 512 bits"""


class Level(NamedTuple):
    """A set of instructions, for which a library can be compiled."""

    name: str
    architecture: str
    """as `platform.machine()` names it"""
    features: frozenset[str]
    """what the processor needs, as /proc/cpuinfo names it"""
    flags: tuple[str, ...]
    """for GCC and Clang"""


_V3 = frozenset({"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"})
_V4 = _V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
_AMX = {"avx512_vnni", "avx512_bf16", "amx_tile", "amx_int8", "amx_bf16"}
_V4_FLAGS = ("-march=x86-64-v4", WIDE_VECTORS)
_AMX_FLAGS = ("-mavx512vnni", "-mavx512bf16", "-mamx-tile", "-mamx-int8", "-mamx-bf16")
_DOTPROD = frozenset({"asimd", "crc32", "atomics", "asimdrdm", "asimddp"})  # ARMv8.2 with one more
LEVELS = (
    Level("x86-64-v3", "x86_64", _V3, ("-march=x86-64-v3",)),
    Level("avx-vnni", "x86_64", _V3 | {"avx_vnni"}, ("-march=x86-64-v3", "-mavxvnni")),
    Level("x86-64-v4", "x86_64", _V4, _V4_FLAGS),
    Level("vnni", "x86_64", _V4 | {"avx512_vnni"}, (*_V4_FLAGS, "-mavx512vnni")),
    Level("amx", "x86_64", _V4 | _AMX, (*_V4_FLAGS, *_AMX_FLAGS)),
    Level("armv8", "aarch64", frozenset({"asimd"}), ("-march=armv8-a",)),
    Level("dotprod", "aarch64", _DOTPROD, ("-march=armv8.2-a+dotprod",)),
    Level("i8mm", "aarch64", _DOTPROD | {"i8mm", "bf16"}, ("-march=armv8.2-a+dotprod+i8mm+bf16",)),
)
"""from worse to better for each architecture"""


def best_level(features: Collection[str]) -> Level | None:
    """Return the best level for a processor with these features; None: it can run none."""
    return next((level for level in reversed(LEVELS) if level.features <= set(features)), None)


def find_library(folder: Path, source: Path, digest: str, level: Level) -> Path | None:
    """Return the library in `folder` of a C file for a level; None: there is none.

    It was compiled from sources with this digest, so one that an older version left behind is not
    taken. A level has no library of its own where it would be that of a lower one, byte for byte.
    """
    lower = (each for each in reversed(LEVELS) if each.features <= level.features)
    paths = (folder / library_name(source, digest, each) for each in lower)
    return next((path for path in paths if path.is_file()), None)


def library_name(source: Path, digest: str, level: Level) -> str:
    """Return the file name of the library of a C file for a level."""
    return f"{source.stem}_{level.name.replace('-', '_')}_{digest}.so"


def digest_of_sources(folders: Iterable[Path]) -> str:
    """Return a hash of all C files of these folders."""
    contents = hashlib.sha256()
    for folder in folders:
        for file in sorted(folder.glob("*.[ch]")):
            contents.update(file.read_bytes())
    return contents.hexdigest()[:16]
