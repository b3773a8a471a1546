"""Several files and folders become one folder of translations; nothing else is touched."""

import itertools
import json
import os
import resource
import signal
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from typer.testing import Result

from nmt.cli.lines.output_folder import LIST, FolderList
from nmt.cli.options.model import make_translator
from nmt.errors import ConfigError, DataError, NmtError, StoppedBySignal
from nmt.translation.documents import translate as documents
from nmt.translation.pipeline import Pipeline
from tests.cli.commands import fail, invoke, succeed, write_lines
from tests.office_files import word_file

WORD = word_file("<w:p><w:r><w:t>a small dog</w:t></w:r></w:p>")
PAGE = "<p>a <b>cat</b></p>\n" * 5
SUBTITLES = "1\n00:00:01,000 --> 00:00:02,000\na dog\n"


class Folder:
    """A folder of documents and other files, and a command that translates it."""

    def __init__(self, run: Path, folder: Path) -> None:
        self.run, self.source, self.output = run, folder / "in", folder / "out"
        (self.source / "sub" / "deep").mkdir(parents=True)
        self.contents: dict[str, bytes] = {
            "a.docx": WORD,
            "b.srt": SUBTITLES.encode(),
            "sub/page.html": PAGE.encode(),
            "sub/deep/lines": b"a dog\n\na cat\n",
        }
        others = {"picture.png": b"\x89PNG\r\n\x1a\n\0", "sub/style.css": b"p {}", "x.bin": b"\0\1"}
        hidden = {".hidden": b"a dog\n", "~$a.docx": b"\x04Anna"}
        for name, content in {**self.contents, **others, **hidden}.items():
            (self.source / name).write_bytes(content)

    def __call__(self, *options: object, sources: Any = None) -> Result:
        files = sources or [self.source]
        command = ("translate", "-m", self.run, *files, "--output-folder", self.output)
        return invoke(*command, "--workers", 1, *options)

    def names(self) -> set[str]:
        files = (path for path in self.output.rglob("*") if path.is_file())
        return {str(path.relative_to(self.output)) for path in files} - {LIST}

    def alone(self, name: str) -> bytes:
        """The translation of a file by a command of its own."""
        output = self.output.with_name("alone")
        succeed("translate", "-m", self.run, self.source / name, "-o", output, "--workers", 1)
        return output.read_bytes()


@pytest.fixture
def folder(tiny_run: Path, tmp_path: Path) -> Folder:
    return Folder(tiny_run, tmp_path)


def test_a_folder_keeps_its_tree_and_the_models_are_loaded_once(folder: Folder) -> None:
    with patch("nmt.cli.translate.make_translator", wraps=make_translator) as load:
        result = folder()
    assert (result.exit_code, load.call_count) == (0, 1)
    assert folder.names() == folder.contents.keys()
    for name in folder.contents:
        assert (folder.output / name).read_bytes() == folder.alone(name), name
        assert (folder.source / name).read_bytes() == folder.contents[name]
    left_out = [folder.source / name for name in ("picture.png", "x.bin", "sub/style.css")]
    said = f"left out, as neither documents nor text: 3 files ({', '.join(map(str, left_out))})\n"
    assert result.stderr == said


def test_files_and_folders_go_together_and_a_format_holds_for_all(folder: Folder) -> None:
    sources = [folder.source / "b.srt", folder.source / "sub"]
    assert folder(sources=sources).exit_code == 0
    assert folder.names() == {"b.srt", "page.html", "deep/lines"}
    assert folder("--format", "text", sources=sources).exit_code == 0
    assert folder.names() == {"b.srt", "page.html", "deep/lines", "style.css"}
    assert (folder.output / "b.srt").read_bytes().count(b"\n") == 3


def test_a_file_that_fails_is_reported_and_the_others_go_on(folder: Folder) -> None:
    (folder.source / "a.docx").write_bytes(b"PK\x03\x04")
    (folder.source / "gone.txt").symlink_to("nowhere")
    result = folder()
    assert isinstance(result.exception, NmtError) and result.exception.exit_code == 1
    names = [folder.source / name for name in ("a.docx", "gone.txt")]
    listed = ", ".join(map(str, names))
    assert f"2 files ({listed}) of 5 not translated, for the reasons above" in str(result.exception)
    assert f"nmt: {names[0]}: is damaged" in result.stderr
    assert f"nmt: {names[1]}: cannot be read: No such file or directory" in result.stderr
    assert folder.names() == folder.contents.keys() - {"a.docx"}


def test_resume_passes_over_what_is_complete_and_unchanged(folder: Folder) -> None:
    assert folder().exit_code == 0
    for name in folder.contents:
        (folder.output / name).write_text("edited")
    (folder.source / "sub" / "page.html").write_text(PAGE * 2)
    (folder.source / "new.txt").write_text("a dog\n")
    (folder.output / "b.srt").unlink()
    assert folder("--resume").exit_code == 0
    kept = {
        name for name in folder.names() if (folder.output / name).read_text("latin-1") == "edited"
    }
    assert kept == {"a.docx", "sub/deep/lines"}
    assert folder.names() == {*folder.contents, "new.txt"}
    error = folder("--resume", "--beam-size", 3).exception
    assert f"{folder.output}: begun with beam_size 2, and now it is 3" in str(error)
    assert folder("--beam-size", 3).exit_code == 0
    assert not any((folder.output / name).read_bytes() == b"edited" for name in folder.names())


