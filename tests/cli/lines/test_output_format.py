"""The name of an output says the format that is written, or nothing about it."""

from pathlib import Path

import pytest

from nmt.cli.lines.found_files import find_files
from nmt.cli.lines.output_format import check_output_format
from nmt.errors import ConfigError


@pytest.mark.parametrize(
    ("file", "output", "file_format", "proposed"),
    [
        ("letter.docx", "letter.odt", "office", "letter.docx"),
        ("letter.docx", "letter.xlsx", "office", "letter.docx"),
        ("letter.docx", "letter.doc", "office", "letter.docx"),
        ("page.md", "page.docx", "markdown", "page.md"),
        ("film.srt", "film.vtt", "subtitles", "film.srt"),
        ("page.html.gz", "out.md.gz", "html", "out.html.gz"),
        (None, "out.csv", "json", "out.json"),
        ("a.pdf", "out.PDF", "pdf", "out.html"),
        ("a.pdf", "out.docx", "pdf", "out.html"),
        ("project.xliff", "out.xlf", "xliff", ""),
        ("letter.docx", "LETTER.DOCX", "office", ""),
        ("letter.docx.gz", "letter.docx.xz", "office", ""),
        ("letter.docx", "letter", "office", ""),
        ("letter.docx", "letter.new", "office", ""),
        ("letter", "letter.docx", "office", ""),
        (None, "out.xlsx", "office", ""),
        ("app.pot", "de.po", "po", ""),
        ("page.htm", "page.html", "html", ""),
        ("page.tmpl", "page.tmpl", "html", ""),
        ("a.pdf", "out.html", "pdf", ""),
        ("values/strings.xml", "de.xml", "android", ""),
        ("letter.docx", None, "office", ""),
    ],
)
def test_the_suffix_of_an_output_is_that_of_its_format(
    file: str | None, output: str | None, file_format: str, proposed: str
) -> None:
    source = Path(file) if file else None
    name = Path(output) if output else None
    if not proposed:
        check_output_format(source, name, file_format)
        return
    with pytest.raises(ConfigError, match=rf"{output}.*; say -o {proposed}$"):
        check_output_format(source, name, file_format)


@pytest.mark.parametrize("output", [None, Path("-")])
def test_a_binary_file_does_not_go_to_a_terminal(
    monkeypatch: pytest.MonkeyPatch, output: Path | None
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    with pytest.raises(ConfigError, match=r"^a.docx: .* is not written to a terminal; give -o F"):
        check_output_format(Path("a.docx"), output, "office")
    check_output_format(Path("a.html"), output, "html")


def test_a_pdf_becomes_a_page_in_a_folder(tmp_path: Path) -> None:
    source = tmp_path / "a.pdf"
    source.write_bytes(b"%PDF-1.4")
    [found] = find_files([source], tmp_path / "out", None)
    assert (found.format, found.output.name) == ("pdf", "a.html")
