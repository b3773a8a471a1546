"""Official test sets come from sacreBLEU, which keeps them in a folder of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nmt.errors import ConfigError
from nmt.evaluation.metrics import official_test_set

PROJECT = Path(__file__).resolve().parents[2]
# in a process of its own: sacreBLEU reads the environment when it is imported
SCRIPT = """
import json, sys, urllib.request
from nmt.errors import NmtError
from nmt.evaluation.metrics import official_test_set

def refuse(url):
    raise OSError("no network here")

urllib.request.urlopen = refuse
try:
    print(json.dumps(official_test_set(sys.argv[1], tuple(sys.argv[2].split("-")))))
except NmtError as error:
    print(json.dumps(str(error)))
"""
FIELDS = ("src", "ref", "docid", "genre", "origlang")


def asked(cache: Path, name: str, pair: str) -> object:
    environment = os.environ | {"SACREBLEU": str(cache), "PYTHONPATH": str(PROJECT)}
    command = [sys.executable, "-c", SCRIPT, name, pair]
    result = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    return json.loads(result.stdout)


def prepare(cache: Path, name: str, pair: str, **texts: str) -> None:
    """The files that sacreBLEU writes once it has a test set."""
    (cache / name).mkdir(parents=True)
    for field in FIELDS:
        path = cache / name / f"{name.replace('/', '_')}.{pair}.{field}"
        path.write_text(texts.get(field, "x\nx\n"), "utf-8")


@pytest.mark.parametrize("name", ["wmt13", "wmt14/full"])
def test_set_in_the_cache_needs_no_network(tmp_path: Path, name: str) -> None:
    prepare(tmp_path, name, "en-de", src="A dog\u2028barks\nTwo\n", ref="Ein Hund bellt\nZwei\n")
    pairs = [["A dog\u2028barks", "Ein Hund bellt"], ["Two", "Zwei"]]
    assert asked(tmp_path, name, "en-de") == pairs


def test_set_in_parts_is_refused(tmp_path: Path) -> None:
    prepare(tmp_path, "wmt13", "en-fr", src="one\ntwo\n", ref="un\n")
    message = asked(tmp_path, "wmt13", "en-fr")
    assert "2 sentences and 1 references of en-fr, expected as many" in str(message)


def test_set_that_cannot_be_downloaded_is_told(tmp_path: Path) -> None:
    message = str(asked(tmp_path, "wmt13", "en-fr"))
    assert message.startswith("test set 'wmt13' cannot be had from sacreBLEU: no network here; ch")
    assert f"delete {tmp_path / 'wmt13'} and try again" in message


@pytest.mark.parametrize(
    ("name", "pair", "message"),
    [
        ("wmt14/ful", ("en", "de"), "no test set 'wmt14/ful'; did you mean 'wmt14/full'.*--list"),
        ("x", ("en", "de"), "no test set 'x'; known are wmt13, wmt14/full and others"),
        ("wmt13", ("en", "it"), "test set 'wmt13' has no en-it; it has .*de-en, .*en-de"),
    ],
)
def test_unknown_set_is_told(name: str, pair: tuple[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        official_test_set(name, pair)
