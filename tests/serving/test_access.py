"""Keys and limits: who may translate, and how much."""

import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from nmt.errors import ConfigError
from nmt.serving.access import Access, add_key, read_keys
from nmt.serving.answers import RequestError
from nmt.serving.settings import ServerSettings
from tests.serving.conftest import Client

BODY = {"q": "a dog", "source": "en", "target": "de"}


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    return tmp_path / "keys.yaml"


def access(**settings: Any) -> Access:
    return Access(ServerSettings(models=["run"], **settings))


def test_only_a_known_key_translates(serve: Client, keys: Path) -> None:
    key = add_key(keys, "anna")
    client = serve(keys=str(keys))
    assert client.get("/frontend/settings").json()["keyRequired"]
    for wrong in ({}, {"api_key": "wrong"}, {"api_key": key[:-1]}):
        response = client.post("/translate", json={**BODY, **wrong})
        assert response.status_code == 403
        assert "API key" in response.json()["error"]
    assert client.post("/translate", json={**BODY, "api_key": key}).status_code == 200
    headers = {"Authorization": f"Bearer {key}"}
    body = {"text": "a dog", "source": "en", "target": "de"}
    assert client.post("/v1/translate", json=body, headers=headers).status_code == 200
    assert client.post("/v1/translate", json=body).status_code == 403


def test_the_file_of_keys_has_no_key_and_is_for_its_owner(keys: Path) -> None:
    made = [add_key(keys, name) for name in ("anna", "ben")]
    assert len(set(made)) == 2
    assert not any(key in keys.read_text() for key in made)
    assert keys.stat().st_mode & 0o777 == 0o600
    assert [key.name for key in read_keys(keys).keys] == ["anna", "ben"]
    with pytest.raises(ConfigError, match="has a key of 'anna'; choose another name"):
        add_key(keys, "anna")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to others")
def test_a_new_key_changes_neither_mode_nor_owner_of_the_file(keys: Path, tmp_path: Path) -> None:
    add_key(keys, "anna")
    os.chown(keys, 65534, 65533)
    keys.chmod(0o640)
    link = tmp_path / "link.yaml"
    link.symlink_to(keys.name)
    add_key(link, "ben")
    found = keys.stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (65534, 65533, 0o640)
    assert link.is_symlink() and len(list(tmp_path.iterdir())) == 2


