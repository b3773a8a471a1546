"""An address stands where the name of a corpus does, and leads nowhere else."""

from pathlib import Path
from typing import Any

import pytest

from nmt.data.corpora import open_corpora
from nmt.data.corpora.download import Origin
from nmt.data.corpora.hub import HubData
from nmt.data.corpora.open_corpora import from_address
from nmt.data.corpora.registry import find_corpus
from nmt.errors import ConfigError


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("hf:wmt/wmt16:de-en", HubData("wmt/wmt16", "de-en", None)),
        ("hf:bentrevett/multi30k", HubData("bentrevett/multi30k", None, None)),
        ("hf:a/b@v1.0:c_d", HubData("a/b", "c_d", "v1.0")),
        ("hf:a/b@refs/convert/parquet", HubData("a/b", None, "refs/convert/parquet")),
    ],
)
def test_parts_of_a_hub_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, data: HubData
) -> None:
    calls: list[Any] = []
    monkeypatch.setattr(open_corpora, "write_hub_text", lambda *given: calls.append(given))
    origin = Origin(None, tmp_path, lambda message: None)
    find_corpus(name).write(tmp_path, ("de", "en"), origin)
    assert calls == [(data, ("de", "en"), tmp_path, origin)]


@pytest.mark.parametrize(
    ("name", "corpus", "version"),
    [("opus:Books", "Books", None), ("opus:QED:v2.0a", "QED", "v2.0a")],
)
def test_parts_of_an_opus_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, corpus: str, version: str | None
) -> None:
    calls: list[Any] = []
    monkeypatch.setattr(open_corpora, "write_moses", lambda *given: calls.append(given))
    origin = Origin(None, tmp_path, lambda message: None)
    find_corpus(name).write(tmp_path, ("de", "en"), origin)
    assert calls == [(corpus, version, ("de", "en"), tmp_path, origin)]


def test_name_of_a_corpus_is_no_address() -> None:
    assert from_address("wmt14") is None


@pytest.mark.parametrize(
    "name",
    ["hf:", "hf:wmt14", "hf:wmt14:de-en", "hf:a/../b:c", "hf:../a", "hf:a/b/c", "hf:a/b:c:d"]
    + ["hf:a/b@../x", "hf:a/b@:c", "hf:/etc/passwd", "opus:", "opus:a/b", "opus:..", "opus:a:b:c"],
)
def test_address_that_is_none_is_refused(name: str) -> None:
    kind = name.partition(":")[0]
    with pytest.raises(ConfigError, match=f"'{name}' is no address of a corpus; expected {kind}:"):
        find_corpus(name)


@pytest.mark.parametrize("name", ["hf:a/b@refs/x:c-d", "hf:a/b", "opus:Books:v1"])
def test_its_folder_is_one_folder(name: str) -> None:
    folder = find_corpus(name).folder
    assert Path(folder).name == folder and ":" not in folder


@pytest.mark.parametrize(
    ("name", "pair"),
    [
        ("hf:wmt/wmt16:de-en", ("de", "en")),
        ("hf:IWSLT/x:iwslt2017-en-it", ("en", "it")),
        ("hf:a/b:ro_en", ("ro", "en")),
    ],
)
def test_configuration_may_tell_the_languages(name: str, pair: tuple[str, str]) -> None:
    assert find_corpus(name).pair_of(None, None) == pair
    assert find_corpus(name).pair_of(pair[1], None) == pair[::-1]
    with pytest.raises(ConfigError, match=f"has no xx-any; it has {pair[0]}-{pair[1]}"):
        find_corpus(name).pair_of("xx", None)


@pytest.mark.parametrize("name", ["hf:a/b", "hf:a/b:plain", "hf:a/b:en-en", "opus:Books"])
def test_languages_that_nothing_tells_are_to_be_named(name: str) -> None:
    corpus = find_corpus(name)
    assert corpus.pair_of("en", "pt_br") == ("en", "pt_br")
    for source, target in ((None, None), ("en", None), (None, "fr"), ("en", "en")):
        with pytest.raises(ConfigError, match="which languages. got .*; name two .*--source-langu"):
            corpus.pair_of(source, target)
    for bad in ("../en", "", "e n"):
        with pytest.raises(ConfigError, match=f"'{bad}' is not the code of a language"):
            corpus.pair_of(bad, "fr")
