"""A text is put in its place verified, or with a sentence that says what is wrong."""

import gzip
import hashlib
from pathlib import Path
from typing import Any

import pytest

from nmt.data.corpora.origin import Entry, Origin, RemoteText, obtain
from nmt.errors import DataError
from tests.data.corpora.site import Site, names, origin_in, tarred, zipped
from tests.data.text.test_lines import COMPRESS

TEXT = b"".join(b"sentence number %d\n" % n for n in range(2000))
HASH = hashlib.sha256(TEXT).hexdigest()


def remote(url: str, **named: Any) -> RemoteText:
    return RemoteText(url, len(TEXT), HASH, **named)


@pytest.fixture
def url(site: Site) -> str:
    """The address of the text, compressed."""
    site.files["/some/text.en.gz"] = gzip.compress(TEXT)
    return f"{site.url}/some/text.en.gz"


def test_a_download_is_unpacked_and_used_again(tmp_path: Path, site: Site, url: str) -> None:
    for _ in range(2):
        obtain(remote(url), tmp_path / "text", origin_in(tmp_path))
        assert (tmp_path / "text").read_bytes() == TEXT
        assert names(tmp_path) == ["downloads", "text"]
    assert len(site.asked) == 1


def test_a_full_disk_does_not_cost_the_download(tmp_path: Path, site: Site, url: str) -> None:
    """The folder of the text is missing, which the disk refuses as it does when it is full."""
    with pytest.raises(DataError, match="cannot be written"):
        obtain(remote(url), tmp_path / "nowhere" / "text", origin_in(tmp_path))
    assert (tmp_path / "downloads" / "text.en.gz").read_bytes() == site.files["/some/text.en.gz"]


UNEXPECTED = "not the text expected from http.*text.en.gz .sha256 "


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (gzip.compress(TEXT[:-1]), UNEXPECTED),
        (gzip.compress(TEXT + b"\n"), UNEXPECTED),
        (gzip.compress(TEXT.replace(b"7", b"8")), UNEXPECTED),
        (gzip.compress(b"", mtime=0), UNEXPECTED),
        (b"no archive", "text.en.gz: damaged or cut short .*; fetch the file again"),
        (gzip.compress(TEXT)[:-5], "text.en.gz: damaged or cut short .*; fetch the file again"),
    ],
)
def test_another_text_is_rejected_and_not_kept(
    tmp_path: Path, site: Site, url: str, body: bytes, message: str
) -> None:
    site.files["/some/text.en.gz"] = body
    with pytest.raises(DataError, match=message):
        obtain(remote(url), tmp_path / "text", origin_in(tmp_path))
    assert names(tmp_path / "downloads") == []


def test_a_decompression_bomb_is_stopped_at_the_expected_size(
    tmp_path: Path, site: Site, url: str
) -> None:
    site.files["/some/text.en.gz"] = gzip.compress(bytes(50_000_000))
    with pytest.raises(DataError, match="not the text expected"):
        obtain(remote(url), tmp_path / "text", origin_in(tmp_path))
    assert (tmp_path / "text").stat().st_size <= len(TEXT)


# -- copies and archives --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "message"),
    [
        *(
            (zipped({"../evil": "x", "fra.txt.old": "y", f"{place}fra.txt": TEXT}), None)
            for place in ("", "fra-eng/", "../../", "/")
        ),
        (zipped({"other.txt": "x"}), "fra-eng.zip: holds no file called fra.txt"),
        (b"not a zip", "fra-eng.zip: damaged or cut short"),
    ],
)
def test_the_wanted_member_is_read_whatever_its_path_in_the_archive(
    tmp_path: Path, data: bytes, message: str | None
) -> None:
    copies, path = tmp_path / "copies", tmp_path / "text"
    copies.mkdir()
    (copies / "fra-eng.zip").write_bytes(data)
    text = remote("https://example.org/fra-eng.zip", member="fra.txt")
    if message:
        with pytest.raises(DataError, match=message):
            obtain(text, path, origin_in(tmp_path, copies))
    else:
        obtain(text, path, origin_in(tmp_path, copies))
        assert path.read_bytes() == TEXT
        assert names(tmp_path) == ["copies", "text"] and "evil" not in names(tmp_path.parent)


@pytest.mark.parametrize("name", ["data.tar", "data.tar.gz"])
@pytest.mark.parametrize("member", ["text.en", "text.en.gz"])
def test_a_text_is_read_from_a_tar_archive(
    tmp_path: Path, site: Site, name: str, member: str
) -> None:
    body = gzip.compress(TEXT) if member.endswith(".gz") else TEXT
    files: dict[str, str | bytes] = {"text.en.old": "x", f"../data/{member}": body}
    site.files[f"/{name}"] = tarred(files, "w:gz" if name.endswith("gz") else "w")
    obtain(remote(f"{site.url}/{name}", member=member), tmp_path / "text", origin_in(tmp_path))
    assert (tmp_path / "text").read_bytes() == TEXT
    assert names(tmp_path) == ["downloads", "text"]


