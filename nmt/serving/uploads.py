"""Files that clients upload: recognised, read within the limits of the server, and translated."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nmt.errors import ConfigError
from nmt.serving.answers import RequestError, busy
from nmt.serving.detection import AUTO
from nmt.serving.server import Server
from nmt.serving.translate_request import Asked, DocumentSource, TranslatedDocument
from nmt.translation.documents.document import (
    USUAL_TEXTS,
    Document,
    LanguagePair,
    ReadingOptions,
)
from nmt.translation.documents.encodings import decode_text
from nmt.translation.documents.formats import (
    FORMATS,
    PEEKED_BYTES,
    check_names,
    read_document,
    recognise_format,
)

TEXT = "text"
"""the format of plain text, which is no document"""
TEXT_SUFFIX = ".txt"
NAME = "the file"
"""what messages call an uploaded file"""
_ARCHIVE = b"PK\x03\x04"
_LOOKED_AT = 1000
"""bytes of a part of an archive, of which a text has no zero"""


def file_suffixes() -> list[str]:
    """Return the suffixes of the files that are translated, plain text first."""
    return [TEXT_SUFFIX, *(suffix for each in FORMATS.values() for suffix in each.suffixes)]


@dataclass(frozen=True)
class UploadedFile:
    """A file to translate."""

    name: str
    """as the client calls it"""
    content: bytes
    format: str
    """`TEXT`, or a key of `FORMATS`"""
    options: ReadingOptions = USUAL_TEXTS

    @classmethod
    def recognise(
        cls, name: str, content: bytes, options: ReadingOptions = USUAL_TEXTS, key: str = ""
    ) -> "UploadedFile":
        """Return a file in the format `key`, or in that which content and name say.

        Raises:
            RequestError: it has no name, or files of this format are not translated, or have no
                keys, columns or elements as the options name.
        """
        if not name:
            raise RequestError(400, "Invalid request: missing file parameter")
        found = key or recognise_format(name, content[:PEEKED_BYTES])
        if not found and name.lower().endswith(TEXT_SUFFIX):
            found = TEXT
        if found not in (TEXT, *FORMATS):
            known = ", ".join((TEXT, *FORMATS) if key else file_suffixes())
            what = "format" if key else "type"
            raise RequestError(
                400, f"Invalid request: files of this {what} are not translated; {known} are"
            )
        try:
            check_names(options, [found])
        except ConfigError as error:
            raise RequestError(400, f"Invalid request: {error}") from error
        return cls(name, content, found, options)

    def read(self, languages: LanguagePair) -> Document:
        """Read a document; each call reads it again.

        Raises:
            DataError: it is damaged, or in another format.
            ConfigError: this server lacks a library for the format.
        """
        options = replace(self.options, languages=languages)
        return read_document(self.content, NAME, self.format, options)


@dataclass(frozen=True)
class FileTexts:
    """What is translated in a file."""

    texts: list[str]
    is_of_program: bool = False
    """whether the texts have placeholders of a program"""
    language: str = ""
    """the source language that the file declares, if any"""

    @property
    def characters(self) -> int:
        """The characters of all texts."""
        return sum(map(len, self.texts))

    def of_known_language(self, asked: Asked) -> Asked:
        """Return what is asked, with the language that the file declares in place of `AUTO`."""
        is_declared = asked.source == AUTO and self.language
        return replace(asked, source=self.language) if is_declared else asked


async def read_file(server: Server, file: UploadedFile, asked: Asked, address: str) -> FileTexts:
    """Read a file that the client at `address` has sent, in a thread, and check its size.

    Raises:
        RequestError: the file is too large, or this server cannot read its format.
        DataError: the file is damaged, encrypted, or in another format.
    """

    def read() -> FileTexts:
        sources = _possible_sources(server, asked)
        if file.format == TEXT:
            return FileTexts([decode_text(file.content, NAME, sources).text])
        _check_size(server, file.content)
        source = sources[0] if asked.source != AUTO else "und"
        options = replace(file.options, sources=tuple(sources))
        document = replace(file, options=options).read(LanguagePair(source, asked.target))
        return FileTexts(list(document.texts()), document.is_of_program, document.source_language)

    try:
        found = await server.service.long_work.run(address, len(file.content), read)
    except ConfigError as error:  # a library for the format is missing
        server.operations.log("a file cannot be read", {"error": str(error)})
        raise busy("this server cannot read files of this format; tell its operator") from error
    server.check_file(found.texts)
    return found


async def translate_file(
    server: Server, file: UploadedFile, found: FileTexts, asked: Asked, client: str
) -> TranslatedDocument:
    """Return the translation of a file of which `found` was read.

    Raises: what `TranslationService.translate` raises.
    """
    service = server.service
    if file.format == TEXT:
        given = decode_text(file.content, NAME, _possible_sources(server, asked))
        [text] = await service.translate(found.texts, asked, client)
        return TranslatedDocument(given.encode(text.text), models=text.models)
    asked = found.of_known_language(asked)
    if asked.source == AUTO:
        [guess] = await service.detect([" ".join(found.texts)], asked, client)
        asked = replace(asked, source=str(guess["language"]))
    return await service.translate_document(DocumentSource(file.content, file.read), asked, client)


def _possible_sources(server: Server, asked: Asked) -> Sequence[str]:
    """Return the languages that a text may be in, which decide its encoding."""
    return server.models.sources if asked.source == AUTO else [asked.source]


def _check_size(server: Server, content: bytes) -> None:
    """Check how large a document is once it is unpacked.

    Raises:
        RequestError: it is too large, or has too many tags.
        DataError: it is an archive that is damaged or encrypted.
    """
    settings = server.settings
    tags = content.count(b"<")
    if content.startswith(_ARCHIVE):
        from nmt.translation.documents.archive import Archive, unpacked_size

        size = unpacked_size(content)
        if size > settings.unpacked_bytes:
            raise RequestError(
                413,
                f"the file has {size} bytes unpacked, and {settings.unpacked_bytes} are "
                "allowed; divide it",
            )
        archive = Archive(content, NAME)
        tags = sum(map(_count_tags, map(archive.read, archive.names)))
    if tags > settings.file_tags:
        raise RequestError(
            413, f"the file has {tags} tags, and {settings.file_tags} are allowed; divide it"
        )


def _count_tags(part: bytes) -> int:
    """Return the number of tags in a part of an archive; 0 if it is no text."""
    is_text = part[:1] in (b"<", b"\xff", b"\xfe") or b"\0" not in part[:_LOOKED_AT]
    return part.count(b"<") if is_text else 0
