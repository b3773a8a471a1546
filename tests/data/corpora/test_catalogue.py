"""What there is for two languages is asked of OPUS and the Hub, and known without them."""

import json
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl

import pytest

from nmt.data.corpora import catalogue, hub, opus
from nmt.data.corpora.catalogue import Listing, Pair, ask_sources, known_corpora
from nmt.data.corpora.registry import CORPORA, find_corpus
from nmt.data.languages import find_language
from tests.data.corpora.site import Site

OPUS, HUB = "/opusapi/", "/api/datasets"


def pair(source: str = "en", target: str = "it") -> Pair:
    return find_language(source), find_language(target)


def entry(corpus: str, **changes: Any) -> dict[str, Any]:
    """What the API of OPUS says about a corpus, with some fields changed."""
    url = f"https://object.pouta.csc.fi/OPUS-{corpus}/v8/moses/en-it.txt.zip"
    whole: dict[str, Any] = {"alignment_pairs": 1946253, "corpus": corpus, "documents": ""}
    whole |= {"id": 1, "latest": "True", "preprocessing": "moses", "size": 193000, "source": "en"}
    whole |= {"source_tokens": 5, "target": "it", "target_tokens": 5, "url": url, "version": "v8"}
    return whole | changes


def data_set(name: str, *tags: str, **card: Any) -> dict[str, Any]:
    """What the API of the Hub says about a data set."""
    fixed = ["task_categories:translation", "language:en", "language:it", "library:datasets"]
    return {"id": name, "tags": [*fixed, *tags, "region:us", "croissant"], "cardData": card}


def configuration(name: str, **splits: int) -> dict[str, Any]:
    counts = [{"name": split, "num_bytes": 9, "num_examples": n} for split, n in splits.items()]
    return {"config_name": name, "features": [], "splits": counts, "download_size": 9}