def test_an_interrupted_folder_is_continued_inside_a_document(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "WINDOW_LINES", 2)
    assert folder().exit_code == 0
    expected = {name: (folder.output / name).read_bytes() for name in folder.names()}
    calls = itertools.count(1)
    translate_batch = Pipeline.translate_batch

    def translated(pipeline: Pipeline, lines: Any) -> Any:
        if next(calls) > 3:
            raise StoppedBySignal("stopped by SIGINT", signal.SIGINT)
        return translate_batch(pipeline, lines)

    with patch.object(Pipeline, "translate_batch", translated):
        result = folder()
    assert isinstance(result.exception, StoppedBySignal)
    part = folder.output / "sub" / "page.html.part"
    assert f"{part} keeps the translations of 2 texts" in result.stderr
    assert "nmt: 2 of 4 files are complete; --resume passes them over" in result.stderr
    assert folder("--resume").exit_code == 0
    assert {name: (folder.output / name).read_bytes() for name in folder.names()} == expected


def test_a_list_that_a_crash_has_cut_is_read_as_far_as_it_goes(folder: Folder) -> None:
    assert folder().exit_code == 0
    rows = (folder.output / LIST).read_bytes()
    (folder.output / LIST).write_bytes(rows[:-20])
    (folder.output / "a.docx").write_text("edited")
    assert folder("--resume").exit_code == 0
    assert (folder.output / "a.docx").read_text() == "edited"
    last = json.loads((folder.output / LIST).read_bytes().splitlines()[-1])
    assert last["complete"] == "sub/page.html" or last["complete"] == "sub/deep/lines"


def test_no_input_is_ever_replaced(folder: Folder, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in folder.source.rglob("*") if path.is_file()}

    def refused(message: str, *options: object, sources: Any = None) -> None:
        error = folder(*options, sources=sources).exception
        assert isinstance(error, ConfigError) and message in str(error), error
        assert {path: path.read_bytes() for path in before} == before

    same = "are the same file, which would be replaced; choose another --output-folder"
    folder.output.mkdir()
    (folder.output / "a.docx").symlink_to(folder.source / "a.docx")
    refused(same)
    (folder.output / "a.docx").unlink()
    os.link(folder.source / "b.srt", folder.output / "a.docx.part")
    refused(same)
    (folder.output / "a.docx.part").unlink()
    terms = write_lines(folder.output / "b.srt", ["a dog\tHund"])
    refused(same, "--glossary", terms)
    terms.unlink()
    refused("would both become", sources=[folder.source, folder.source / "sub/../a.docx"])
    (folder.source / "a.docx.json").write_text('{"a": "a dog"}')
    refused("would be written twice", "--json")
    (folder.source / "a.docx.json").unlink()
    folder.output.rmdir()
    folder.output.symlink_to(folder.source / "sub")
    refused(f"{folder.output}: is in {folder.source}, where its files would be translated again")


def test_a_full_disk_and_a_read_only_folder_end_the_command_in_one_sentence(
    folder: Folder, tmp_path: Path
) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    (folder.source / "0.txt").write_text("a small dog\n" * 900)
    resource.setrlimit(resource.RLIMIT_FSIZE, (9000, limits[1]))
    try:
        result = folder()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert isinstance(result.exception, DataError)
    assert str(result.exception).endswith("0.txt: cannot be written: File too large")
    assert folder.names() <= {"0.txt.part", "0.txt.part.json"}
    with patch("pathlib.Path.mkdir", side_effect=PermissionError(13, "Permission denied")):
        error = folder().exception
    assert str(error) == f"{folder.output}: cannot be written: Permission denied"


def test_a_second_command_waits_for_no_folder(folder: Folder) -> None:
    held = FolderList(folder.output, {}, resume=False)
    try:
        message = fail(
            DataError,
            "translate",
            "-m",
            folder.run,
            folder.source,
            "--output-folder",
            folder.output,
        )
    finally:
        held.close()
    assert "another process writes it" in message


def test_messages_about_a_file_name_the_options(folder: Folder) -> None:
    table = folder.source / "table.csv"
    table.write_text("id,text\n1,a dog\n")
    result = folder(sources=[table, folder.source / "b.srt"])
    assert "with --column, by the name" in result.stderr and "`" not in result.stderr
    assert folder.names() == {"b.srt"}


def test_keys_and_columns_of_a_folder_are_independent(folder: Folder) -> None:
    values = {"title": "a dog", "id": "x_1", "text": "a cat"}
    (folder.source / "a.json").write_text(json.dumps(values))
    (folder.source / "b.csv").write_text("id,text,title\nx_1,a dog,a cat\n")
    assert folder("--column", "text").exit_code == 0
    found = json.loads((folder.output / "a.json").read_text())
    assert [key for key in values if found[key] != values[key]] == ["title", "text"]
    row = (folder.output / "b.csv").read_text().splitlines()[1].split(",")
    assert row[0] == "x_1" and row[1] != "a dog" and row[2] == "a cat"
    assert folder("--column", "title", "--key", "title").exit_code == 0
    found = json.loads((folder.output / "a.json").read_text())
    assert [key for key in values if found[key] != values[key]] == ["title"]


def test_a_file_whose_output_is_taken_fails_alone(folder: Folder) -> None:
    (folder.source / "sub" / "page.pdf").write_bytes(b"%PDF-1.4")
    result = folder()
    assert result.exit_code == 1 and folder.names() == folder.contents.keys()
    names = [folder.source / "sub" / name for name in ("page.html", "page.pdf")]
    becomes = folder.output / "sub" / "page.html"
    assert f"nmt: {names[0]} and {names[1]} would both become {becomes}; tra" in result.stderr
    assert str(result.exception).startswith(f"1 file ({names[1]}) of 5 not translated")
    assert (folder.output / "sub/page.html").read_bytes() == folder.alone("sub/page.html")
