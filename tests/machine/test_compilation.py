"""A library is compiled once for its sources, compiler and processor; else the reason is told."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.machine import compilation
from nmt.machine.compilation import find_compiler, load_library, why_no_library, why_not_here
from nmt.machine.levels import best_level, digest_of_sources, library_name
from nmt.machine.library_cache import warn_once, with_checksum
from nmt.machine.processor import processor_features

AVX2 = frozenset({"avx2", "fma"})
KNOWN = "the code in C is for Linux on x86_64 or aarch64 and for macOS on ARM, not "
COMPILER, PATH = shutil.which("cc"), os.environ["PATH"]
CODE = "int {name}(void) {{ return 42; }}"
FAILURES = {
    "echo 'x.c:1:10: fatal error: math.h: No such file' >&2; exit 1": (
        "cc failed: x.c:1:10: fatal error: math.h: No such file"
    ),
    "echo 'x.c: In function:'; echo 'x.c: In function:' >&2; echo 'x.c:1: error: y' >&2; exit 1": (
        "cc failed: x.c:1: error: y"
    ),
    "echo 'cannot execute cc1: No such file' >&2; exit 1": (
        "cc failed: cannot execute cc1: No such file"
    ),
    "exit 3": "returned non-zero exit status 3.",
    "kill -9 $$": "died with <Signals.SIGKILL: 9>.",
    "exec sleep 5": "cc failed: it took more than 1 s",
    "": "cc failed: no library was written",
}
"""what a compiler does, as a script, and the reason that is told"""
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda library: b"",
    "a page": lambda library: library[:4096],
    "last byte": lambda library: library[:-1],
    "bit": lambda library: library[:5000] + bytes([library[5000] ^ 4]) + library[5001:],
    "garbage": lambda library: b"garbage" * 1000,
    "zeros": lambda library: bytes(len(library)),
    "no checksum": lambda library: library[:-32],  # as strip leaves it
}
"""what happens to a file of the installed wheel"""


@pytest.fixture(autouse=True)
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder with programs, and folders for libraries that are empty."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for variable in ("CC", compilation.SWITCH):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    if why_not_here():
        pytest.skip(str(why_not_here()))
    warn_once.cache_clear()
    return folder


@pytest.fixture
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A C file of its own for each test: the linker knows a library by its name."""
    folder = tmp_path / "sources"
    folder.mkdir()
    file = folder / "answer.c"
    file.write_text(f'__attribute__((visibility("default"))) {CODE.format(name="answer")}')
    (folder / "comment.h").write_text(f"/* {request.node.name} */")
    return file


def add_program(folder: Path, name: str, script: str) -> Path:
    program = folder / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return program


def add_compiler(folder: Path, name: str = "cc") -> Path:
    """Add a program that is this machine's compiler, and notes in calls.txt that it was called."""
    if not COMPILER:
        pytest.skip("needs a C compiler")
    calls = folder / "calls.txt"
    return add_program(folder, name, f'echo {name} >> {calls}; PATH={PATH} {COMPILER} "$@"')


def calls_of(folder: Path) -> list[str]:
    calls = folder / "calls.txt"
    return calls.read_text().split() if calls.exists() else []