@pytest.fixture
def sources(site: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    """OPUS and the Hub, which both have nothing."""
    monkeypatch.setattr(opus, "API", f"{site.url}{OPUS}")
    monkeypatch.setattr(hub, "ENDPOINT", site.url)
    answer(site, [], [])
    return site


def answer(site: Site, corpora: Any, data: Any) -> None:
    site.files = {OPUS: json.dumps({"corpora": corpora}).encode(), HUB: json.dumps(data).encode()}


def test_opus_tells_the_newest_version_of_each_corpus(sources: Site) -> None:
    part = entry("Europarl", alignment_pairs=5)
    part["url"] = part["url"].replace("en-it", "en-it.strict")
    unknown = entry("XLEnt", alignment_pairs="", size="")
    answer(sources, [part, entry("Europarl"), unknown, entry("NLLB", alignment_pairs="7")], [])
    listings, failures = ask_sources(pair("it", "en"))
    assert failures == {}
    assert listings == [
        Listing("opus:Europarl", "OPUS", 1_946_253, "198MB", "", "training"),
        Listing("opus:XLEnt", "OPUS", None, "", "", "training"),
        Listing("opus:NLLB", "OPUS", 7, "198MB", "ODC-By 1.0", "training"),
    ]
    query = "source=en&target=it&preprocessing=moses&version=latest"
    assert f"{OPUS}?{query}" in sources.asked


def test_test_sets_of_opus_are_not_for_training(sources: Site) -> None:
    answer(sources, [entry("WMT-News")], [])
    assert [listing.use for listing in ask_sources(pair())[0]] == ["test"]


def test_the_hub_tells_the_size_of_a_configuration_that_is_named_by_the_languages(
    sources: Site,
) -> None:
    books = [configuration("de-en", train=1), configuration("en-it", train=32_332)]
    tags = ("license:other", "license:mit", "size_categories:1M<n<10M")
    one = configuration("wmt_it-en", validation=9, test=8)
    answer(
        sources,
        [],
        [
            data_set("a/books", *tags, dataset_info=books),
            data_set("a/one", dataset_info=one),
            data_set("a/dev", dataset_info=[configuration("it_en", train=3, dev=2)]),
            data_set("a/other", dataset_info=[configuration("item-entity", train=3)]),
            data_set("a/plain", "size_categories:n<1K"),
            data_set("a/none") | {"cardData": None},
        ],
    )
    listings, failures = ask_sources(pair("en_GB", "ita"))
    assert failures == {}
    assert listings == [
        Listing("hf:a/books:en-it", "Hub", 32_332, "1M<n<10M", "other", "training"),
        Listing("hf:a/one:wmt_it-en", "Hub", 8, "", "", "validation, test"),
        Listing("hf:a/dev:it_en", "Hub", 3, "", "", "training, validation"),
        Listing("hf:a/other", "Hub"),
        Listing("hf:a/plain", "Hub", size="n<1K"),
        Listing("hf:a/none", "Hub"),
    ]
    [asked] = [path for path in sources.asked if path.startswith(HUB)]
    query = parse_qsl(asked.partition("?")[2])
    assert [value for key, value in query if key == "filter"] == [
        "task_categories:translation",
        "library:datasets",
        "language:en",
        "language:it",
    ]
    assert {("gated", "false"), ("expand", "cardData"), ("expand", "tags")} <= set(query)


@pytest.fixture
def silent_server() -> Iterator[str]:
    """A server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def test_a_source_that_does_not_answer_is_told_and_the_other_one_is_heard(
    sources: Site, silent_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue, "ANSWER_S", 0.2)
    monkeypatch.setattr(opus, "API", silent_server)
    answer(sources, [], [data_set("a/b")])
    listings, failures = ask_sources(pair())
    assert [listing.name for listing in listings if listing.source == "Hub"] == ["hf:a/b"]
    assert list(failures) == ["OPUS"]
    assert "no answer within 0.2 seconds" in failures["OPUS"] or "timed out" in failures["OPUS"]


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (b"<html>", "an answer that is not JSON"),
        (b"[1]", "not the answer expected: TypeError"),
        (b'{"corpora": [{}]}', "not the answer expected: KeyError 'url'"),
        (b'{"corpora": [{"url": 1}]}', "not the answer expected: AttributeError"),
        (json.dumps({"corpora": [entry("X", size="many")]}).encode(), "expected: ValueError"),
        (None, "HTTP 404"),
    ],
)
def test_an_answer_that_makes_no_sense_is_told(
    sources: Site, reply: bytes | None, reason: str
) -> None:
    sources.files = {} if reply is None else {OPUS: reply, HUB: reply}
    listings, failures = ask_sources(pair())
    assert reason in failures["OPUS"]
    assert set(failures) == {"OPUS", "the Hugging Face Hub"}
    assert [listing.name for listing in listings] == [
        "opus:Europarl",
        "opus:News-Commentary",
        "opus:TED2020",
    ]
    assert listings[0].pairs == 1_946_253 and listings[2].pairs is None


def test_what_is_known_of_opus_fits_the_languages(
    sources: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources.files = {}

    def offline(source: str, target: str) -> dict[str, int | None]:
        return {listing.name: listing.pairs for listing in ask_sources(pair(source, target))[0]}

    assert offline("lv", "sv") == {"opus:Europarl": None}
    assert offline("zh", "en") == {"opus:News-Commentary": 125_996}
    assert offline("zh_cn", "en") == {"opus:TED2020": None}
    assert offline("ca", "it") == {}


def test_the_known_corpora_of_two_languages_have_their_sizes() -> None:
    found = {listing.name: listing for listing in known_corpora(pair("it", "en"))}
    expected = ["iwslt2017", "opus_books", "flores200", "ntrex128", "tatoeba_challenge"]
    assert list(found) == expected
    assert [found[name].pairs for name in expected] == [231_619, 32_332, 1012, 1997, 378_109_944]
    assert found["flores200"].use == "validation, test" and found["ntrex128"].use == "test"
    assert found["iwslt2017"].licence == CORPORA["iwslt2017"].licence
    fewer = {listing.name for listing in known_corpora(pair("ast", "vec"))}
    assert fewer == {"flores200", "tatoeba_challenge"}
    assert known_corpora(pair("nds", "en")) == []


def test_the_table_names_corpora_and_languages_that_there_are() -> None:
    table = catalogue._table()
    assert set(table["known"]) <= set(CORPORA)
    for name, facts in table["opus"].items():
        find_corpus(f"opus:{name}")
        languages = f"{facts.get('languages', '')} {facts.get('with_english', '')}".split()
        assert all(find_language(code).code == code for code in languages)
        assert set(facts) <= {"languages", "with_english", "pairs", "licence", "use"}
        for key in facts.get("pairs", {}):
            assert set(key.split("-")) <= set(languages)
    opus_sizes = [facts.get("pairs", {}) for facts in table["opus"].values()]
    for sizes in [*table["known"].values(), *opus_sizes]:
        for key, count in sizes.items():
            assert isinstance(count, int) and count > 0
            assert key == "any" or key == "-".join(sorted(key.split("-"))), key
