"""The output of a document: kept while it grows, continued, and described by lines of JSON."""

import gzip
import json
import os
from html import escape
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from nmt.cli.lines import streams
from nmt.cli.lines.document_file import read_bytes
from nmt.errors import ConfigError, DataError
from nmt.translation.documents import translate as documents
from nmt.translation.documents.tokens import UNWRITABLE
from tests.cli.commands import fail, interrupt, invoke, succeed

PAGE = (
    "<title>a dog</title>"
    + "".join(f"<p>a dog {n}. A cat.</p>" for n in range(7))
    + "".join(f"<p>the <b>small</b> cat {n}<br>and a dog</p>" for n in range(4))
    + "<p>a dog</p><p>2024</p>"
)
TEXTS = 12
"""without those that are there twice, or have no words"""


@pytest.fixture(autouse=True)
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "WINDOW_LINES", 3)


class Command:
    """`nmt translate` on one page, with results in one folder."""

    def __init__(self, run: Path, folder: Path) -> None:
        self.run, self.folder = run, folder
        self.input, self.output = folder / "in.html", folder / "out.html"
        self.part, self.state = folder / "out.html.part", folder / "out.html.part.json"
        self.input.write_text(PAGE)

    def __call__(self, *options: object) -> Result:
        files = (self.input, "-o", self.output)
        return invoke("translate", "-m", self.run, *files, "--workers", 1, *options)

    def interrupt(self, batches: int, *options: object) -> Result:
        """Run until so many batches are translated and one more is begun."""
        return interrupt(batches, lambda: self(*options))


@pytest.fixture
def command(tiny_run: Path, tmp_path: Path) -> Command:
    return Command(tiny_run, tmp_path)


@pytest.mark.parametrize("options", [(), ("--json",), ("--forbid", "a", "--beam-size", 3)])
def test_going_on_gives_the_bytes_of_an_uninterrupted_run(
    command: Command, options: tuple[object, ...]
) -> None:
    assert command(*options).exit_code == 0
    expected = {path.name: path.read_bytes() for path in command.folder.iterdir()}
    for batches in (0, 1, 3):
        for name in expected.keys() - {"in.html"}:
            (command.folder / name).unlink()
        said = command.interrupt(batches, *options).stderr
        assert not command.output.exists()
        assert command.part.exists() == (batches > 0)
        if batches:
            assert f"{command.part} keeps the translations of {3 * batches} texts; to c" in said
        assert command(*options, "--resume").exit_code == 0
        assert {path.name: path.read_bytes() for path in command.folder.iterdir()} == expected


def test_a_part_is_continued_only_by_its_document_and_settings(command: Command) -> None:
    command.interrupt(2)
    for options, message in [
        (("--beam-size", 3), "begun with beam_size 2, and now it is 3"),
        (("--overwrite",), "begun with overwrite False, and now it is True"),
    ]:
        error = command("--resume", *options).exception
        assert isinstance(error, DataError) and message in str(error)
    command.input.write_text(PAGE.replace("a dog 1.", "a bird."))
    error = command("--resume").exception
    assert isinstance(error, DataError) and "for 6 lines, with which this input" in str(error)
    assert not command.output.exists()


def test_a_complete_document_is_left_as_it_is(command: Command) -> None:
    command.output.write_text("done")
    said = command("--resume").stderr
    assert f"{command.output} is complete" in said and command.output.read_text() == "done"


def test_json_has_a_line_for_each_segment_beside_the_document(command: Command) -> None:
    assert command("--json").exit_code == 0
    rows = list(map(json.loads, Path(f"{command.output}.json").read_text().splitlines()))
    assert [row["number"] for row in rows] == list(range(1, len(rows) + 1))
    by_source = {row["source"]: row for row in rows}
    assert len(by_source) == TEXTS and len(rows) == TEXTS + 1
    assert [by_source[text]["tags"] for text in ("a dog", "the small cat 2 and a dog")] == [0, 2]
    for row in rows:
        (translation,) = row["translations"]
        assert translation["score"] < 0 and translation["text"]
        if not row["tags"]:
            written = escape(translation["text"].translate(UNWRITABLE), quote=False)
            assert f">{written}<" in command.output.read_text()
    plain = command.output.read_bytes()
    assert command().exit_code == 0 and command.output.read_bytes() == plain


