"""Lines end at "\\n" alone, whatever the file is wrapped in; what cannot be read says why."""

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pytest

from nmt.data.text.lines import check_text, decode_or_warn, read_lines
from nmt.errors import DataError

# every character that str.splitlines or text mode would also split at
STRANGE = "a\rb\u2028c\u2029d\x0be\x0cf\x85g\x1ch\x1di\x1e"


def zstandard(data: bytes) -> bytes:
    return bytes(pyarrow.compress(data, codec="zstd", asbytes=True))


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    ".txt": bytes,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".zst": zstandard,
}
every_suffix = pytest.mark.parametrize("suffix", COMPRESS)


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(COMPRESS[path.suffix](data))
    return path


@every_suffix
def test_lines_end_at_line_feeds_and_marks_of_windows_are_dropped(
    tmp_path: Path, suffix: str
) -> None:
    path = written(tmp_path / f"text{suffix}", f"\ufeff{STRANGE}\ntwo\ufeff\r\n".encode())
    assert list(read_lines(path)) == [STRANGE, "two\ufeff"]


@pytest.mark.parametrize(("data", "lines"), [(b"a\n", 1), (b"a\nb", 2), (b"\n\n", 2), (b"", 0)])
def test_a_last_line_without_an_end_counts(tmp_path: Path, data: bytes, lines: int) -> None:
    assert len(list(read_lines(written(tmp_path / "text.txt", data)))) == lines


def test_zstandard_frames_may_follow_one_another(tmp_path: Path) -> None:
    path = tmp_path / "text.zst"
    path.write_bytes(zstandard(b"a\nb") + zstandard(b"c\n"))
    assert list(read_lines(path)) == ["a", "bc"]


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress, zstandard, bz2.compress])
def test_a_compressed_file_of_another_name_is_no_text(
    tmp_path: Path, compress: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "text.en"
    path.write_bytes(compress(b"a dog\n" * 1000))
    with pytest.raises(
        DataError, match=r"text.en: is compressed, expected plain text or a file of"
    ):
        list(read_lines(path))
    path.write_bytes(b"BZh is no compressed file\n")
    assert list(read_lines(path)) == ["BZh is no compressed file"]


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"PK\x03\x04\x14\0", "a zip file, as .docx, .odt and .xlsx are"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a document of an older Office"),
        (rb"{\rtf1\ansi A dog.}", "a document in RTF"),
        (b"%PDF-1.7\n", "a PDF document"),
        (b"\x89PNG\r\n\x1a\n", "an image"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF", "an image"),
        ("a dog\n".encode("utf-16"), "text in UTF-16"),
    ],
)
def test_a_document_or_an_image_is_no_text(tmp_path: Path, data: bytes, kind: str) -> None:
    path = tmp_path / "letter"
    path.write_bytes(data)
    sentence = f"{path}: is {kind}.*, expected plain text in UTF-8; save it as that, or as HTML"
    with pytest.raises(DataError, match=sentence):
        list(read_lines(path))
    warnings: list[str] = []
    with pytest.raises(DataError, match=sentence):
        list(decode_or_warn(data.splitlines(keepends=True), str(path), warnings.append))
    assert warnings == []


@every_suffix
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, suffix: str) -> None:
    text = b"".join(b"line %d\n" % i for i in range(9999))
    damaged = r"text.*: damaged or cut short \(.*; fetch the file again"
    latin = rf"text{suffix}:2: not valid UTF-8 \(byte 0xf6\); convert"
    path = tmp_path / f"text{suffix}"
    for data, message in (
        (None, "text.*: no such file; check the path$"),
        (COMPRESS[suffix](text)[:-9], damaged),
        (text, damaged),
        (COMPRESS[suffix]("ä\n".encode() + "größer\n".encode("latin-1")), latin),
    ):
        if data is not None:
            path.write_bytes(data)
        if suffix != ".txt" or message != damaged:
            with pytest.raises(DataError, match=message):
                list(read_lines(path))
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        list(read_lines(tmp_path))


def test_bytes_that_are_not_utf8_are_replaced_with_a_warning() -> None:
    warnings: list[str] = []
    found = decode_or_warn([b"\xef\xbb\xbfa\r\n", b"gr\xf6n\n", b"b"], "stdin", warnings.append)
    assert list(found) == ["a", "gr\ufffdn", "b"]
    assert warnings == [
        "stdin:2: not valid UTF-8 (byte 0xf6); the invalid bytes are replaced by U+FFFD"
    ]


def test_a_text_with_half_a_surrogate_pair_is_refused() -> None:
    check_text("größer 😀", "text")
    with pytest.raises(DataError, match=r"text holds half a surrogate pair \('\\ud800'\)"):
        check_text("a\ud800", "text")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("text", ["a dog\n", "a\n", "größer\r\n", "собака и кот\n", "Ωμέγα, α\n"])
def test_text_of_a_wider_encoding_is_named(
    tmp_path: Path, encoding: str, mark: str, text: str
) -> None:
    path = tmp_path / "text.en"
    path.write_bytes((mark + text * 3).encode(encoding))
    kind = encoding[:6].upper() if not mark else "UTF-16"  # a mark of UTF-32 begins as that one
    if mark and encoding == "utf-32-be":
        kind = "UTF-32"
    with pytest.raises(DataError, match=f"text.en: is text in {kind}.*, expected plain text in"):
        list(read_lines(path))


@pytest.mark.parametrize("data", [b"a\0b\0", b"\0\0\n", b"a\0b\n", b"\0\n", b"A \0\0 dog\n"])
def test_zero_bytes_alone_make_no_other_encoding(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "text.en"
    path.write_bytes(b"a dog sees a cat\n" + data)
    assert len(list(read_lines(path))) >= 2


@pytest.mark.parametrize(
    ("data", "warned"),
    [
        (b"one\rtwo\rthree\r", True),
        (b"one\rtwo\rthree", True),
        (b"one\rtwo", False),
        (b"one\r\r\n", False),
        (b"one\rtwo\rthree\n", False),
        (b"\r\r\r", False),
    ],
)
def test_line_ends_of_old_macs_are_named_once(
    tmp_path: Path, data: bytes, warned: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "text.en"
    path.write_bytes(data)
    for _ in range(2):
        assert len(list(read_lines(path))) == 1
    sentence = "is one line, because its lines end in carriage returns alone"
    assert capsys.readouterr().err.count(sentence) == warned
    warnings: list[str] = []
    list(decode_or_warn([data], "stdin", warnings.append))
    assert [sentence in warning for warning in warnings] == [True] * warned


def test_a_missing_path_with_a_line_break_says_where_it_may_come_from(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"C:\\new\\text'|single quotes"):
        list(read_lines(tmp_path / "C:\new\text"))
