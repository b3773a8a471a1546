"""Whatever the bytes, the pipes and the disk are like: a line for a line, or one sentence."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nmt.cli.lines.file_translation import EMPTY
from nmt.search import windows
from nmt.translation import document
from tests.cli.commands import invoke, lines_of, write_lines

Nmt = Callable[..., subprocess.CompletedProcess[bytes]]
ODD = [
    *("", " ", "\t", "\u00a0", "\u2028", "\u2029", "\u0085", "\u3000", "\u200b"),
    "\v\f\x1c\x1d\x1e",
    *("</s>", "<s> </s> <unk> <pad>", "<unk>", "▁", "▁a▁", "⁇", "<0x0A>", "<0x00>", "@@ @@"),
    *("😀", "👩‍👩‍👧‍👦 🏳️‍🌈", "🇩🇪🇫🇷", "é", "ﷺ", "Ǆ", "\u200d", "\ufe0f", "\u0301\u0301\u0301"),
    *("שלום עולם", "\u202eabc\u202c", "\u2066مرحبا\u2069", "\u200f"),
    *("\x00", "a\x00b", "\x1b[31mred\x1b[0m", "\x07\x08\x7f", "\r", "a\rb"),
    *("\ufeff", "\ufffe", "\ufffd"),
    *("a ||| b", "a\tb", '{"source": "x"}', "--help", "%s %d {}", "\\n", "a" * 100, "." * 40),
    *("A dog. A cat!", "e.g. Mr. X.", "。！？", "x\u2028y\u0085z", "𝔘𝔫𝔦", "\U0010ffff", "\ue000"),
]
ODD_BYTES = [
    *(b"\xff", b"\xc3", b"a\xc3\x28b", b"\xed\xa0\x80", b"\xed\xa0\xbd\xed\xb8\x80", b"\xc0\x80"),
    *(b"\xf4\x90\x80\x80", b"\xfe\xff\x00a", b"\xef\xbb\xbf", b"\xe2\x80", b"\x80\x80\x80"),
]
LINE = st.one_of(
    st.sampled_from([odd.encode() for odd in ODD] + ODD_BYTES),
    st.lists(st.sampled_from([odd.encode() for odd in ODD] + ODD_BYTES), max_size=6).map(b" ".join),
    st.text(max_size=30).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.binary(max_size=30),
).map(lambda line: line.replace(b"\n", b""))
OPTIONS = st.sampled_from(
    [
        *("", "--beam-size 1", "--workers 1", "--workers 2 --batch-tokens 64"),
        *("--sample --top-k 5 --workers 1", "--document --workers 1"),
        *("--document --workers 2 --batch-tokens 64", "--mbr bleu --workers 1"),
        *("--alignments --workers 1", "--precision bf16 --workers 1"),
    ]
).map(str.split)


def read(data: bytes) -> tuple[list[str], int]:
    """The lines that a translator is to see, and how many of them are no UTF-8."""
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if lines[-1] == b"" and (len(lines) > 1 or data.endswith(b"\n") or not data):
        lines.pop()
    lines = [line.removesuffix(b"\r") for line in lines]
    texts = [line.decode("utf-8", "replace") for line in lines]
    return texts, sum(text.encode() != line for text, line in zip(texts, lines, strict=True))


def any_bytes(examples: int) -> settings:
    """Settings of hypothesis for the tests below: so many texts, the same ones each time."""
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


TEXT_OF_ANY_BYTES = given(
    lines=st.lists(LINE, max_size=12),
    end=st.sampled_from([b"\n", b"\r\n"]),
    ended=st.booleans(),
    mark=st.booleans(),
    options=OPTIONS,
    from_file=st.booleans(),
    as_json=st.booleans(),
)


@any_bytes(30)
@TEXT_OF_ANY_BYTES
def test_any_bytes_are_translated_line_for_line(
    tiny_run: Path, monkeypatch: pytest.MonkeyPatch, **drawn: Any
) -> None:
    check_any_bytes(tiny_run, monkeypatch, **drawn)


@pytest.mark.slow
@any_bytes(300)
@TEXT_OF_ANY_BYTES
def test_more_bytes_are_translated_line_for_line(
    tiny_run: Path, monkeypatch: pytest.MonkeyPatch, **drawn: Any
) -> None:
    check_any_bytes(tiny_run, monkeypatch, **drawn)


def check_any_bytes(
    tiny_run: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    lines: list[bytes],
    end: bytes,
    ended: bool,
    mark: bool,
    options: list[str],
    from_file: bool,
    as_json: bool,
) -> None:
    monkeypatch.setattr(windows, "WINDOW_LINES", 5)
    monkeypatch.setattr(document, "WINDOW_PARAGRAPHS", 5)
    data = b"\xef\xbb\xbf" * mark + end.join(lines) + end * (ended and bool(lines))
    texts, broken = read(data)
    rows = translated(tiny_run, data, options, from_file, broken)
    assert len(rows) == len(texts)
    for text, row in zip(texts, rows, strict=True):
        assert "\r" not in row
        assert row.strip("\t") == "" or text.strip()
    if "--alignments" in options or not as_json:
        return
    records = list(map(json.loads, translated(tiny_run, data, [*options, "--json"], True, broken)))
    assert [record["source"] for record in records] == texts
    assert [record["translations"][0]["text"] for record in records] == rows


def translated(
    run: Path, data: bytes, options: list[str], from_file: bool, broken: int
) -> list[str]:
    """The lines that the command puts out, split on line feeds alone."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "in"
        file.write_bytes(data)
        arguments = ["translate", "-m", run, *options, *([file] if from_file else [])]
        result = invoke(*arguments, text=None if from_file else data)
    assert result.exit_code == 0 and not result.exception, (result.exception, result.stderr)
    warnings = result.stderr.replace("warning: " + EMPTY.format(file), "").count("warning: ")
    assert warnings == result.stderr.count("not valid UTF-8") == broken
    *rows, rest = result.stdout_bytes.decode("utf-8").split("\n")
    assert rest == ""
    return rows


