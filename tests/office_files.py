"""Files of Word and other programs of Office, as small as they can be."""

from io import BytesIO
from zipfile import ZipFile

MAIN = "application/vnd.openxmlformats-officedocument"
W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def packed(parts: dict[str, tuple[str, str]]) -> bytes:
    """A file with these parts: {name: (content type, content)}."""
    types = "".join(f'<Override PartName="/{n}" ContentType="{t}"/>' for n, (t, _) in parts.items())
    content = BytesIO()
    with ZipFile(content, "w") as file:
        namespace = "http://schemas.openxmlformats.org/package/2006/content-types"
        file.writestr("[Content_Types].xml", f'<Types xmlns="{namespace}">{types}</Types>')
        for name, (_, text) in parts.items():
            file.writestr(name, text)
        file.writestr("media/image.png", b"\x89PNG\0")
    return content.getvalue()


def word_file(body: str) -> bytes:
    text = f"<w:document {W}><w:body>{body}</w:body></w:document>"
    return packed({"word/document.xml": (f"{MAIN}.wordprocessingml.document.main+xml", text)})
