"""Every test here runs with the instructions of three generations of processors.

Tests with the argument `dtype` run for both types of activations.
"""

import ctypes
import functools
from collections.abc import Callable

import pytest
import torch

from nmt.kernels import dropout, library
from nmt.machine import compilation
from nmt.machine.processor import processor_features

KERNEL_LIBRARY = library.kernel_library  # before it is replaced
FEATURES = {"haswell": "avx2", "skylake-avx512": "avx512bw", "native": "avx2"}
"""processors for which a compiler compiles, and a feature that this one needs to run the result"""


Load = Callable[[str, torch.dtype], ctypes.CDLL | None]


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Load:
    """Compile the library for a processor and a type of activations, once."""

    @functools.cache
    def load(processor: str, dtype: torch.dtype) -> ctypes.CDLL | None:
        flags = tuple(f.replace("=native", f"={processor}") for f in compilation.FLAGS)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp(processor)))
            patch.setattr(compilation, "FLAGS", flags)
            return KERNEL_LIBRARY.__wrapped__(dtype)

    return load


@pytest.fixture(params=FEATURES, autouse=True)
def processor(
    request: pytest.FixtureRequest,
    compiled: Load,
    monkeypatch: pytest.MonkeyPatch,
) -> str:
    """Let the library be one that is compiled for this processor."""
    name: str = request.param
    if FEATURES[name] not in processor_features() or compiled(name, torch.float32) is None:
        pytest.skip(f"needs a C compiler and a processor with {FEATURES[name]}")
    for module in (library, dropout):
        monkeypatch.setattr(module, "kernel_library", lambda dtype: compiled(name, dtype))
    return name


@pytest.fixture(params=[torch.bfloat16, torch.float32], ids=["bf16", "fp32"])
def dtype(request: pytest.FixtureRequest) -> torch.dtype:
    """The type of activations."""
    found: torch.dtype = request.param
    return found