@pytest.fixture
def nmt(tiny_run: Path, tmp_path: Path, environment: dict[str, str]) -> Nmt:
    """Runs a line of bash in which NMT is `nmt translate`, as a process of its own."""
    write_lines(tmp_path / "in", ["a dog"] * 3)
    write_lines(tmp_path / "many", ["a dog"] * 8_000)

    def run(line: str, text: bytes = b"", **more: str) -> subprocess.CompletedProcess[bytes]:
        command = f"{sys.executable} -m nmt translate -m {tiny_run}"
        result = subprocess.run(
            ["bash", "-c", line.replace("NMT", command)],
            input=text,
            cwd=tmp_path,
            env=environment | more,
            capture_output=True,
            timeout=120,
        )
        assert b"Traceback" not in result.stderr, result.stderr.decode()
        assert b"Exception ignored" not in result.stderr, result.stderr.decode()
        return result

    return run


@pytest.mark.parametrize(
    ("rest", "code", "sentence"),
    [
        ("NMT <&-", 2, "nmt: stdin is closed; give a FILE or pipe text in"),
        ("NMT 0>there", 1, "nmt: Bad file descriptor"),
        ("NMT in > /dev/full", 1, "nmt: No space left on device"),
        ("NMT in -o /dev/full", 1, "nmt: /dev/full: cannot be written: No space left on device"),
        ("NMT in >&-", 2, "nmt: stdout is closed; give -o FILE"),
        ("cat in | NMT", 0, ""),
        ("NMT in <&- 2>&- -o out; cat out", 0, ""),
        ("printf 'a\n\377\nb\n' | NMT 2>&-", 0, ""),  # the warning stays out of the output
    ],
)
def test_what_cannot_be_read_or_written_is_one_sentence_and_other_closed_ends_do_no_harm(
    nmt: Nmt, rest: str, code: int, sentence: str
) -> None:
    result = nmt(rest)
    assert (result.returncode, result.stdout.count(b"\n")) == (code, 0 if code else 3)
    assert b"warning" not in result.stdout
    assert result.stderr.decode().startswith(sentence)
    assert result.stderr.count(b"\n") == bool(sentence)


