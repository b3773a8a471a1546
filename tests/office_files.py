"""Files of Word and other programs of Office, as small as they can be."""

from io import BytesIO
from zipfile import ZipFile

from nmt.translation.documents.document import LanguagePair, ReadingOptions
from nmt.translation.documents.formats import read_document
from nmt.translation.documents.translate import TranslateTexts, translate_document
from tests.reversing_translator import uppercase

MAIN = "application/vnd.openxmlformats-officedocument"
W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
SHEET = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
TYPES = 'xmlns="http://schemas.openxmlformats.org/package/2006/content-types"'
RELATIONS = 'xmlns="http://schemas.openxmlformats.org/package/2006/relationships"'


def packed(
    parts: dict[str, tuple[str, str]], others: dict[str, str | bytes] | None = None
) -> bytes:
    """A file with these parts: {name: (content type, content)}, and others without a type."""
    types = "".join(f'<Override PartName="/{n}" ContentType="{t}"/>' for n, (t, _) in parts.items())
    content = BytesIO()
    with ZipFile(content, "w") as file:
        file.writestr("[Content_Types].xml", f"<Types {TYPES}>{types}</Types>")
        for name, (_, text) in parts.items():
            file.writestr(name, text)
        for name, other in (others or {}).items():
            file.writestr(name, other)
        file.writestr("media/image.png", b"\x89PNG\0")
    return content.getvalue()


def word_file(body: str) -> bytes:
    text = f"<w:document {W}><w:body>{body}</w:body></w:document>"
    return packed({"word/document.xml": (f"{MAIN}.wordprocessingml.document.main+xml", text)})


def relations(**targets: str) -> str:
    """The relations of a part: kind and target of each."""
    inside = "".join(f'<Relationship Type="x/{k}" Target="{t}"/>' for k, t in targets.items())
    return f"<Relationships {RELATIONS}>{inside}</Relationships>"


def translated_parts(
    content: bytes,
    languages: LanguagePair | None = None,
    translate: TranslateTexts = uppercase,
    format: str = "office",
) -> dict[str, str]:
    """The parts of a file after a translation, by their names."""
    options = ReadingOptions(languages or LanguagePair("en", "de"))
    document = read_document(content, "a.docx", format, options)
    with ZipFile(BytesIO(translate_document(document, translate))) as file:
        assert file.testzip() is None
        return {name: file.read(name).decode("utf-8", "replace") for name in file.namelist()}
