"""What the machine says of itself."""

import os
import subprocess
from pathlib import Path

import pytest

from nmt.machine import processor
from nmt.machine.processor import available_cores, installed_memory, processor_features


def test_processor_features_are_words() -> None:
    assert all(word and not word.isspace() for word in processor_features())


def test_no_processor_features_where_the_system_tells_none(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    def refuse(*arguments: object, **settings: object) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", refuse)
    processor_features.cache_clear()
    request.addfinalizer(processor_features.cache_clear)
    assert processor_features() == set()


@pytest.mark.parametrize(
    ("cpuinfo", "expected"),
    [
        ("processor\t: 0\nflags\t\t: fpu avx2 fma\nbugs\t\t: none\n", {"fpu", "avx2", "fma"}),
        # a Neoverse N1, and 32-bit software on a 64-bit processor
        ("processor\t: 0\nFeatures\t: asimd asimddp\nCPU part\t: 0xd0c\n", {"asimd", "asimddp"}),
        ("model name\t: ARMv8\nFeatures\t: half thumb neon\n", {"half", "thumb", "neon"}),
        ("", set()),
    ],
)
def test_features_are_those_that_linux_names(
    cpuinfo: str, expected: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "read_text", lambda *arguments, **settings: cpuinfo)
    assert processor_features.__wrapped__() == expected


APPLE_M2 = """hw.optional.arm.FEAT_DotProd: 1
hw.optional.arm.FEAT_I8MM: 1
hw.optional.arm.FEAT_BF16: 1
hw.optional.arm.FEAT_SME: 0
hw.optional.arm64: 1
"""


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        (APPLE_M2, {"asimd", "asimddp", "i8mm", "bf16"}),
        (APPLE_M2.replace("I8MM: 1", "I8MM: 0"), {"asimd", "asimddp", "bf16"}),
        ("hw.optional.avx2_0: 1\nhw.optional.arm64: 0\n", set()),
        ("", set()),
        (None, set()),  # there is no such command
    ],
)
def test_features_on_macos_have_the_names_of_linux(
    listed: str | None, expected: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def sysctl(command: list[str], **settings: object) -> subprocess.CompletedProcess[str]:
        if listed is None:
            raise FileNotFoundError(command[0])
        return subprocess.CompletedProcess(command, 0, listed)

    monkeypatch.setattr("platform.system", lambda: "Darwin")
    monkeypatch.setattr(subprocess, "run", sysctl)
    assert processor_features.__wrapped__() == expected


def test_cores_are_those_this_process_may_use() -> None:
    assert 1 <= available_cores() <= (os.cpu_count() or 1)


def test_memory_is_what_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "allowed_memory", lambda: None)
    installed = installed_memory()
    if installed is None:
        pytest.skip("this system does not tell")
    assert installed == pytest.approx(
        os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), rel=0.05
    )
    for allowed, expected in ((1 << 62, installed), (300_000_000, 300_000_000)):
        monkeypatch.setattr(processor, "allowed_memory", lambda allowed=allowed: allowed)
        assert installed_memory() == expected
