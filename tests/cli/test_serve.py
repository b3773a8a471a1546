"""`nmt serve`: keys, and mistakes; the server itself is tested in tests/serving."""

import shlex
import sys
from pathlib import Path

import pytest

from nmt.errors import CheckpointError, ConfigError, MissingExtraError
from tests.cli.commands import fail, succeed


def test_a_new_key_is_printed_once_and_its_hash_stored(tmp_path: Path) -> None:
    path = tmp_path / "keys.yaml"
    key = succeed("serve", "--keys", path, "--add-key", "anna").strip()
    assert len(key) >= 40
    assert key not in path.read_text()
    assert "name: anna" in path.read_text()


def test_a_key_needs_a_file() -> None:
    message = fail(ConfigError, "serve", "--add-key", "anna")
    assert message == "--add-key writes into the file of keys; name it with --keys FILE"


@pytest.mark.parametrize("name", ["", " ", "a\nb", "\udcff"])
def test_a_key_needs_a_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / "keys.yaml"
    message = fail(ConfigError, "serve", "--keys", path, "--add-key", name)
    assert message.startswith(f"{name!r} is no name for an API key: expected printable characters")
    assert not path.exists()


def test_a_missing_file_of_keys_names_the_command_that_writes_it(
    tiny_run: Path, tmp_path: Path
) -> None:
    path = tmp_path / "all keys.yaml"
    message = fail(ConfigError, "serve", "--model", tiny_run, "--keys", path)
    command = message.partition("add a key: nmt ")[2].replace("NAME", "anna")
    succeed(*shlex.split(command))
    assert "name: anna" in path.read_text()


def test_a_run_that_is_missing_is_an_error(tmp_path: Path) -> None:
    missing = tmp_path / "none"
    assert "no such directory" in fail(CheckpointError, "serve", "--model", missing)
    assert "'models' is missing" in fail(ConfigError, "serve")


def test_without_its_libraries_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("nmt.serving")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    message = fail(MissingExtraError, "serve", "--model", "run")
    assert message == "nmt serve needs the extra 'serve': pip install 'nmt[serve]'"
