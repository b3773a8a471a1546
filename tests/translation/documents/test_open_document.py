"""OpenDocument: paragraphs and notes are translated, fields stay, the language is the target's."""

from io import BytesIO
from zipfile import ZipFile

import pytest

from nmt.translation.documents.document import LanguagePair, ReadingOptions
from nmt.translation.documents.formats import read_document, recognise_format
from nmt.translation.documents.translate import translate_document
from tests.reversing_translator import uppercase

URN = "urn:oasis:names:tc:opendocument:xmlns"
START = (
    f'<office:c xmlns:office="{URN}:office:1.0" xmlns:text="{URN}:text:1.0" '
    f'xmlns:fo="{URN}:xsl-fo-compatible:1.0">'
)


def translated(body: str) -> str:
    content = BytesIO()
    with ZipFile(content, "w") as file:
        file.writestr("mimetype", "application/vnd.oasis.opendocument.text")
        file.writestr("content.xml", f"{START}{body}</office:c>")
    assert recognise_format("a.bin", content.getvalue()[:4096]) == "opendocument"
    document = read_document(
        content.getvalue(), "a.odt", "opendocument", ReadingOptions(LanguagePair("en", "pt_BR"))
    )
    with ZipFile(BytesIO(translate_document(document, uppercase))) as file:
        found = file.read("content.xml").decode()
    return found.removeprefix(START).removesuffix("</office:c>")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<text:p>a dog</text:p>", "<text:p>A DOG</text:p>"),
        (
            "<text:h>a <text:span>b</text:span> c</text:h>",
            "<text:h>A <text:span>B</text:span> C</text:h>",
        ),
        ("<text:p>a<text:line-break/>b</text:p>", "<text:p>A<text:line-break/>B</text:p>"),
        ("<text:p>a<text:s/>b</text:p>", "<text:p>A B</text:p>"),
        ('<text:p>a<text:s text:c="1"/>b</text:p>', "<text:p>A B</text:p>"),
        ("<text:p>a <text:s/>b</text:p>", "<text:p>A <text:s/>B</text:p>"),
        ('<text:p>a<text:s text:c="5"/>b</text:p>', '<text:p>A<text:s text:c="5"/>B</text:p>'),
        ('<text:p>a <text:s text:c="5"/>b</text:p>', '<text:p>A <text:s text:c="5"/>B</text:p>'),
        ("<text:p>a <text:s/><text:s/>b</text:p>", "<text:p>A <text:s/><text:s/>B</text:p>"),
        ("<text:p>a<text:s/><text:s/>b</text:p>", "<text:p>A<text:s/><text:s/>B</text:p>"),
        (
            "<text:p>page <text:page-number>one</text:page-number> b</text:p>",
            "<text:p>PAGE <text:page-number>one</text:page-number> B</text:p>",
        ),
        (
            "<text:p>a<text:note><text:note-citation>1</text:note-citation><text:note-body>"
            "<text:p>in it</text:p></text:note-body></text:note> b</text:p>",
            "<text:p>A<text:note><text:note-citation>1</text:note-citation><text:note-body>"
            "<text:p>IN IT</text:p></text:note-body></text:note> B</text:p>",
        ),
        (
            '<x fo:language="en" fo:country="US"/><text:p/>',
            '<x fo:language="pt" fo:country="BR"/><text:p/>',
        ),
    ],
)
def test_paragraphs_are_translated(body: str, expected: str) -> None:
    assert translated(body) == expected
