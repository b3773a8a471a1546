"""Commands read from URLs and write to them: what is incomplete stays here and is not uploaded."""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from nmt.cli.lines import partial_output
from nmt.errors import ConfigError, DataError
from tests.cli.commands import fail, invoke, succeed, write_lines

LINES = ["a small dog", "", "the cat runs", "a\u2028b", "an owl"]
PAIRS = [f"{line}\tein Hund" for line in LINES]


@pytest.fixture(autouse=True)
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryFileSystem]:
    """A service whose files are in memory; the current folder is empty."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    files = MemoryFileSystem()
    for name, lines in {"in.txt": LINES, "pairs.tsv": PAIRS}.items():
        files.pipe_file(f"/b/{name}", "".join(f"{line}\n" for line in lines).encode())
    yield files
    MemoryFileSystem.store.clear()


def names_here() -> set[str]:
    return {path.name for path in Path().iterdir()}


@pytest.mark.parametrize(("command", "name"), [("translate", "in.txt"), ("score", "pairs.tsv")])
def test_an_output_by_url_has_the_bytes_of_a_local_one(
    tiny_run: Path, memory: MemoryFileSystem, tmp_path: Path, command: str, name: str
) -> None:
    local = tmp_path / "local.txt"
    succeed(command, "-m", tiny_run, f"memory://b/{name}", "-o", local)
    succeed(command, "-m", tiny_run, f"memory://b/{name}", "-o", "memory://b/out.txt")
    assert memory.cat_file("/b/out.txt") == local.read_bytes() != b""
    assert names_here() == set()
    again = invoke(
        *(command, "-m", tiny_run, f"memory://b/{name}", "-o", "memory://b/out.txt", "--resume")
    )
    assert "memory://b/out.txt is complete" in again.stderr


def test_a_failed_upload_is_all_that_is_done_again(
    tiny_run: Path, memory: MemoryFileSystem
) -> None:
    command = ("translate", "-m", tiny_run, "memory://b/in.txt", "-o", "memory://b/out.txt")
    memory.pipe_file("/b/out.txt", b"of another day\n")
    with patch.object(MemoryFileSystem, "put_file", side_effect=PermissionError("Forbidden")):
        result = invoke(*command)
    assert str(result.exception).startswith("memory://b/out.txt: cannot be written: access is den")
    assert "nmt: out.txt.part keeps the output for lines 1 to 5; to continue" in result.stderr
    assert names_here() == {"out.txt.part", "out.txt.part.json"}
    with patch("nmt.translation.pipeline.Pipeline.translate_batch", side_effect=AssertionError):
        succeed(*command, "--resume")
    assert memory.cat_file("/b/out.txt").count(b"\n") == len(LINES)
    assert names_here() == set()


def test_an_interruption_before_the_first_window_is_not_taken_for_a_complete_output(
    tiny_run: Path, memory: MemoryFileSystem
) -> None:
    command = ("translate", "-m", tiny_run, "memory://b/in.txt", "-o", "memory://b/out.txt")
    memory.pipe_file("/b/out.txt", b"of another day\n")
    with patch.object(partial_output.PartialOutput, "write", side_effect=DataError("stopped")):
        fail(DataError, *command)
    succeed(*command, "--resume")
    assert memory.cat_file("/b/out.txt").count(b"\n") == len(LINES)


def test_a_page_by_url(tiny_run: Path, memory: MemoryFileSystem) -> None:
    memory.pipe_file("/b/in.html", b"<p>a <b>small</b> dog</p>")
    command = ("translate", "-m", tiny_run, "--html", "memory://b/in.html")
    expected = succeed(*command).encode()
    succeed(*command, "-o", "memory://b/out.html")
    assert memory.cat_file("/b/out.html") == expected
    assert names_here() == set()


def test_two_files_of_pairs(tiny_run: Path, memory: MemoryFileSystem, tmp_path: Path) -> None:
    memory.pipe_file("/b/out.de", b"ein Hund\n" * len(LINES))
    names = ("--source", "memory://b/in.txt", "--reference", "memory://b/out.de")
    expected = succeed("score", "-m", tiny_run, "memory://b/pairs.tsv")
    assert succeed("score", "-m", tiny_run, *names) == expected


def test_pairs_are_made_here_and_uploaded(
    tiny_run: Path, memory: MemoryFileSystem, tmp_path: Path
) -> None:
    command = ("synthesize", "-m", tiny_run, "-i", "memory://b/in.txt", "-o")
    with patch.object(MemoryFileSystem, "put_file", side_effect=PermissionError("Forbidden")):
        message = fail(DataError, *command, "memory://b/made")
    assert message.startswith("memory://b/made/text.de: cannot be written: access is denied")
    assert memory.exists("/b/made") is False
    again = invoke(*command, "memory://b/made")
    assert "made is complete; nothing to do" in again.stderr
    assert "memory://b/made: uploaded from made" in again.stderr
    succeed(*command, tmp_path / "local")
    names = {path.name for path in (tmp_path / "local").iterdir()} - {".lock"}
    assert names == {"text.de", "text.en", "origin.tsv", "pairs.json"}
    for name in names:
        assert memory.cat_file(f"/b/made/{name}") == (tmp_path / "local" / name).read_bytes()
    manifest = json.loads(memory.cat_file("/b/made/pairs.json"))
    assert manifest["inputs"][0]["file"] == "memory://b/in.txt"


def test_bad_urls(tiny_run: Path, tmp_path: Path) -> None:
    local = write_lines(tmp_path / "in.txt", LINES)
    translate = ("translate", "-m", tiny_run)
    assert "memory://b/none: no such file" in fail(DataError, *translate, "memory://b/none")
    message = fail(ConfigError, *translate, "memory://b/in.txt", "-o", "memory://b/in.txt")
    assert "the output memory://b/in.txt and the input memory://b/in.txt are the same" in message
    for command in (
        [*translate, local, "-o", "s4://b/out"],
        ["score", "-m", tiny_run, "s4://b/in"],
        ["synthesize", "-m", tiny_run, "-i", local, "-o", "s4://b/made"],
    ):
        assert "no service is known for s4://" in fail(ConfigError, *command)
    assert names_here() == set()


DENIED = {"Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": "arn:aws:s3:::closed/*"}


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A client of an S3 server on this machine, with the buckets `texts` and `closed`."""
    boto3 = pytest.importorskip("boto3", reason="needs the packages moto[server] and s3fs")
    server = pytest.importorskip("moto.server", reason="needs the packages moto[server] and s3fs")
    thread = server.ThreadedMotoServer("127.0.0.1", 0)
    thread.start()
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://{}:{}".format(*thread.get_host_and_port()))
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"):
        monkeypatch.setenv(f"AWS_{name}", "a")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    client = boto3.client("s3")
    for bucket in ("texts", "closed"):
        client.create_bucket(Bucket=bucket)
    client.put_bucket_policy(Bucket="closed", Policy=json.dumps({"Statement": [DENIED]}))
    yield client
    thread.stop()