@pytest.mark.parametrize(
    ("body", "message", "kept"),
    [
        (tarred({"other": "x"}), "data.tar: holds no file called text.en.gz", ["data.tar"]),
        (b"not a tar", "data.tar: damaged or cut short", []),
        (tarred({"text.en.gz": gzip.compress(TEXT)})[:1500], "damaged or cut short", []),
        (tarred({"text.en.gz": "not compressed"}), "damaged or cut short", []),
    ],
)
def test_a_tar_archive_that_lacks_the_text_is_told_and_kept_only_if_it_is_whole(
    tmp_path: Path, site: Site, body: bytes, message: str, kept: list[str]
) -> None:
    site.files["/data.tar"] = body
    text = remote(f"{site.url}/data.tar", member="text.en.gz")
    with pytest.raises(DataError, match=message):
        obtain(text, tmp_path / "text", origin_in(tmp_path))
    assert names(tmp_path / "downloads") == kept


@pytest.mark.parametrize("name", ["train.en.gz", "train.en", "train.en.xz", "all.tsv.zst"])
def test_a_copy_may_be_compressed_in_any_way(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(COMPRESS.get(Path(name).suffix, bytes)(TEXT))
    text = remote("https://example.org/x/train.en.gz", also=("all.tsv",))
    obtain(text, tmp_path / "text", origin_in(tmp_path, tmp_path))
    assert (tmp_path / "text").read_bytes() == TEXT


def test_a_missing_copy_names_what_was_looked_for(tmp_path: Path) -> None:
    text = remote("https://example.org/x/train.en.gz")
    message = "none of train.en.gz, train.en, train.en.xz, train.en.zst is here"
    with pytest.raises(DataError, match=message):
        obtain(text, tmp_path / "text", origin_in(tmp_path, tmp_path))


# -- without a published hash ---------------------------------------------------------------------


def test_the_first_download_decides(tmp_path: Path, site: Site, url: str) -> None:
    where, text = origin_in(tmp_path), RemoteText(url)
    archive = tmp_path / "downloads" / "text.en.gz"
    first: Entry = {"sha256": HASH, "bytes": len(TEXT)}
    for _ in range(2):
        obtain(text, tmp_path / "text", where)
        assert where.recall(url) == first
        archive.unlink()

    other = b"other\n"
    site.files["/some/text.en.gz"] = gzip.compress(other)
    message = (
        f"not the text that {url} gave when it was first downloaded .sha256 "
        f"{hashlib.sha256(other).hexdigest()}, expected {HASH}.; .* or delete .*record.json to acc"
    )
    with pytest.raises(DataError, match=message):
        obtain(text, tmp_path / "text", where)
    assert where.recall(url) == first
    where.record.unlink()
    obtain(text, tmp_path / "text", where)
    assert (tmp_path / "text").read_bytes() == other


def test_a_copy_is_compared_with_the_first_download_but_is_none(tmp_path: Path) -> None:
    (tmp_path / "train.en").write_bytes(TEXT)
    text, where = RemoteText("https://x.org/train.en"), origin_in(tmp_path, tmp_path)
    obtain(text, tmp_path / "text", where)
    assert not where.record.exists()
    where.remember(text.url, {"sha256": "0" * 64})
    with pytest.raises(DataError, match="expected 0000"):
        obtain(text, tmp_path / "other", where)


def test_entries_are_kept_side_by_side(tmp_path: Path) -> None:
    where = origin_in(tmp_path / "deep")
    assert where.recall("a") == {}
    entries: list[Entry] = [{"bytes": 2}, {"version": "v1"}, {"bytes": 4}]
    for address, entry in zip("aba", entries, strict=True):
        where.remember(address, entry)
    again = origin_in(tmp_path / "deep")
    assert (again.recall("a"), again.recall("b")) == ({"bytes": 4}, {"version": "v1"})
    assert names(tmp_path / "deep") == ["record.json"]


@pytest.mark.parametrize("version", ["", '"format": 1, '])
def test_a_record_without_a_version_has_the_first(tmp_path: Path, version: str) -> None:
    (tmp_path / "record.json").write_text(f'{{{version}"a": {{"sha256": "1"}}}}')
    assert origin_in(tmp_path).recall("a") == {"sha256": "1"}


@pytest.mark.parametrize("text", ["{", "[]", '{"a": 1}', "\x00", '{"format": 2}'])
def test_a_file_that_is_no_record_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "record.json").write_text(text)
    message = "record.json: not a record of downloads .*; delete it to accept what"
    newer = r"record\.json was written by a newer nmt \(format 2"
    with pytest.raises(DataError, match=newer if "2" in text else message):
        origin_in(tmp_path).recall("a")


def test_a_record_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="(cannot be written|not a record).*"):
        origin_in(tmp_path / "file").remember("a", {})


@pytest.mark.parametrize("name", ["data.tar.gz", "data.zip"])
def test_a_changed_bit_anywhere_in_a_compressed_archive_is_noticed(
    tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    files = {"folder/one": TEXT.decode(), "folder/two": TEXT[:3000].decode()}
    whole = tarred(files, "w:gz") if name.endswith("gz") else zipped(files)
    for position in [*range(0, len(whole), 61), *range(len(whole) - 150, len(whole))]:
        damaged = bytearray(whole)
        damaged[position] ^= 16
        path.write_bytes(damaged)
        origin = Origin(tmp_path, tmp_path, tmp_path / "record.json", print)
        text = RemoteText(f"http://host/{name}", member="two")
        try:
            obtain(text, tmp_path / "text", origin)
        except DataError as error:
            assert name in str(error)
        else:  # of a zip, what changed may be another file, or its time
            assert name == "data.zip"
            assert (tmp_path / "text").read_bytes() == TEXT[:3000]
