"""Runs the code in C on an emulated ARM processor: stand-ins for the libraries that ctypes loads.

A library is compiled for a level of ARM and called in another process, in `qemu-aarch64`. Each call
sends the arrays that the function is given the addresses of, and brings them back.
"""

import bisect
import ctypes
import functools
import shutil
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from nmt.inference.native import weights
from nmt.machine.compilation import PORTABLE_FLAGS, compile_library
from nmt.machine.levels import LEVELS
from nmt.search import native_search, native_sources, native_steps

CALLER = Path(__file__).with_suffix(".c")
PROCESSORS = {"armv8": "cortex-a53", "dotprod": "neoverse-n1", "i8mm": "max"}
"""{level: a processor, as QEMU names it, that has no more instructions than the level}"""
COMPILER, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64"
ARGUMENTS = 16
LINE = 64
WHAT_IS_MISSING = ", ".join(each for each in (COMPILER, EMULATOR) if not shutil.which(each))
needs_emulator = pytest.mark.skipif(
    bool(WHAT_IS_MISSING),
    reason=f"needs {WHAT_IS_MISSING} (Debian: gcc-aarch64-linux-gnu, qemu-user)",
)


class Arrays:
    """The arrays whose addresses a function in C may be given, by their addresses."""

    def __init__(self) -> None:
        self._sizes: dict[int, int] = {}
        self._starts: list[int] = []
        self._kept: list[object] = []  # so that no other array gets the address of an earlier one

    def add(self, start: int, size: int, owner: object) -> None:
        if start not in self._sizes:
            bisect.insort(self._starts, start)
        self._sizes[start] = max(size, self._sizes.get(start, 0))
        self._kept.append(owner)

    def find(self, address: int) -> tuple[int, int] | None:
        """Return start and size of the array that has this address; None: there is none."""
        i = bisect.bisect_right(self._starts, address)
        start = self._starts[i - 1] if i else 0
        return (start, self._sizes[start]) if i and address < start + self._sizes[start] else None


class Recorder:
    """Stands in for NumPy in a module, and adds the arrays that its functions return."""

    def __init__(self, arrays: Arrays) -> None:
        self._arrays = arrays

    def __getattr__(self, name: str) -> Any:
        value = getattr(np, name)
        if isinstance(value, type) or not callable(value):
            return value

        @functools.wraps(value)
        def call(*arguments: Any, **settings: Any) -> Any:
            result = value(*arguments, **settings)
            if isinstance(result, np.ndarray):
                array = result
                while isinstance(array.base, np.ndarray):
                    array = array.base
                self._arrays.add(array.ctypes.data, array.nbytes, array)
            return result

        return call


def record_arrays(patch: pytest.MonkeyPatch) -> Arrays:
    """Return the arrays and tensors whose addresses the code in Python asks for from now on."""
    arrays, data_ptr = Arrays(), torch.Tensor.data_ptr

    def recorded(tensor: torch.Tensor) -> int:
        storage = tensor.untyped_storage()
        arrays.add(storage.data_ptr(), storage.nbytes(), tensor)
        return data_ptr(tensor)

    patch.setattr(torch.Tensor, "data_ptr", recorded)
    for module in (weights, native_search, native_sources, native_steps):
        assert isinstance(module, ModuleType)
        patch.setattr(module, "np", Recorder(arrays))
    return arrays


