"""What translating holds in memory does not grow with the text."""

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from nmt.files import read_json_or_empty
from tests.cli.commands import write_lines
from tests.cli.test_ray import descendants

MEGABYTE = 1 << 20

# Counts from where the model is loaded: VmHWM is the most that was ever held, "5" sets it back.
# Of other processes only what is theirs alone: RssAnon less what they were born with.
MEASURING = """
import atexit, os, pathlib, re, sys
import nmt.cli.translate as command
from nmt.cli.app import main
from nmt.search.hypothesis import Hypothesis
from nmt.search.searcher import Searcher
from nmt.translation.pipeline import Pipeline

notes = pathlib.Path(os.environ["NOTES"])

def held(name):
    return int(re.search(name + r":\\s+(\\d+)", open("/proc/self/status").read())[1])

def loaded(*given, load=command.make_translator, **named):
    translator = load(*given, **named)
    open("/proc/self/clear_refs", "w").write("5")
    before, process, born_with = held("VmRSS"), os.getpid(), [0]
    os.register_at_fork(after_in_child=lambda: born_with.insert(0, held("RssAnon")))

    def translate(self, lines, search=Pipeline.translate_batch):
        found = search(self, lines)
        if os.getpid() != process:
            note = notes / str(os.getpid())
            most = int(note.read_text()) if note.exists() else 0
            note.write_text(str(max(most, held("RssAnon") - born_with[0])))
        return found

    def report():
        others = sum(int(note.read_text()) for note in notes.iterdir())
        print(f"held {held('VmHWM') - before} {others}", file=sys.stderr)

    Pipeline.translate_batch = translate
    atexit.register(report)
    return translator

command.make_translator = loaded
if os.environ.get("COPY"):
    Searcher.search = lambda self, ids, *rest, **others: [
        [Hypothesis(tuple(row[:-1]), 0.0)] for row in ids
    ]
main()
"""


class Measured:
    """`nmt translate` in a process of its own, and what it held beyond the model."""

    def __init__(self, run: Path, folder: Path, environment: dict[str, str]) -> None:
        self.run, self.folder, self.environment = run, folder, environment

    def __call__(self, text: Iterable[str], *options: str) -> tuple[int, int]:
        """Bytes of this process and of those that it started, for these lines."""
        notes = Path(tempfile.mkdtemp(dir=self.folder))
        source, output = self.folder / "in.txt", self.folder / "out.txt"
        lines = 0
        with source.open("w", encoding="utf-8") as file:
            for lines, line in enumerate(text, start=1):  # noqa: B007
                file.write(line + "\n")
        arguments = ["translate", "-m", self.run, source, "-o", output, *options]
        done = subprocess.run(
            [sys.executable, "-c", MEASURING, *map(str, arguments)],
            env=self.environment | {"NOTES": str(notes)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        with output.open("rb") as file:
            assert sum(1 for _ in file) == lines
        own, others = done.stderr.split("held ")[1].split()
        print(f"{lines} lines {' '.join(options)}: {int(own) >> 10} MB, {int(others) >> 10} MB")
        return 1024 * int(own), 1024 * int(others)


def captions(lines: int) -> Iterator[str]:
    return (f"dog {n}" if n % 7 else "a small dog. A cat" for n in range(lines))


LONG = ["a dog", "a" * 1_000_000, "A dog. " * 20_000]


@pytest.mark.slow
@pytest.mark.parametrize("options", [["--workers", "1"], ["--workers", "2"]])
def test_twenty_thousand_lines_hold_as_much_as_two_thousand(
    tiny_run: Path, tmp_path: Path, environment: dict[str, str], options: list[str]
) -> None:
    translate = Measured(tiny_run, tmp_path, environment)
    few = translate(captions(2_000), "--beam-size", "1", *options)
    many = translate(captions(20_000), "--beam-size", "1", *options)
    for before, after in zip(few, many, strict=True):
        assert after < before + 40 * MEGABYTE
    assert sum(many) < 300 * MEGABYTE


@pytest.mark.parametrize(
    ("text", "options"),
    [
        pytest.param(LONG * 8, "", id="lines of a megabyte"),
        pytest.param(LONG, "--document", id="documents of a megabyte", marks=pytest.mark.slow),
        *(
            pytest.param(
                captions(1_000_000),
                options,
                id=f"a million lines {options}",
                marks=pytest.mark.slow,
            )
            for options in ("--workers 1", "--workers 2", "--document")
        ),
    ],
)
def test_any_text_holds_at_most_300_megabytes(
    tiny_run: Path, tmp_path: Path, environment: dict[str, str], text: Iterable[str], options: str
) -> None:
    """All but the search itself, which holds one batch, whatever comes before and after it."""
    translate = Measured(tiny_run, tmp_path, environment | {"COPY": "1"})
    assert sum(translate(text, "--beam-size", "1", *options.split())) < 300 * MEGABYTE


def held_alone(process: int) -> int:
    """Bytes that a process holds and shares with no file; none if it has ended."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"RssAnon:\s+(\d+)", status)
    return 1024 * int(found[1]) if found else 0


def watch(process: "subprocess.Popen[bytes]", state: Path, every: int) -> list[tuple[int, int]]:
    """Memory of a command and of all that it has started, each time so many more lines are done.

    Prints them, and the lines per second since the first time, which leaves out the start.
    """
    held: list[tuple[int, int]] = []
    marks: list[tuple[int, float]] = []  # lines and times
    while process.poll() is None:
        lines = read_json_or_empty(state).get("lines", 0)
        if lines >= every * (len(held) + 1):
            held.append((held_alone(process.pid), sum(map(held_alone, descendants(process.pid)))))
            marks.append((lines, time.monotonic()))
            (first, start), (_, now) = marks[0], marks[-1]
            speed = (lines - first) / max(now - start, 1e-9)
            own, others = (amount // MEGABYTE for amount in held[-1])
            print(f"{lines:,} lines: {own} MB, others {others} MB, {speed:,.0f} lines/s")
        time.sleep(0.02)
    return held


needs_ray = pytest.mark.skipif(not find_spec("ray"), reason="needs the extra nmt[ray]")


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        "--workers 2",
        pytest.param("--ray local --workers 1", marks=needs_ray),
        pytest.param("--ray local --workers 2", marks=needs_ray),
    ],
)
def test_memory_is_flat_over_a_million_lines(
    tiny_run: Path, tmp_path: Path, environment: dict[str, str], options: str
) -> None:
    source = write_lines(tmp_path / "in.txt", captions(1_000_000))
    output = tmp_path / "out.txt"
    files = ["-m", str(tiny_run), str(source), "-o", str(output), "--beam-size", "1"]
    command = [sys.executable, "-m", "nmt", "translate", *files, *options.split()]
    with subprocess.Popen(command, env=environment) as process:
        held = watch(process, Path(f"{output}.part.json"), every=100_000)
    assert process.returncode == 0
    with output.open("rb") as file:
        assert sum(1 for _ in file) == 1_000_000
    assert len(held) >= 8
    for before, after in zip(held[1], held[-1], strict=True):
        assert after < before + 40 * MEGABYTE
