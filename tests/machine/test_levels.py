"""The levels of processors, and the choice among the libraries of a wheel."""

import shutil
from pathlib import Path

import pytest

from nmt.errors import ConfigError
from nmt.inference.native.library import KERNELS, SOURCE
from nmt.machine import compilation
from nmt.machine.compilation import PORTABLE_FLAGS, compile_library, load_library
from nmt.machine.levels import LEVELS, best_level, digest_of_sources, library_name
from nmt.machine.library_cache import with_checksum
from nmt.machine.processor import processor_features

HASWELL = {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "sse4_2", "popcnt"}
SKYLAKE_X = HASWELL | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
ICE_LAKE = SKYLAKE_X | {"avx512_vnni", "avx512ifma", "avx512vbmi", "gfni", "vaes"}
AMX = {"amx_tile", "amx_int8", "amx_bf16", "avx512_bf16", "avx_vnni", "avx512_fp16"}
NEOVERSE_N1 = {"fp", "asimd", "aes", "crc32", "atomics", "fphp", "asimdhp", "asimdrdm", "asimddp"}
HERE = best_level(processor_features())

needs_a_level = pytest.mark.skipif(
    HERE is None or not shutil.which("cc"), reason="needs a C compiler and a processor of a level"
)


@pytest.mark.parametrize(
    ("processor", "features", "expected"),
    [
        ("Haswell", HASWELL, "x86-64-v3"),
        ("Zen 3", HASWELL | {"vaes", "sha_ni"}, "x86-64-v3"),
        ("Alder Lake", HASWELL | {"avx_vnni", "gfni", "vaes"}, "avx-vnni"),
        ("Knights Landing", HASWELL | {"avx512f", "avx512cd", "avx512er"}, "x86-64-v3"),
        ("Skylake-X", SKYLAKE_X, "x86-64-v4"),
        ("Ice Lake", ICE_LAKE, "vnni"),
        ("Zen 4", ICE_LAKE | {"avx512_bf16"}, "vnni"),
        ("Zen 5", ICE_LAKE | {"avx512_bf16", "avx_vnni"}, "vnni"),
        ("Sapphire Rapids", ICE_LAKE | AMX, "amx"),
        ("Sapphire Rapids, Linux without AMX", ICE_LAKE | AMX - {"amx_tile"}, "vnni"),
        ("Sandy Bridge", {"avx", "sse4_2", "popcnt"}, None),
        ("a virtual machine that hides bmi2", HASWELL - {"bmi2"}, None),
        ("Cortex-A72", {"fp", "asimd", "evtstrm", "crc32", "cpuid"}, "armv8"),
        ("Graviton 2", NEOVERSE_N1, "dotprod"),
        ("Graviton 3", NEOVERSE_N1 | {"sve", "i8mm", "bf16", "svei8mm", "svebf16"}, "i8mm"),
        ("a processor with i8mm alone", NEOVERSE_N1 | {"i8mm"}, "dotprod"),
        ("ARMv7", {"half", "thumb", "neon", "vfpv4"}, None),
        ("unknown", set(), None),
    ],
)
def test_the_best_level_is_the_highest_that_the_processor_has(
    processor: str, features: set[str], expected: str | None
) -> None:
    level = best_level(features)
    assert (level and level.name) == expected


def test_each_level_is_named_once_and_knows_more_than_the_first_of_its_architecture() -> None:
    assert len({level.name for level in LEVELS}) == len(LEVELS)
    for level in LEVELS:
        assert best_level(level.features) == level
        first = next(each for each in LEVELS if each.architecture == level.architecture)
        assert first.features <= level.features


@pytest.mark.parametrize("value", ["", "0", "1", "compile"])
def test_other_values_of_the_variable_force_no_level(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(compilation.SWITCH, value)
    assert compilation._forced_level() is None


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("vnni", "NMT_NATIVE=vnni: this processor has no avx512_vnni; choose one of 0, compile, "
        "x86-64-v3, x86-64-v4"),
        ("i8mm", "NMT_NATIVE=i8mm: this processor has no asimd, asimddp, asimdrdm, atomics, bf16, "
        "crc32, i8mm; choose one of 0, compile, x86-64-v3, x86-64-v4"),
        ("avx512", "NMT_NATIVE=avx512: this value is unknown; choose one of 0, compile, x86-64-v3, "
        "x86-64-v4"),
    ],
)  # fmt: skip
def test_a_level_that_cannot_run_is_named(
    value: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compilation, "processor_features", lambda: frozenset(SKYLAKE_X))
    monkeypatch.setenv(compilation.SWITCH, "x86-64-v3")
    assert compilation._forced_level() == LEVELS[0]
    monkeypatch.setenv(compilation.SWITCH, value)
    with pytest.raises(ConfigError) as raised:
        compilation._forced_level()
    assert str(raised.value) == message


@needs_a_level
def test_a_library_of_the_wheel_needs_no_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert HERE is not None
    monkeypatch.setattr(compilation, "FOLDER", tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CC", raising=False)
    lowest = next(each for each in LEVELS if each.architecture == HERE.architecture)
    library = tmp_path / library_name(SOURCE, digest_of_sources([SOURCE.parent, KERNELS]), lowest)
    compile_library(SOURCE, library, (*PORTABLE_FLAGS, *lowest.flags), ["cc"])
    library.write_bytes(with_checksum(library.read_bytes()))
    monkeypatch.setenv("PATH", "")
    for value in ("", lowest.name, HERE.name):  # a higher level takes that of the lower one
        monkeypatch.setenv(compilation.SWITCH, value)
        loaded = load_library(SOURCE, KERNELS)
        assert loaded is not None
        assert loaded._name == str(library)
    monkeypatch.setenv(compilation.SWITCH, "compile")
    assert load_library(SOURCE, KERNELS) is None
    monkeypatch.delenv(compilation.SWITCH)
    # one of other sources, which an older version left behind
    library.rename(tmp_path / library_name(SOURCE, "0" * 16, lowest))
    assert load_library(SOURCE, KERNELS) is None


@needs_a_level
def test_without_a_wheel_a_forced_level_is_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert HERE is not None
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv(compilation.SWITCH, HERE.name)
    flags: list[str] = []

    def compile_nothing(source: Path, target: Path, given: list[str], compiler: list[str]) -> None:
        flags.extend(given)
        raise compilation.NoLibraryError("stopped")

    monkeypatch.setattr(compilation, "compile_library", compile_nothing)
    load_library(SOURCE, KERNELS)
    assert flags == [*PORTABLE_FLAGS, *HERE.flags]
