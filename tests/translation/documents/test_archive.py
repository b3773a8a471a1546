"""Archives: what is damaged, encrypted, too large or not of a document is refused by a sentence."""

import stat
import struct
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import pytest

import nmt.translation.documents.archive as archive_module
from nmt.errors import DataError
from nmt.translation.documents.archive import Archive


def packed(*parts: tuple[str | ZipInfo, bytes], method: int = ZIP_STORED) -> bytes:
    content = BytesIO()
    with ZipFile(content, "w", method) as file:
        for name, text in parts:
            file.writestr(name, text)
    return content.getvalue()


def link() -> ZipInfo:
    found = ZipInfo("word/a.xml")
    found.external_attr = (stat.S_IFLNK | 0o777) << 16
    return found


def encrypted() -> bytes:
    content = bytearray(packed(("a.xml", b"<a/>")))
    directory = content.index(b"PK\x01\x02")
    content[directory + 8] |= 1
    return bytes(content)


def twice() -> bytes:
    return packed(("a.xml", b"<a/>"), ("b.xml", b"<b/>")).replace(b"b.xml", b"a.xml")


GOOD = packed(("a.xml", b"<a>text</a>"))
OLD = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
AGAIN = "save it again with the program that made it"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "a.docx: is no document of Office, it begins with ''; save it as docx"),
        (b"Dear Sir or Madam, thanks", "it begins with 'Dear Sir or Madam, t'; save it as docx"),
        (OLD, "a.docx: is in a format of Office 2003 or before, such as doc, xls or ppt; save"),
        (OLD + "EncryptedPackage".encode("utf-16-le"), "a.docx: is encrypted; save it without a"),
        (b"{\\rtf1 text}", "a.docx: is in the format RTF; save it as docx"),
        (b"PK\x03\x04 broken", "a.docx: is damaged (File is not a zip file); " + AGAIN),
        (GOOD[:-30], "a.docx: is damaged (File is not a zip file); " + AGAIN),
        (GOOD.replace(b"text", b"tent"), "a.docx: its part a.xml is damaged (Bad CRC-32"),
        (encrypted(), "a.docx: is encrypted; save it without a password"),
        (twice(), "a.docx: has 2 parts with the name a.xml; " + AGAIN),
        (packed(("../../a.xml", b"")), "a.docx: its part ../../a.xml is outside of the document"),
        (packed(("/etc/passwd", b"")), "a.docx: its part /etc/passwd is outside of the document"),
        (packed(("C:\\a.xml", b"")), "a.docx: its part C:\\a.xml is outside of the document"),
        (packed(("word\\..\\a", b"")), "a.docx: its part word\\..\\a is outside of the document"),
        (packed((link(), b"/etc/passwd")), "a.docx: its part word/a.xml is a symbolic link"),
        (
            packed(("a.xml", b" " * (1 << 26)), method=ZIP_DEFLATED),
            "bytes become 67,108,864 unpacked; no document has over 250 times as many",
        ),
    ],
)
def test_what_is_no_archive_of_a_document_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(DataError) as error:
        Archive(content, "a.docx")
    assert message in str(error.value) and str(error.value).startswith("a.docx: ")


def test_sizes_that_the_table_tells_are_refused_before_anything_is_unpacked() -> None:
    content = bytearray(GOOD)
    directory = content.index(b"PK\x01\x02")
    content[directory + 24 : directory + 28] = struct.pack("<I", 1_100_000_000)
    with pytest.raises(DataError, match="has 1,100,000,000 bytes unpacked, at most 1,073,741,824"):
        Archive(bytes(content), "a.docx")


def test_large_parts_and_many_tags_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    archive = Archive(packed(("a.xml", b"<a/>" * 10), ("b.xml", b"<a/>" * 10)), "a.docx")
    monkeypatch.setattr(archive_module, "MAX_TAGS", 15)
    archive.read_text("a.xml")
    with pytest.raises(DataError, match="has over 15 tags up to its part b.xml"):
        archive.read_text("b.xml")
    monkeypatch.setattr(archive_module, "MAX_READ_BYTES", 15)
    with pytest.raises(DataError, match="its part a.xml has 40 bytes unpacked, at most 15"):
        archive.read("a.xml")
    with pytest.raises(DataError, match=r"is no complete document, c\.xml is missing in it"):
        archive.read("c.xml")


def test_changed_parts_take_the_place_of_the_old_ones() -> None:
    first = ZipInfo("mimetype", (2001, 2, 3, 4, 5, 6))
    archive = Archive(packed((first, b"x"), ("b.xml", b"b"), ("c.xml", b"c")), "a.docx")
    archive.change("b.xml", b"changed")
    archive.remove("c.xml")
    for _ in range(2):  # it may be written again
        with ZipFile(BytesIO(archive.write())) as file:
            assert file.namelist() == ["mimetype", "b.xml"]
            assert file.infolist()[0].date_time == (2001, 2, 3, 4, 5, 6)
            assert file.infolist()[0].compress_type == ZIP_STORED
            assert file.read("b.xml") == b"changed"
