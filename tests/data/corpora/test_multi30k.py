"""Each text of Multi30k is asked for where upstream keeps it."""

from pathlib import Path

import pytest

from nmt.data.corpora import multi30k
from nmt.data.corpora.download import Origin, RemoteText

ROOT = (
    "https://raw.githubusercontent.com/multi30k/dataset/"
    "a3d2e0d26b56f3846f66a952536ffed4e401d05a/data/task1"
)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, RemoteText]:
    """What `obtain` is asked for, by the name it is to have here."""
    texts: dict[str, RemoteText] = {}

    def obtain(text: RemoteText, path: Path, origin: Origin) -> None:
        texts[path.name] = text

    monkeypatch.setattr(multi30k, "obtain", obtain)
    return texts


def test_raw_text_is_compressed_upstream(tmp_path: Path, asked: dict[str, RemoteText]) -> None:
    multi30k.write_raw(tmp_path, ("en", "fr"), Origin(None, tmp_path, lambda message: None))
    assert {name: text.url for name, text in asked.items()} == {
        "train.en": f"{ROOT}/raw/train.en.gz",
        "train.fr": f"{ROOT}/raw/train.fr.gz",
        "validation.en": f"{ROOT}/raw/val.en.gz",
        "validation.fr": f"{ROOT}/raw/val.fr.gz",
        "test.en": f"{ROOT}/raw/test_2016_flickr.en.gz",
        "test.fr": f"{ROOT}/raw/test_2016_flickr.fr.gz",
    }
    assert asked["test.en"].size == 62_076
    assert asked["train.en"].sha256.startswith("460a15fb")


def test_tokenised_text_is_plain_upstream(tmp_path: Path, asked: dict[str, RemoteText]) -> None:
    multi30k.write_tokenized(tmp_path, ("en", "de"), Origin(None, tmp_path, lambda message: None))
    assert asked["train.de"].url == f"{ROOT}/tok/train.lc.norm.tok.de"
    assert asked["test.de"].url == f"{ROOT}/tok/test_2016_flickr.lc.norm.tok.de"
    assert (asked["validation.de"].size, len(asked)) == (77_273, 6)
