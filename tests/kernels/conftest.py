"""Every test here runs with the instructions of three generations of processors of x86.

With `--slow` it runs on emulated ones of ARM as well. Tests with the argument `dtype` run for both
types of activations.
"""

import ctypes
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.kernels import dropout, library
from nmt.machine import compilation
from nmt.machine.levels import LEVELS
from nmt.machine.processor import processor_features
from tests import emulated_arm
from tests.emulated_arm import needs_emulator

KERNEL_LIBRARY = library.kernel_library  # before it is replaced
WIDTHS = ("x86-64-v3", "x86-64-v4")
"""levels with other vectors"""
FEATURES = {level.name: level.features for level in LEVELS if level.name in WIDTHS}
FEATURES["compile"] = frozenset()
"""values of `NMT_NATIVE`, and the features that this processor needs to run the library"""
ARM_LEVELS = ("armv8", "i8mm")
"""without and with instructions for bfloat16"""


Load = Callable[[str, torch.dtype], ctypes.CDLL | None]


@pytest.fixture(scope="session")
def compiled(shared_folder: Path) -> Load:
    """Compile the library for a processor and a type of activations, once."""

    @functools.cache
    def load(processor: str, dtype: torch.dtype) -> ctypes.CDLL | None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_CACHE_HOME", str(shared_folder / f"kernels-{processor}"))
            patch.setenv(compilation.SWITCH, processor)
            return KERNEL_LIBRARY.__wrapped__(dtype)

    return load


@pytest.fixture(
    params=[
        *FEATURES,
        *(pytest.param(level, marks=[pytest.mark.slow, needs_emulator]) for level in ARM_LEVELS),
    ],
    autouse=True,
)
def processor(
    request: pytest.FixtureRequest, compiled: Load, monkeypatch: pytest.MonkeyPatch
) -> str:
    """Let the library be one that is compiled for this processor."""
    name: str = request.param
    load: Load = compiled
    if name in ARM_LEVELS:
        load = _emulated(request.getfixturevalue("emulated"))
    elif not FEATURES[name] <= processor_features() or compiled(name, torch.float32) is None:
        pytest.skip(f"needs a C compiler and a processor like {name}")
    for module in (library, dropout):
        monkeypatch.setattr(module, "kernel_library", lambda dtype: load(name, dtype))
    return name


def _emulated(load: emulated_arm.Load) -> Load:
    """Let the functions of a library be those of an emulated processor."""

    def load_by_type(level: str, dtype: torch.dtype) -> ctypes.CDLL | None:
        source = library._SOURCES.get(dtype)
        emulated: Any = load(Path(library.__file__).parent / source, level) if source else None
        return emulated

    return load_by_type


@pytest.fixture(params=[torch.bfloat16, torch.float32], ids=["bf16", "fp32"])
def dtype(request: pytest.FixtureRequest) -> torch.dtype:
    """The type of activations."""
    found: torch.dtype = request.param
    return found