@pytest.mark.parametrize("options", ["--workers 1", "--workers 2"])
def test_a_reader_that_has_enough_ends_it_quietly(nmt: Nmt, options: str) -> None:
    result = nmt(f"NMT many {options} | head -2; exit ${{PIPESTATUS[0]}}")
    assert (result.stdout.count(b"\n"), result.returncode, result.stderr) == (2, 1, b"")


def test_the_language_of_the_machine_changes_nothing(tiny_run: Path, nmt: Nmt) -> None:
    text = "ıİ 😀\n\xff".encode() + b"\xff\n"
    expected = invoke("translate", "-m", tiny_run, text=text)
    found = nmt("NMT", text, LC_ALL="C", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert found.returncode == 0
    assert (found.stdout, found.stderr) == (expected.stdout_bytes, expected.stderr_bytes)


LONG = {
    "letters": b"a",
    "words": b"a dog ",
    "sentences": b"A dog. ",
    "full stops": b".",
    "joined": "👩‍".encode(),
    "NUL": b"\x00",
    "no UTF-8": b"a\xff",
    "right to left": "\u202eש".encode(),
}
"""what each of the long lines repeats"""


@pytest.mark.parametrize("size", [100_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_lines_of_a_megabyte_are_cut_and_named_and_cost_the_others_nothing(
    tiny_run: Path, size: int
) -> None:
    """A tenth of that in the quick test, which is far more than is translated of a line."""
    longs = [part * (size // len(part)) for part in LONG.values()]
    lines = [line for long in longs for line in (b"a dog", long)]
    found = invoke("translate", "-m", tiny_run, "--beam-size", 1, text=b"\n".join(lines))
    assert found.exit_code == 0
    rows = found.stdout_bytes.split(b"\n")
    assert rows.pop() == b"" and len(rows) == len(lines)
    (alone,) = lines_of("translate", "-m", tiny_run, "--beam-size", 1, text="a dog")
    assert set(rows[::2]) == {alone.encode()}
    warnings = found.stderr.splitlines()
    named = [int(warning.split()[2]) for warning in warnings if "are translated" in warning]
    assert sorted(named) == list(range(2, len(lines) + 1, 2))


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize(
    ("long", "options", "warning"),
    [
        ("A small dog sleeps. " * 500, ["--document"], ""),
        ("a" * 10_000, ["--document"], "line 7 has a sentence of 1000"),
        ("A small dog sleeps. " * 500, [], "line 7 has 1000"),
    ],
)
def test_a_line_of_ten_thousand_tokens_costs_the_others_nothing(
    tiny_run: Path, long: str, options: list[str], warning: str, workers: str
) -> None:
    # in fp32 a line does not depend on the lines beside it
    command = ("translate", "-m", tiny_run, "--beam-size", 1, "--precision", "fp32", *options)
    others = [f"a dog {n}." if n % 5 else "" for n in range(12)]
    text = "\n".join([*others[:6], long, *others[6:]])
    result = invoke(*command, "--workers", workers, text=text)
    rows = result.stdout_bytes.decode().split("\n")[:-1]
    translation = rows.pop(6)
    assert rows == lines_of(*command, "--workers", 1, text="\n".join(others))
    assert result.stderr.count("warning") == bool(warning) and warning in result.stderr
    (alone,) = lines_of(*command, text="A small dog sleeps.")
    # with the white space at the end of the line
    assert translation == f"{alone} " * 500 or warning
