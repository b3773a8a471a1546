"""The text of a PDF becomes a page: paragraphs are joined, larger lines are headings."""

import re
from collections.abc import Sequence
from html import unescape

import pytest

from nmt.errors import DataError
from nmt.translation.documents.document import LanguagePair, ReadingOptions
from nmt.translation.documents.formats import recognise_format
from nmt.translation.documents.pdf import read_pdf
from nmt.translation.documents.translate import translate_document
from tests.reversing_translator import copying, uppercase

pytest.importorskip("pypdfium2")
Placed = tuple[str, float, float, float]
"""text, size, distances from the left and from the bottom of the page, in points"""


def escaped(text: str) -> str:
    return re.sub(r"([()\\])", r"\\\1", text)


def pdf(*pages: Sequence[Placed], shape: str = "") -> bytes:
    """A PDF whose pages have these texts in Helvetica, and a shape that is no text."""
    count = len(pages)
    kids = " ".join(f"{4 + 2 * i} 0 R" for i in range(count))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {count} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for i, page in enumerate(pages):
        texts = [
            f"BT /F1 {size} Tf {x} {y} Td ({escaped(text)}) Tj ET" for text, size, x, y in page
        ]
        stream = "\n".join([*texts, shape])
        objects.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 400 600] "
            f"/Resources << /Font << /F1 3 0 R >> >> /Contents {5 + 2 * i} 0 R >>"
        )
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    written, places = "%PDF-1.4\n", []
    for number, content in enumerate(objects, start=1):
        places.append(len(written))
        written += f"{number} 0 obj\n{content}\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(objects) + 1
    end = f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n<< /Size {size} /Root 1 0 R >>\n"
    return f"{written}{end}startxref\n{len(written)}\n%%EOF\n".encode("latin-1")


def lines(*texts: str, size: float = 12, top: float = 500, left: float = 50) -> list[Placed]:
    """Lines below each other; a line without text is a gap."""
    return [(text, size, left, top - 1.2 * size * i) for i, text in enumerate(texts) if text]


def body(content: bytes) -> list[str]:
    document = read_pdf(content, "a.pdf", ReadingOptions())
    page = translate_document(document, copying).decode()
    return [unescape(line) for line in page.split("<body>\n")[1].split("\n</body>")[0].split("\n")]


@pytest.mark.parametrize(
    ("pages", "expected"),
    [
        (
            [lines("One line of the text that goes", "on here, and ends.", "", "Another one.")],
            ["<p>One line of the text that goes on here, and ends.</p>", "<p>Another one.</p>"],
        ),
        (
            [
                lines("A title", size=24, top=560)
                + lines("Part", size=16)
                + lines("a & b or a longer text", top=450)
            ],
            ["<h1>A title</h1>", "<h2>Part</h2>", "<p>a & b or a longer text</p>"],
        ),
        ([lines("This is a trans-", "lation of it.")], ["<p>This is a translation of it.</p>"]),
        (
            [lines("The well-known one is well-", "known to us in Nord-", "Amerika.")],
            ["<p>The well-known one is well-known to us in Nord-Amerika.</p>"],
        ),
        (
            [
                lines(
                    "- one of the list is long so", "it goes on", "1. two of it is long too", "b) x"
                )
            ],
            [
                "<p>- one of the list is long so it goes on</p>",
                "<p>1. two of it is long too</p>",
                "<p>b) x</p>",
            ],
        ),
        (
            [lines("Short.", "A line that is much longer than the one above."), lines("and this")],
            [
                "<p>Short.</p>",
                "<p>A line that is much longer than the one above.</p>",
                "<p>and this</p>",
            ],
        ),
        (
            [lines("The page ends in a sentence which"), lines("goes on at the next.")],
            ["<p>The page ends in a sentence which goes on at the next.</p>"],
        ),
        # columns
        (
            [
                lines("Left is the first", "column, and it", "ends so.")
                + lines("Right is a second", "one of them.", left=220)
            ],
            [
                "<p>Left is the first column, and it ends so.</p>",
                "<p>Right is a second one of them.</p>",
            ],
        ),
    ],
)
def test_lines_become_paragraphs_and_headings(
    pages: list[list[Placed]], expected: list[str]
) -> None:
    assert body(pdf(*pages)) == expected


def test_headers_and_page_numbers_are_left_out_if_all_pages_have_them() -> None:
    pages = [
        lines("The book", top=580) + lines(f"Text {text}.") + lines(f"Page {i}", top=20)
        for i, text in enumerate(["a", "b", "c"], start=1)
    ]
    assert body(pdf(*pages)) == ["<p>Text a.</p>", "<p>Text b.</p>", "<p>Text c.</p>"]
    assert len(body(pdf(*pages[:2]))) == 6  # two pages are not certain
    same = [lines("Only this.")] * 3
    assert len(body(pdf(*same))) == 3


def test_the_translation_is_a_page_in_the_target_language(
    capsys: pytest.CaptureFixture[str],
) -> None:
    content = pdf(lines("a dog"))
    assert recognise_format("x", content) == "pdf"
    document = read_pdf(content, "a.pdf", ReadingOptions(LanguagePair("en", "ar")))
    page = translate_document(document, uppercase).decode()
    assert page.startswith(
        '<!DOCTYPE html>\n<html lang="ar" dir="rtl">\n<head>\n<meta charset="utf-8">'
    )
    assert "<title>A DOG</title>" in page and "<p>A DOG</p>" in page
    assert "a.pdf: the translation of a PDF is a page of HTML" in capsys.readouterr().err


def test_pages_without_text_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    read_pdf(pdf(lines("a"), [], shape="0 0 100 100 re f"), "a.pdf", ReadingOptions())
    assert "a.pdf: has no text on some pages, which are left out: 2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (pdf([], shape="0 0 100 100 re f"), "a.pdf: has no text, only images; .*OCRmyPDF"),
        (b"%PDF-1.4\nabc", "a.pdf: is damaged"),
    ],
)
def test_what_has_no_text_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_pdf(content, "a.pdf", ReadingOptions())