@pytest.mark.parametrize(
    ("value", "programs_here", "expected", "warning"),
    [
        (None, ["cc", "gcc", "clang"], ["cc"], ""),
        (None, ["gcc", "clang"], ["gcc"], ""),
        (None, ["clang"], ["clang"], ""),
        (None, [], None, ""),
        ("", ["gcc"], ["gcc"], ""),
        ("  ", ["gcc"], ["gcc"], ""),
        ("clang", ["cc", "clang"], ["clang"], ""),
        ("ccache gcc", ["ccache", "gcc"], ["ccache", "gcc"], ""),
        ("gcc -m64 '-DA=b c'", ["gcc"], ["gcc", "-m64", "-DA=b c"], ""),
        ("/no/cc", ["cc"], ["cc"], "CC=/no/cc names no program, so cc compiles the code in C"),
        ("ccache gcc", ["gcc"], ["gcc"], "CC=ccache gcc names no program, so gcc compiles"),
        ("'gcc", ["clang"], ["clang"], "CC='gcc names no program, so clang compiles"),
        ("nvcc", [], None, ""),
    ],
)
def test_the_compiler_is_that_of_the_user_or_one_that_is_there(
    value: str | None,
    programs_here: list[str],
    expected: list[str] | None,
    warning: str,
    programs: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in programs_here:
        add_program(programs, name, "exit 1")
    monkeypatch.setenv("PATH", str(programs))
    if value is not None:
        monkeypatch.setenv("CC", value)
    assert find_compiler() == expected
    printed = capsys.readouterr().err
    assert printed.startswith(f"warning: {warning}") if warning else not printed


@pytest.mark.parametrize("script", FAILURES)
def test_why_a_compiler_fails_is_told(
    script: str, programs: Path, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_program(programs, "cc", script)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setattr(compilation, "COMPILATION_TIMEOUT", 1 if "sleep" in script else 20)
    reason = why_no_library(source)
    assert str(reason).startswith("cc failed: ") and str(reason).endswith(FAILURES[script])
    assert reason and reason.remedy.startswith("install a C compiler")
    assert load_library(source) is None
    assert not list(tmp_path.rglob("*.so")) and not list(tmp_path.glob("nmt-*"))


def test_a_program_that_cannot_be_started_is_told(
    programs: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_program(programs, "cc", "").write_bytes(b"\x7fELF of another machine")
    monkeypatch.setenv("PATH", str(programs))
    assert str(why_no_library(source)).startswith("cc failed: [Errno 8] Exec format error")


def test_a_library_is_compiled_once_and_again_by_an_upgraded_compiler(
    programs: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(programs))
    compiler = add_compiler(programs)
    for _ in range(2):
        assert load_library(source)
        assert calls_of(programs) == ["cc"]
    os.utime(compiler, (1, 1))
    assert load_library(source)
    add_compiler(programs, "gcc")
    monkeypatch.setenv("CC", "gcc")
    assert load_library(source)
    monkeypatch.setenv("CC", "gcc -O1")
    assert load_library(source)
    assert calls_of(programs) == ["cc", "cc", "gcc", "gcc"]


def test_without_a_compiler_what_was_compiled_before_is_used(
    programs: Path, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(programs))
    compiler = add_compiler(programs)
    library = load_library(source)
    assert library and library.answer() == 42
    compiler.unlink()
    assert load_library(source)
    (kept,) = (tmp_path / "caches" / "nmt").glob("*.so")
    kept.with_name("copy").write_bytes(kept.read_bytes()[:5000])
    kept.with_name("copy").replace(kept)
    assert str(why_no_library(source)) == f"{kept}: it is damaged, and no C compiler was found"
    (source.parent / "comment.h").write_text("other sources")
    assert str(why_no_library(source)) == "no C compiler was found"


def test_what_is_slow_without_a_library_is_told_once(
    programs: Path,
    source: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PATH", str(programs))
    assert load_library(source) is None
    assert not capsys.readouterr().err
    for _ in range(2):
        warn_once.cache_clear()  # another process
        assert load_library(source, without="PyTorch translates") is None
    expected = "no C compiler was found, so PyTorch translates: nmt doctor says more"
    assert capsys.readouterr().err == f"warning: {expected}\n"
    add_program(programs, "cc", "exit 1")
    warn_once.cache_clear()
    assert load_library(source, without="PyTorch translates") is None
    assert not capsys.readouterr().err, "another reason, but the same loss"
    assert load_library(source, without="PyTorch trains") is None
    assert "so PyTorch trains: nmt doctor says more" in capsys.readouterr().err


def test_nothing_is_told_to_a_user_who_has_turned_it_off(
    source: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(compilation.SWITCH, "0")
    assert load_library(source, without="PyTorch translates") is None
    assert not capsys.readouterr().err
    reason = why_no_library(source)
    assert str(reason) == "NMT_NATIVE=0 turns the code in C off"
    assert reason and not reason.remedy


def test_a_damaged_library_is_compiled_again(
    programs: Path,
    source: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PATH", str(programs))
    add_compiler(programs)
    monkeypatch.setattr(compilation, "load_kept", lambda name, damages: damages.append("damaged"))
    assert load_library(source)
    assert capsys.readouterr().err == "warning: damaged, so it was compiled again\n"


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_library_of_the_wheel_is_passed_over(
    damage: str,
    programs: Path,
    source: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    level = best_level(processor_features())
    if level is None:
        pytest.skip("needs a processor of a level")
    monkeypatch.setenv("PATH", str(programs))
    compiler = add_compiler(programs)
    monkeypatch.setattr(compilation, "FOLDER", tmp_path)
    shipped = tmp_path / library_name(source, digest_of_sources([source.parent]), level)
    compilation.compile_library(source, shipped, ("-shared", "-fPIC"), ["cc"])
    whole = with_checksum(shipped.read_bytes())
    shipped.write_bytes(DAMAGES[damage](whole))
    compiler.rename(programs / "hidden")
    reason = why_no_library(source)
    assert str(reason) == f"{shipped}: it is damaged, and no C compiler was found"
    assert reason and reason.remedy.startswith("install nmt again, or install a C compiler")
    (programs / "hidden").rename(compiler)
    for _ in range(2):
        library = load_library(source)
        assert library and library.answer() == 42
        warn_once.cache_clear()  # another process
    expected = "it is damaged, so one that was compiled here is used; install nmt again"
    assert capsys.readouterr().err == f"warning: {shipped}: {expected}\n"
    assert calls_of(programs) == ["cc", "cc"]
    shipped.with_name("new").write_bytes(whole)  # the linker has never seen this path
    shipped.with_name("new").replace(shipped)
    library = load_library(source)
    assert library and library._name == str(shipped)


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