def test_json_never_replaces_an_input(command: Command) -> None:
    terms = Path(f"{command.output}.json")
    terms.write_text("a dog\tHund\n")
    options = ("-m", command.run, command.input, "-o", command.output, "--json")
    assert "are the same file" in fail(ConfigError, "translate", *options, "--glossary", terms)


def test_segments_are_counted_on_a_terminal_alone(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert command().stderr == ""
    shown: list[tuple[str, int, int]] = []
    bar = streams.segments_bar

    def record(name: str, total: int, done: int) -> Any:
        shown.append((name, total, done))
        return bar(name, total, done)

    monkeypatch.setattr("nmt.cli.lines.file_translation.segments_bar", record)
    command.output.unlink()
    command.interrupt(2)
    assert command("--resume").exit_code == 0
    assert shown == [(str(command.input), TEXTS, 0), (str(command.input), TEXTS, 6)]


SHAPES = {
    **{kind: ["--precision", kind] for kind in ("fp32", "bf16", "int8")},
    "terms": ["--glossary", "terms.tsv"],
    "forbidden": ["--forbid", "e"],
    "protected": ["--protect-pattern", "cat [0-9]"],
    "ensemble": ["-m", "RUN"],
    "compared": ["--mbr", "chrf"],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_documents_obey_the_options_of_lines_with_any_number_of_workers(
    command: Command, monkeypatch: pytest.MonkeyPatch, shape: str
) -> None:
    monkeypatch.chdir(command.folder)
    Path("terms.tsv").write_text("cat\tMia\n")
    options = [str(command.run) if word == "RUN" else word for word in SHAPES[shape]]
    found = [
        succeed("translate", "-m", command.run, command.input, *options, "--workers", n)
        for n in (1, 2)
    ]
    assert found[0] == found[1]
    assert found[0].count("<b>") == found[0].count("<br>") == 4
    match shape:
        case "terms":
            assert found[0].count("Mia") == 11
        case "forbidden":
            assert "e" not in found[0].replace("<title>", "").replace("</title>", "")
        case "protected":
            assert all(f"cat {n}" in found[0] for n in range(4))


@pytest.mark.parametrize("name", ["a", "a.docx", "a.epub", "a.xlf", "a.csv", "a.html.gz", "a.po"])
def test_an_empty_file_has_an_empty_translation(tiny_run: Path, tmp_path: Path, name: str) -> None:
    source, output = tmp_path / name, tmp_path / f"out-{name}"
    source.write_bytes(gzip.compress(b"") if name.endswith("gz") else b"")
    result = invoke("translate", "-m", tiny_run, source, "-o", output)
    said = f"warning: {source}: is empty, and so is its translation\n"
    assert (result.exit_code, result.stderr) == (0, said)
    assert read_bytes(output) == b""
    assert {path.name for path in tmp_path.iterdir()} == {name, f"out-{name}"}


@pytest.mark.parametrize(
    ("source", "made", "seconds", "said"),
    [
        (b"a dog\n", b"x\n", 1, "is complete, so nothing is left to do (its settings are not k"),
        (b"a dog\n", b"x\n", -1, "is older than"),
        (b"a dog\n", b"", 1, "is empty, so it is made again"),
        (b"", b"", 1, "is complete, so nothing is left to do"),
    ],
)
def test_an_output_that_is_older_than_its_source_or_empty_is_not_complete(
    tiny_run: Path, tmp_path: Path, source: bytes, made: bytes, seconds: int, said: str
) -> None:
    file, output = tmp_path / "a", tmp_path / "out"
    file.write_bytes(source)
    output.write_bytes(made)
    at = file.stat().st_mtime + seconds
    os.utime(output, (at, at))
    result = invoke("translate", "-m", tiny_run, file, "-o", output, "--resume")
    assert result.exit_code == 0 and said in result.stderr
    assert (output.read_bytes() == made) == ("is complete" in said)
