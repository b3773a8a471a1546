"""The one text that is wanted comes out of a file, and nothing else does."""

import gzip
import hashlib
import lzma
import zipfile
from pathlib import Path
from typing import Any

import pytest
import zstandard

from nmt.data.corpora.download import Origin, RemoteText, obtain
from nmt.errors import DataError

TEXT = b"".join(b"sentence number %d\n" % n for n in range(2000))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def remote(url: str, **named: Any) -> RemoteText:
    return RemoteText(url, len(TEXT), hashlib.sha256(TEXT).hexdigest(), **named)


def origin(tmp_path: Path, folder: Path) -> Origin:
    return Origin(folder, tmp_path / "downloads", lambda message: None)


def zipped(path: Path, *members: str) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member in members:
            archive.writestr(member, TEXT if member.endswith("fra.txt") else b"something else")
    return path


@pytest.mark.parametrize("place", ["fra.txt", "fra-eng/fra.txt", "../../fra.txt", "/fra.txt"])
def test_wanted_member_is_taken_wherever_it_claims_to_lie(tmp_path: Path, place: str) -> None:
    (tmp_path / "copies").mkdir()
    zipped(tmp_path / "copies" / "fra-eng.zip", "../evil", "fra.txt.old", place)
    text = remote("https://example.org/fra-eng.zip", member="fra.txt")
    obtain(text, tmp_path / "text", origin(tmp_path, tmp_path / "copies"))
    assert (tmp_path / "text").read_bytes() == TEXT
    assert names(tmp_path) == ["copies", "text"]
    assert names(tmp_path.parent).count("evil") == 0


def test_zip_without_the_member_is_refused(tmp_path: Path) -> None:
    zipped(tmp_path / "fra-eng.zip", "other.txt")
    text = remote("https://example.org/fra-eng.zip", member="fra.txt")
    with pytest.raises(DataError, match="fra-eng.zip: holds no file called fra.txt"):
        obtain(text, tmp_path / "text", origin(tmp_path, tmp_path))


def test_zip_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "fra-eng.zip").write_bytes(b"not a zip")
    text = remote("https://example.org/fra-eng.zip", member="fra.txt")
    with pytest.raises(DataError, match="fra-eng.zip: damaged or cut short"):
        obtain(text, tmp_path / "text", origin(tmp_path, tmp_path))


@pytest.mark.parametrize("name", ["train.en.gz", "train.en", "train.en.xz", "all.tsv.zst"])
def test_copies_may_be_compressed_in_any_way(tmp_path: Path, name: str) -> None:
    squeeze = {".gz": gzip.compress, ".xz": lzma.compress, ".zst": zstandard.compress}
    data = squeeze.get(Path(name).suffix, bytes)(TEXT)
    (tmp_path / name).write_bytes(data)
    text = remote("https://example.org/x/train.en.gz", also=("all.tsv",))
    obtain(text, tmp_path / "text", origin(tmp_path, tmp_path))
    assert (tmp_path / "text").read_bytes() == TEXT


def test_missing_copy_names_what_was_looked_for(tmp_path: Path) -> None:
    message = "none of train.en.gz, train.en, train.en.xz, train.en.zst is here"
    with pytest.raises(DataError, match=message):
        obtain(
            remote("https://example.org/x/train.en.gz"),
            tmp_path / "text",
            origin(tmp_path, tmp_path),
        )
