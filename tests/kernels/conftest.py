"""Every test here runs with the instructions of three generations of processors."""

import ctypes
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.kernels import compilation, library, random
from nmt.processor import processor_features

FEATURES = {"haswell": "avx2", "skylake-avx512": "avx512bw", "native": "avx2"}
"""processors for which GCC compiles, and a feature that this one needs to run the result"""


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], ctypes.CDLL | None]:
    """Compile the library for a processor, once."""
    found: dict[str, ctypes.CDLL | None] = {}

    def load(processor: str) -> ctypes.CDLL | None:
        if processor not in found:
            flags = tuple(f.replace("=native", f"={processor}") for f in compilation.FLAGS)
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp(processor)))
                patch.setattr(compilation, "FLAGS", flags)
                found[processor] = compilation.load_library(
                    Path(library.__file__).parent / "kernels.c"
                )
        return found[processor]

    return load


@pytest.fixture(params=FEATURES, autouse=True)
def processor(
    request: pytest.FixtureRequest,
    compiled: Callable[[str], ctypes.CDLL | None],
    monkeypatch: pytest.MonkeyPatch,
) -> str:
    """Let the library be one that is compiled for this processor."""
    name: str = request.param
    if FEATURES[name] not in processor_features() or compiled(name) is None:
        pytest.skip(f"needs a C compiler and a processor with {FEATURES[name]}")
    for module in (library, random):
        monkeypatch.setattr(module, "kernel_library", lambda: compiled(name))
    return name
