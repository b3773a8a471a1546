"""Which machines the code in C is for."""

import pytest

from nmt.machine import compilation
from nmt.machine.compilation import why_not_here

AVX2 = frozenset({"avx2", "fma"})
KNOWN = "the code in C is for Linux on x86_64 or aarch64 and for macOS on ARM, not "


@pytest.mark.parametrize(
    ("system", "machine", "features", "expected"),
    [
        ("Linux", "x86_64", AVX2, None),
        ("Linux", "x86_64", {"avx"}, "this processor has no AVX2 and no FMA"),
        ("Linux", "aarch64", {"fp", "asimd"}, None),
        # software for 32 bits on a 64-bit processor
        ("Linux", "aarch64", {"half", "neon"}, "this processor has no Advanced SIMD"),
        ("Linux", "armv7l", {"neon"}, f"{KNOWN}Linux on armv7l"),
        ("Linux", "riscv64", set(), f"{KNOWN}Linux on riscv64"),
        ("Darwin", "arm64", {"asimd", "asimddp"}, None),
        ("Darwin", "x86_64", set(), f"{KNOWN}Darwin on x86_64"),
        ("Windows", "AMD64", set(), f"{KNOWN}Windows on AMD64"),
        ("Windows", "ARM64", set(), f"{KNOWN}Windows on ARM64"),
    ],
)
def test_the_code_in_c_is_for_some_machines(
    monkeypatch: pytest.MonkeyPatch,
    system: str,
    machine: str,
    features: set[str],
    expected: str | None,
) -> None:
    monkeypatch.setattr("platform.system", lambda: system)
    monkeypatch.setattr("platform.machine", lambda: machine)
    monkeypatch.setattr(compilation, "ARCHITECTURE", machine.replace("arm64", "aarch64"))
    monkeypatch.setattr(compilation, "processor_features", lambda: features)
    assert why_not_here() == expected