@pytest.mark.slow
def test_a_compressed_text_in_s3_is_translated_into_s3(
    tiny_run: Path, tmp_path: Path, s3: Any, project: Path
) -> None:
    content = "".join(f"{line} {number}\n" for number in range(2000) for line in LINES).encode()
    s3.put_object(Bucket="texts", Key="d/in.txt.gz", Body=gzip.compress(content))
    (tmp_path / "in.txt").write_bytes(content)
    expected = succeed("translate", "-m", tiny_run, tmp_path / "in.txt").encode()

    def translate(source: str, target: str, *options: str) -> str:
        """Run the command as users do, in a process of its own; return its stderr."""
        done = subprocess.run(
            [
                *(sys.executable, "-W", "error", "-m", "nmt", "translate", "-m", str(tiny_run)),
                *("--workers", "2", source, "-o", target, *options),
            ],
            env=os.environ | {"PYTHONPATH": str(project)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == (0 if not done.stderr else 1) and done.stdout == ""
        return done.stderr

    assert translate("s3://texts/d/in.txt.gz", "s3://texts/e/out.txt") == ""
    assert s3.get_object(Bucket="texts", Key="e/out.txt")["Body"].read() == expected
    assert "s3://texts/none: no such file or bucket" in translate("s3://texts/none", "out.txt")
    denied = translate("s3://texts/d/in.txt.gz", "s3://closed/out.txt")
    assert "nmt: s3://closed/out.txt: cannot be written: access is denied; check" in denied
    assert names_here() == {"out.txt.part", "out.txt.part.json"}
    s3.delete_bucket_policy(Bucket="closed")
    assert translate("s3://texts/d/in.txt.gz", "s3://closed/out.txt", "--resume") == ""
    assert s3.get_object(Bucket="closed", Key="out.txt")["Body"].read() == expected
