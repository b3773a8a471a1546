"""Documents that are ZIP archives of parts: Word, PowerPoint, Excel, OpenDocument, EPUB."""

import struct
import zlib
from io import BytesIO
from lzma import LZMAError
from zipfile import BadZipFile, ZipFile, ZipInfo

from nmt.errors import DataError

MAX_BYTES = 1 << 30
"""most bytes of all parts together, once they are unpacked"""
MAX_READ_BYTES = 1 << 28
"""most bytes of a part whose text is read"""
_DAMAGE = (
    *(BadZipFile, LZMAError, struct.error, zlib.error),
    *(EOFError, NotImplementedError, OSError, OverflowError, RuntimeError, ValueError),
)
"""what `zipfile` raises for an archive that is damaged"""
_ENCRYPTED = 0x1
"""a bit of the flags of an archive's part"""
_OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""the beginning of the files of Office up to 2003, and of encrypted ones of today"""


class Archive:
    """The parts of an archive; those that were changed are written in place of the old ones."""

    def __init__(self, content: bytes, name: str) -> None:
        """Open an archive; messages call it `name`.

        Raises:
            DataError: it is damaged, encrypted or too large.
        """
        self._name = name
        if content.startswith(_OLD_OFFICE):
            raise DataError(
                f"{name}: is an encrypted document, or one of Office 2003 or before; save it as "
                "docx, pptx or xlsx without a password"
            )
        try:
            self._file = ZipFile(BytesIO(content))
        except _DAMAGE as error:
            raise DataError(
                f"{name}: is damaged ({error}); save it again with the program that made it"
            ) from error
        self._parts = self._file.infolist()
        size = sum(part.file_size for part in self._parts)
        if size > MAX_BYTES:
            raise DataError(
                f"{name}: has {size:,} bytes unpacked, at most {MAX_BYTES:,} are read; divide "
                "the document"
            )
        if any(part.flag_bits & _ENCRYPTED for part in self._parts):
            raise DataError(f"{name}: is encrypted; save it without a password")
        self._changed: dict[str, bytes] = {}

    def __contains__(self, part: str) -> bool:
        return part in self._file.NameToInfo

    @property
    def names(self) -> list[str]:
        """The names of the parts, in their order."""
        return [part.filename for part in self._parts]

    def read(self, part: str) -> bytes:
        """Return the content of a part as it was.

        Raises:
            DataError: it is missing or damaged.
        """
        try:
            found = self._file.getinfo(part)
        except KeyError as error:
            raise DataError(
                f"{self._name}: is no complete document, {part} is missing in it; save it again "
                "with the program that made it"
            ) from error
        if found.file_size > MAX_READ_BYTES:
            raise DataError(
                f"{self._name}: its part {part} has {found.file_size:,} bytes unpacked, at most "
                f"{MAX_READ_BYTES:,} are read; divide the document"
            )
        return self._read(found)

    def _read(self, part: ZipInfo) -> bytes:
        try:
            return self._file.read(part)  # no more than its size, which the table has told
        except _DAMAGE as error:
            raise DataError(
                f"{self._name}: its part {part.filename} is damaged ({error}); save it again with "
                "the program that made it"
            ) from error

    def change(self, part: str, content: bytes) -> None:
        """Give a part another content."""
        self._changed[part] = content

    def write(self) -> bytes:
        """Return the archive with what was changed: the same parts in the same order."""
        written = BytesIO()
        with ZipFile(written, "w") as file:
            for part in self._parts:
                content = self._changed.get(part.filename)
                file.writestr(part, self._read(part) if content is None else content)
        return written.getvalue()