def test_who_cannot_keep_the_owner_of_the_file_is_told(
    keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_key(keys, "anna")
    before = keys.read_bytes()

    def fail(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "chown", fail)
    with pytest.raises(ConfigError, match="cannot be written so that its owner stays: Operation"):
        add_key(keys, "ben")
    assert keys.read_bytes() == before and len(list(keys.parent.iterdir())) == 1


@pytest.mark.parametrize(
    "text",
    [
        "# keys of the house\nkeys:\n- name: anna  # until May\n  sha256: {}\n# the end\n",
        "keys:\n    - name: anna\n      sha256: {}",
        "---\nkeys:\n  # a note\n  - {{name: anna, sha256: {}}}\n",
        "keys: [{{name: anna, sha256: {}}}]\n",
        "keys: []\n",
        "",
    ],
)
def test_notes_in_the_file_stay(keys: Path, text: str) -> None:
    written = text.format("a" * 64)
    keys.write_text(written)
    names = [key.name for key in read_keys(keys).keys]
    key = add_key(keys, "ben")
    assert [known.name for known in read_keys(keys).keys] == [*names, "ben"]
    assert access(keys=str(keys)).admit("1.2.3.4", key, 1) == "key ben"
    if "#" in text:
        assert keys.read_text().startswith(written)


def test_keys_that_cannot_be_read_are_stale(serve: Client, keys: Path) -> None:
    key = add_key(keys, "anna")
    client = serve(keys=str(keys), reload_seconds=0.01)
    client.headers["Authorization"] = f"Bearer {key}"
    assert client.get("/readyz").status_code == 200
    assert "nmt_keys_stale_seconds 0.0" in client.get("/metrics").text
    text = keys.read_text()

    def write(text: str) -> None:  # at once, or the server may read an empty file
        new = keys.with_suffix(".new")
        new.write_text(text)
        new.replace(keys)

    damages: list[Callable[[], None]] = [lambda: write("keys: ["), keys.unlink]
    for damage in damages:
        damage()
        _wait_for_readiness(client, 503)
        answer = client.get("/readyz").json()
        assert answer["error"].startswith("the file of API keys cannot be read, so keys that were")
        assert str(keys) not in answer["error"]
        metrics = client.get("/metrics").text
        assert "nmt_keys_stale_seconds" in metrics and "nmt_keys_stale_seconds 0.0\n" not in metrics
        write(text)
        _wait_for_readiness(client, 200)


def _wait_for_readiness(client: TestClient, status: int) -> None:
    end = time.monotonic() + 20
    while client.get("/readyz").status_code != status:
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_new_key_is_known_after_a_reload_and_a_damaged_file_changes_nothing(keys: Path) -> None:
    add_key(keys, "anna")
    known = access(keys=str(keys))
    key = add_key(keys, "ben")
    with pytest.raises(RequestError, match="not known"):
        known.admit("1.2.3.4", key, 1)
    known.reload()
    assert known.admit("1.2.3.4", key, 1) == "key ben"
    keys.write_text("keys: [{name: ben}]")
    with pytest.raises(ConfigError, match="keys.yaml:1: 'keys.0.sha256' is missing"):
        known.reload()
    assert known.admit("1.2.3.4", key, 1) == "key ben"


def test_a_file_of_keys_that_is_missing_is_an_error(keys: Path) -> None:
    with pytest.raises(ConfigError, match="no such file of API keys; add a key: nmt serve"):
        access(keys=str(keys))


def test_requests_a_minute_are_limited_for_each_client(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    limited = access(requests_per_minute=3)
    for address in ("1.1.1.1", "2.2.2.2"):
        for _ in range(3):
            limited.admit(address, None, 1)
        with pytest.raises(RequestError, match="Slowdown: 3 requests a minute") as caught:
            limited.admit(address, None, 1)
        assert caught.value.status == 429
        assert caught.value.headers == {"Retry-After": "20"}
    now += 21
    limited.admit("1.1.1.1", None, 1)


@pytest.mark.parametrize(
    ("address", "other", "is_same"),
    [
        ("2001:db8:0:1::1", "2001:db8:0:1:ffff::2", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("fe80::1%eth0", "fe80::2%eth0", True),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("192.0.2.1", "192.0.2.2", False),
        ("proxy:1", "proxy:2", False),
    ],
)
def test_a_client_is_an_address_of_ipv4_or_64_bits_of_one_of_ipv6(
    address: str, other: str, is_same: bool
) -> None:
    limited = access(requests_per_minute=1)
    name = limited.admit(address, None, 1)
    if not is_same:
        assert limited.admit(other, None, 1) != name
        return
    with pytest.raises(RequestError, match="Slowdown: 1 requests a minute"):
        limited.admit(other, None, 1)


def test_who_waits_as_long_as_was_said_is_admitted(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    limited = access(requests_per_minute=50)  # one in 1.2 seconds
    for _ in range(50):
        limited.admit("1.1.1.1", None, 1)
    with pytest.raises(RequestError) as caught:
        limited.admit("1.1.1.1", None, 1)
    assert caught.value.headers
    now += int(caught.value.headers["Retry-After"])
    limited.admit("1.1.1.1", None, 1)


def test_a_new_limit_does_not_count_what_came_before_it(keys: Path) -> None:
    key = add_key(keys, "anna")
    text = keys.read_text()
    keys.write_text(text + "  characters_per_day: 100000\n")
    limited = access(keys=str(keys))
    for _ in range(1000):
        limited.admit("1.1.1.1", key, 1)
    keys.write_text(text + "  requests_per_minute: 60\n")
    limited.reload()
    limited.admit("1.1.1.1", key, 1)


def test_a_damaged_file_of_keys_is_logged_once(
    serve: Client, keys: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "nmt.serving")
    add_key(keys, "anna")
    client = serve(keys=str(keys), reload_seconds=0.01)
    keys.write_text("keys: [{name: ben}]")
    time.sleep(0.2)
    assert client.get("/healthz").status_code == 200
    lines = [record.message for record in caplog.records]
    assert lines.count("the keys stay as they are") == 1


def test_characters_a_day_are_limited_until_the_next_day(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 86_400.0 * 20_000 + 86_000
    monkeypatch.setattr(time, "time", lambda: now)
    limited = access(characters_per_day=100)
    limited.admit("1.1.1.1", None, 60)
    with pytest.raises(RequestError, match="100 characters a day are allowed, and 60") as caught:
        limited.admit("1.1.1.1", None, 41)
    assert caught.value.headers == {"Retry-After": "400"}
    limited.admit("1.1.1.1", None, 40)
    now += 400
    limited.admit("1.1.1.1", None, 100)


def test_a_request_that_no_day_allows_is_too_large() -> None:
    limited = access(characters_per_day=100)
    with pytest.raises(RequestError, match="has 101 characters, and 100 a day are all") as caught:
        limited.admit("1.1.1.1", None, 101)
    assert (caught.value.status, caught.value.headers) == (413, None)
    limited.admit("1.1.1.1", None, 100)


def test_a_key_may_have_limits_of_its_own(keys: Path) -> None:
    key = add_key(keys, "anna")
    text = keys.read_text()
    keys.write_text(text + "  requests_per_minute: 1\n")
    limited = access(keys=str(keys), requests_per_minute=100)
    limited.admit("1.1.1.1", key, 1)
    with pytest.raises(RequestError, match="Slowdown: 1 requests"):
        limited.admit("2.2.2.2", key, 1)
