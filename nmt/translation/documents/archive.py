"""Documents that are ZIP archives of parts: Word, PowerPoint, Excel, OpenDocument, EPUB."""

import copy
import re
import struct
import zlib
from collections import Counter
from io import BytesIO
from lzma import LZMAError
from stat import S_ISLNK
from zipfile import BadZipFile, ZipFile, ZipInfo

from nmt.errors import DataError

MAX_BYTES = 1 << 30
"""most bytes of all parts together, once they are unpacked"""
MAX_READ_BYTES = 1 << 28
"""most bytes of a part whose text is read"""
MAX_TAGS = 4_000_000
"""most tags of the parts whose text is read; each takes up to 700 bytes of memory"""
MAX_RATIO = 250
"""most unpacked bytes for each byte of an archive, once it has more than `SMALL_BYTES`"""
SMALL_BYTES = 1 << 25
_DAMAGE = (
    *(BadZipFile, LZMAError, struct.error, zlib.error),
    *(EOFError, NotImplementedError, OSError, OverflowError, RuntimeError, ValueError),
)
"""what `zipfile` raises for an archive that is damaged"""
_ENCRYPTED = 0x1
"""a bit of the flags of an archive's part"""
_OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""the beginning of the files of Office up to 2003, and of encrypted ones of today"""
_ENCRYPTED_PACKAGE = "EncryptedPackage".encode("utf-16-le")
"""the name of the stream of an encrypted file of today"""
_OUTSIDE = re.compile(r"^(?:/|[A-Za-z]:)|(?:^|/)\.\.(?:/|$)")
"""what the name of a part never has: the beginning of an absolute path, and `..`"""
_SAVE_AGAIN = "save it again with the program that made it"


class Archive:
    """The parts of an archive; those that were changed are written in place of the old ones."""

    def __init__(self, content: bytes, name: str, around: "Archive | None" = None) -> None:
        """Open an archive; messages call it `name`.

        `around` is the one that it is a part of: both together have at most `MAX_TAGS`.

        Raises:
            DataError: it is damaged, encrypted, too large, or has parts that no document has.
        """
        self._name = name
        _check_beginning(content, name)
        try:
            self._file = ZipFile(BytesIO(content))
        except _DAMAGE as error:
            raise DataError(f"{name}: is damaged ({error}); {_SAVE_AGAIN}") from error
        self._parts = self._file.infolist()
        self._check_sizes(len(content))
        for part in self._parts:
            self._check_part(part)
        (part_name, count), *_ = Counter(self.names).most_common(1) or [("", 0)]
        if count > 1:
            raise DataError(f"{name}: has {count} parts with the name {part_name}; {_SAVE_AGAIN}")
        for part in self._parts:
            self._check_content(part)
        self._changed: dict[str, bytes] = {}
        self._removed: set[str] = set()
        self._tags: list[int] = around._tags if around else []
        """how many each part of XML has that was read"""

    def __contains__(self, part: str) -> bool:
        return part in self._file.NameToInfo

    @property
    def names(self) -> list[str]:
        """The names of the parts, in their order."""
        return [part.filename for part in self._parts]

    def read(self, part: str) -> bytes:
        """Return the content of a part as it was.

        Raises:
            DataError: it is missing, too large or damaged.
        """
        try:
            found = self._file.getinfo(part)
        except KeyError as error:
            raise DataError(
                f"{self._name}: is no complete document, {part} is missing in it; {_SAVE_AGAIN}"
            ) from error
        if found.file_size > MAX_READ_BYTES:
            raise DataError(
                f"{self._name}: its part {part} has {found.file_size:,} bytes unpacked, at most "
                f"{MAX_READ_BYTES:,} are read; divide the document"
            )
        return self._read(found)

    def read_text(self, part: str) -> bytes:
        """Return the content of a part of XML, whose tags will be in memory.

        Raises:
            DataError: it is missing or damaged, or the parts that were read have too many tags.
        """
        content = self.read(part)
        self._tags.append(content.count(b"<"))
        if sum(self._tags) > MAX_TAGS:
            raise DataError(
                f"{self._name}: has over {MAX_TAGS:,} tags up to its part {part}, which is as many "
                "as are read; divide the document"
            )
        return content

    def change(self, part: str, content: bytes) -> None:
        """Give a part another content."""
        self._changed[part] = content

    def remove(self, part: str) -> None:
        """Leave a part out of the written archive."""
        self._removed.add(part)

    def write(self) -> bytes:
        """Return the archive with what was changed: the same parts in the same order."""
        written = BytesIO()
        with ZipFile(written, "w") as file:
            for part in self._parts:
                if part.filename not in self._removed:
                    content = self._changed.get(part.filename)
                    content = self._read(part) if content is None else content
                    file.writestr(copy.copy(part), content)  # which changes what it is given
        return written.getvalue()

    def _read(self, part: ZipInfo) -> bytes:
        try:
            return self._file.read(part)  # no more than its size, which the table has told
        except _DAMAGE as error:
            raise self._damaged(part, error) from error

    def _check_sizes(self, packed: int) -> None:
        size = sum(part.file_size for part in self._parts)
        if size > MAX_BYTES:
            raise DataError(
                f"{self._name}: has {size:,} bytes unpacked, at most {MAX_BYTES:,} are read; "
                "divide the document"
            )
        if size > max(SMALL_BYTES, packed * MAX_RATIO):
            raise DataError(
                f"{self._name}: {packed:,} bytes become {size:,} unpacked; no document has over "
                f"{MAX_RATIO} times as many, so it is not read"
            )

    def _check_part(self, part: ZipInfo) -> None:
        """Raise a DataError for a part that is encrypted, a link, or outside of the archive."""
        path = part.filename
        if part.flag_bits & _ENCRYPTED:
            raise DataError(f"{self._name}: is encrypted; save it without a password")
        is_outside = bool(_OUTSIDE.search(path.replace("\\", "/")))
        if is_outside or S_ISLNK(part.external_attr >> 16):
            kind = "is outside of the document" if is_outside else "is a symbolic link"
            raise DataError(f"{self._name}: its part {path} {kind}, so it is not read")

    def _check_content(self, part: ZipInfo) -> None:
        """Raise a DataError for a part that is damaged, before anything is translated."""
        try:
            with self._file.open(part) as file:
                while file.read(1 << 20):
                    pass
        except _DAMAGE as error:
            raise self._damaged(part, error) from error

    def _damaged(self, part: ZipInfo, error: Exception) -> DataError:
        return DataError(
            f"{self._name}: its part {part.filename} is damaged ({error}); {_SAVE_AGAIN}"
        )


def unpacked_size(content: bytes) -> int:
    """Return the bytes of all parts of an archive together, as its table says; 0 if it has none."""
    try:
        return sum(part.file_size for part in ZipFile(BytesIO(content)).infolist())
    except _DAMAGE:
        return 0


def _check_beginning(content: bytes, name: str) -> None:
    """Raise a DataError for a file that is no archive, with the next step for old formats."""
    if content.startswith(_OLD_OFFICE) and _ENCRYPTED_PACKAGE in content:
        raise DataError(f"{name}: is encrypted; save it without a password")
    if content.startswith(_OLD_OFFICE):
        raise DataError(
            f"{name}: is in a format of Office 2003 or before, such as doc, xls or ppt; save it as "
            "docx, xlsx or pptx"
        )
    if content.lstrip().startswith(b"{\\rtf"):
        raise DataError(f"{name}: is in the format RTF; save it as docx")
    if not content.startswith(b"PK"):
        beginning = content[:20].decode("ascii", "replace")
        raise DataError(
            f"{name}: is no document of Office, it begins with {beginning!r}; save it as docx, "
            "or, if it is plain text, name it with .txt at its end"
        )