class _Request:
    """The memory of one call: copies of arrays and structures, with offsets for addresses."""

    def __init__(self, arrays: Arrays) -> None:
        self._arrays = arrays
        self.memory = bytearray()
        self.pointers: list[int] = []  # where addresses stand in the memory
        self.offsets: dict[int, int] = {}  # {start of an array: where it stands}

    def add(self, value: Any) -> tuple[int, bool]:
        """Return an argument as a number, and whether this is an offset."""
        structure = getattr(value, "_obj", None)  # of `ctypes.byref`
        if structure is not None:
            return self._add_structure(structure), True
        number = value if isinstance(value, int) else getattr(value, "value", None) or 0
        offset = self._offset(number) if isinstance(value, ctypes.c_void_p) else None
        return (number, False) if offset is None else (offset, True)

    def _append(self, address: int, size: int) -> int:
        """Copy memory; its place in a line of the cache stays the same."""
        self.memory.extend(bytes((address - len(self.memory)) % LINE))
        self.memory.extend(ctypes.string_at(address, size))
        return len(self.memory) - size

    def _offset(self, address: int) -> int | None:
        found = self._arrays.find(address)
        if found is None:
            return None
        start, size = found
        if start not in self.offsets:
            self.offsets[start] = self._append(start, size)
        return self.offsets[start] + address - start

    def _add_structure(self, structure: Any) -> int:
        """Copy a structure or an array of them; what looks like the address of an array is one."""
        size = ctypes.sizeof(structure)
        at = self._append(ctypes.addressof(structure), size)
        for word in range(at, at + size // 8 * 8, 8):
            offset = self._offset(int.from_bytes(self.memory[word : word + 8], "little"))
            if offset is not None:
                self._set_pointer(word, offset)
        for name, kind, *_ in getattr(structure, "_fields_", ()):
            if hasattr(kind, "contents"):  # the layers of a model
                first = ctypes.addressof(getattr(structure, name).contents)
                count = getattr(structure, f"{name}_layers")
                layers = (kind._type_ * count).from_address(first)
                where = at + getattr(type(structure), name).offset
                self._set_pointer(where, self._add_structure(layers))
        return at

    def _set_pointer(self, place: int, offset: int) -> None:
        self.memory[place : place + 8] = struct.pack("<q", offset)
        self.pointers.append(place)


class EmulatedLibrary:
    """A library that is compiled for a level of ARM; its functions are called in an emulator."""

    def __init__(self, source: Path, level: str, folder: Path) -> None:
        self._name, self._arrays, self._lock = source.stem, Arrays(), threading.Lock()
        library, caller = folder / f"{source.stem}-{level}.so", folder / "caller"
        flags = next(each.flags for each in LEVELS if each.name == level)
        compile_library(source, library, (*PORTABLE_FLAGS, *flags), [COMPILER])
        loader = _output(COMPILER, "-print-file-name=ld-linux-aarch64.so.1")
        subprocess.run([COMPILER, "-O1", CALLER, "-o", caller, "-ldl"], check=True)
        system = Path(loader).resolve().parents[1]
        self._process = subprocess.Popen(
            [EMULATOR, "-L", system, "-cpu", PROCESSORS[level], caller, library],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def use(self, arrays: Arrays) -> None:
        """Look for the arrays of the next calls among these."""
        self._arrays = arrays

    def close(self) -> None:
        self._process.communicate()

    def __getattr__(self, name: str) -> Callable[..., int]:
        def function(*arguments: Any) -> int:
            with self._lock:
                result = self._call(name, arguments)
            is_address = name in ("nmt_encode", "nmt_start")
            return result if is_address else ctypes.c_int32(result).value

        setattr(self, name, function)
        return function

    def _call(self, name: str, arguments: tuple[Any, ...]) -> int:
        request = _Request(self._arrays)
        added = [request.add(argument) for argument in arguments]
        numbers = [number for number, _ in added] + [0] * (ARGUMENTS - len(added))
        addresses = sum(is_offset << i for i, (_, is_offset) in enumerate(added))
        sizes = addresses, len(request.memory), len(request.pointers)
        header = struct.pack(f"<32s{ARGUMENTS}q3q", name.encode(), *numbers, *sizes)
        places = struct.pack(f"<{len(request.pointers)}q", *request.pointers)
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin and stdout
        stdin.write(header + request.memory + places)
        stdin.flush()
        answer = stdout.read(8 + len(request.memory))
        assert len(answer) == 8 + len(request.memory), f"{name} ended the emulator"
        for start, at in request.offsets.items():
            _, size = self._arrays.find(start) or (start, 0)
            after = answer[8 + at : 8 + at + size]
            if after != ctypes.string_at(start, size):
                ctypes.memmove(start, after, size)
        return int.from_bytes(answer[:8], "little", signed=True)


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


Load = Callable[[Path, str], EmulatedLibrary]


@pytest.fixture(scope="session")
def emulated_libraries(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Load]:
    """Compile a C file for a level of ARM, once."""
    libraries: dict[tuple[Path, str], EmulatedLibrary] = {}
    folder = tmp_path_factory.mktemp("arm")

    def load(source: Path, level: str) -> EmulatedLibrary:
        if (source, level) not in libraries:
            libraries[source, level] = EmulatedLibrary(source, level, folder)
        return libraries[source, level]

    yield load
    for library in libraries.values():
        library.close()


@pytest.fixture
def emulated(emulated_libraries: Load, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Compile a C file for a level of ARM; a test may call its functions with its own arrays."""
    arrays = record_arrays(monkeypatch)

    def load(source: Path, level: str) -> EmulatedLibrary:
        library = emulated_libraries(source, level)
        library.use(arrays)
        return library

    return load
