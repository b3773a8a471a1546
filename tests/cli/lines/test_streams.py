"""What a command reads and writes: an output never replaces an input."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.cli.lines.streams import check_output_is_no_input
from nmt.errors import ConfigError
from tests.cli.commands import fail, succeed, write_lines


def by_symlink(path: Path) -> Path:
    link = path.with_name("link")
    link.symlink_to(path)
    return link


def by_hard_link(path: Path) -> Path:
    link = path.with_name("hard")
    os.link(path, link)
    return link


def by_another_spelling(path: Path) -> Path:
    return path.parent / ".." / path.parent.name / path.name


@pytest.mark.parametrize(
    "name_of", [lambda path: path, by_symlink, by_hard_link, by_another_spelling]
)
def test_every_name_of_an_input_is_refused_as_output(
    tmp_path: Path, name_of: Callable[[Path], Path]
) -> None:
    text = write_lines(tmp_path / "text", ["a dog"])
    with pytest.raises(ConfigError, match="are the same file"):
        check_output_is_no_input(name_of(text), [None, text])


def test_other_files_devices_and_new_files_are_allowed(tmp_path: Path) -> None:
    text, other = (write_lines(tmp_path / name, ["a dog"]) for name in ("text", "other"))
    for output in (other, tmp_path / "new", Path("/dev/null"), None, Path("-")):
        check_output_is_no_input(output, [text, tmp_path / "missing", Path("/dev/null"), None])


@pytest.mark.parametrize("options", [[], ["--json"], ["--n-best", 2], ["--resume"], ["--document"]])
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


@pytest.mark.parametrize("output", ["source", "reference"])
def test_score_keeps_every_file_that_it_reads(tiny_run: Path, tmp_path: Path, output: str) -> None:
    source = write_lines(tmp_path / "source", ["a dog"])
    reference = write_lines(tmp_path / "reference", ["ein Hund"])
    files = ("--source", source, "--reference", reference)
    fail(ConfigError, "score", "-m", tiny_run, *files, "-o", tmp_path / output)
    assert (source.read_text(), reference.read_text()) == ("a dog\n", "ein Hund\n")
    assert succeed("score", "-m", tiny_run, *files, "-o", tmp_path / "new") == ""


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
