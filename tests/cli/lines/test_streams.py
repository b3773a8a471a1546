"""What a command reads and writes: complete files, and an output that never replaces an input."""

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from nmt.cli.lines import streams
from nmt.cli.lines.streams import check_output, count_lines, open_lines, open_output
from nmt.errors import ConfigError, DataError
from tests.cli.commands import fail, succeed, write_lines


def test_every_name_of_an_input_is_refused_as_output(tmp_path: Path) -> None:
    text, other = (write_lines(tmp_path / name, ["a dog"]) for name in ("text", "other"))
    (tmp_path / "link").symlink_to(text)
    (tmp_path / "hard").hardlink_to(text)
    for name in ("text", "link", "hard", f"../{tmp_path.name}/text"):
        with pytest.raises(ConfigError, match="are the same file"):
            check_output(tmp_path / name, [None, text])
    for output in (other, tmp_path / "new", Path("/dev/null"), None, Path("-")):
        check_output(output, [text, tmp_path / "missing", Path("/dev/null"), None])


@pytest.mark.parametrize("options", [[], ["--json"], ["--resume"], ["--document"]])
@pytest.mark.parametrize("output", ["text", "text.part", "words", "terms"])
def test_translate_keeps_every_file_that_it_reads(
    tiny_run: Path, tmp_path: Path, options: list[object], output: str
) -> None:
    """Also a file under the name that the unfinished output would have."""
    text = tmp_path / ("text.part" if output == "text.part" else "text")
    write_lines(text, ["a dog", "b"])
    write_lines(tmp_path / "words", ["cat"])
    write_lines(tmp_path / "terms", ["dog\tHund"])
    target = tmp_path / output.removesuffix(".part")
    message = fail(
        ConfigError,
        *("translate", "-m", tiny_run, text, "-o", target, "--forbid-file", tmp_path / "words"),
        *("--glossary", tmp_path / "terms", *options),
    )
    assert "are the same file" in message
    assert text.read_text() == "a dog\nb\n"
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([text.name, "terms", "words"])


def test_score_keeps_every_file_that_it_reads(tiny_run: Path, tmp_path: Path) -> None:
    source = write_lines(tmp_path / "source", ["a dog"])
    reference = write_lines(tmp_path / "reference", ["ein Hund"])
    command = ("score", "-m", tiny_run, "--source", source, "--reference", reference, "-o")
    for output in (source, reference):
        fail(ConfigError, *command, output)
    assert (source.read_text(), reference.read_text()) == ("a dog\n", "ein Hund\n")
    assert succeed(*command, tmp_path / "new") == ""


def test_a_file_redirected_to_stdin_is_kept(tiny_run: Path, tmp_path: Path, project: Path) -> None:
    text = write_lines(tmp_path / "text", ["a dog"])
    with text.open("rb") as stdin:
        done = subprocess.run(
            [sys.executable, "-m", "nmt", "translate", "-m", tiny_run, "-o", text],
            cwd=project,
            stdin=stdin,
            capture_output=True,
            text=True,
        )
    assert done.returncode == 2
    assert "stdin are the same file" in done.stderr
    assert text.read_text() == "a dog\n"


@pytest.mark.parametrize(
    ("error", "expected", "message"),
    [
        (KeyboardInterrupt(), KeyboardInterrupt, None),
        (OSError(errno.ENOSPC, "No space left"), DataError, r"out: cannot be written: No space le"),
    ],
)
def test_a_failure_leaves_the_old_output_and_nothing_else(
    tmp_path: Path, error: BaseException, expected: type[BaseException], message: str | None
) -> None:
    target = write_lines(tmp_path / "out", ["old"])
    with pytest.raises(expected, match=message), open_output(target) as sink:
        sink.write(b"half a tr")
        raise error
    assert target.read_text() == "old\n"
    assert list(tmp_path.iterdir()) == [target]


def test_an_output_behind_a_link_replaces_what_the_link_names(tmp_path: Path) -> None:
    real = write_lines(tmp_path / "real", ["old"])
    link = tmp_path / "link"
    link.symlink_to(real)
    with open_output(link) as sink:
        sink.write(b"new")
    assert link.is_symlink() and real.read_text() == "new"


def test_a_closed_stdin_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(ConfigError, match="stdin is closed"), open_lines(None):
        pass


def test_lines_are_counted_only_where_that_is_free(tmp_path: Path) -> None:
    write_lines(tmp_path / "in.txt", ["a", "b"])
    assert count_lines(tmp_path / "in.txt") == 2
    assert count_lines(tmp_path / "in.txt.gz") is None
    assert count_lines(None) is None


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["plain"], ["20 of 100 pairs done, 2 min left", "40 of 100 pairs done, 2 min left"]),
        (["plain", "packed.gz"], ["20 pairs done", "40 pairs done"]),
    ],
)
def test_progress_is_a_line_every_half_minute_where_stderr_is_a_file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    files: list[str],
    expected: list[str],
) -> None:
    now = 0.0
    monkeypatch.setattr("nmt.cli.lines.streams.time.monotonic", lambda: now)
    write_lines(tmp_path / "plain", ["a"] * 100)
    (tmp_path / "packed.gz").touch()
    with streams.bar_or_log([tmp_path / name for name in files], " pairs") as shown:
        for _ in range(6):
            now += 16
            shown.update(10)
    assert capsys.readouterr().err.splitlines()[:2] == expected
