"""`nmt data` names the corpora and fetches them; stdout holds the result alone."""

import json
import lzma
from pathlib import Path

import pytest

from nmt.data.corpora import demo_corpus, hub, opus
from nmt.data.corpora.registry import CORPORA
from nmt.errors import DataError
from tests.cli.commands import fail, invoke, lines_of, records_of, succeed
from tests.data.corpora.site import Site


@pytest.fixture(autouse=True)
def no_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NMT_TEST_DATA", raising=False)


def test_list_names_every_corpus_in_an_aligned_block_and_explains_addresses() -> None:
    output = succeed("data", "list")
    for corpus in CORPORA.values():
        assert f"{corpus.name}: {corpus.description}\n" in output
        assert corpus.licence in output
    assert max(map(len, output.splitlines())) <= 100
    assert (
        "\nwmt14: the paper's task; validation newstest2013, test newstest2014\n"
        "    languages  en-de, en-fr; both directions\n"
        "    pairs      4.5 M (de), 40.8 M (fr)\n"
        "    download   0.8 GB (de), about 8 GB (fr)\n"
        "    licence    research; see the description of each part\n"
        "    source     https://huggingface.co/datasets/wmt/wmt14\n"
        "\n"
    ) in output
    assert "\n    languages  many, any two of them\n    pairs      997 (validation)" in output
    starts = {line[:15].strip() for line in output.splitlines() if line.startswith("    ")}
    assert starts == {"languages", "pairs", "download", "licence", "source", ""}
    assert "hf:OWNER/NAME[@REVISION][:CONFIGURATION]:\n" in output
    assert "opus:CORPUS[:VERSION]:\n" in output


def test_json_says_the_same() -> None:
    [found] = records_of("data", "list", "--json")
    assert [corpus["name"] for corpus in found["corpora"]] == list(CORPORA)
    assert found["corpora"][1] == {
        "name": "multi30k",
        "description": "descriptions of photographs, raw text; test set 2016 Flickr",
        "languages": ["en-de", "en-fr", "de-fr"],
        "pairs": "29,000",
        "download": "1.3 MB",
        "licence": "research and education, not commercial",
        "source": "https://github.com/multi30k/dataset",
    }
    assert len(found["others"]) == 2


def test_download_prints_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("train.en", "train.de", "validation.en", "validation.de", "test.en", "test.de")

    def write(directory: Path, seed: int = 1) -> None:
        for name in names:
            (directory / name).write_text("a\n")

    monkeypatch.setattr(demo_corpus, "write", write)
    result = invoke("data", "download", "demo", "--directory", tmp_path)
    paths = [tmp_path / "demo" / "de-en" / name for name in names]
    assert result.stdout.splitlines() == list(map(str, paths))
    assert all(path.is_file() for path in paths)
    assert result.stderr == "generating the demo corpus\n"
    again = invoke("data", "download", "demo", "--directory", tmp_path)
    assert (again.stdout, again.stderr) == (result.stdout, "")


def test_download_from_copies_needs_no_network(tmp_path: Path, test_data: Path) -> None:
    """One of the copies stands for their folder."""
    command = ("data", "download", "--directory", tmp_path, "--from")
    copies = test_data / "multi30k"
    first, *_ = lines_of(*command, copies, "multi30k", "--source-language", "fr")
    assert first == str(tmp_path / "multi30k" / "en-fr" / "train.fr")
    assert Path(first).stat().st_size == 2_111_303
    whole = tmp_path / "fra.txt"
    whole.write_bytes(lzma.decompress((test_data / "tatoeba_en_fr" / "all.tsv.xz").read_bytes()))
    assert len(lines_of(*command, whole, "tatoeba_en_fr")) == 6


@pytest.fixture
def sources(site: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    """OPUS, and the Hub with a data set of a strange name."""
    monkeypatch.setattr(opus, "API", f"{site.url}/opusapi/")
    monkeypatch.setattr(hub, "ENDPOINT", site.url)
    url = "https://object.pouta.csc.fi/OPUS-NLLB/v1/moses/en-it.txt.zip"
    entry = {"corpus": "NLLB", "url": url, "alignment_pairs": 500_000_000, "size": 9_765_625}
    site.files["/opusapi/"] = json.dumps({"corpora": [entry]}).encode()
    data = [{"id": "a/b\x1b", "tags": ["size_categories:n<1K", "license:mit"], "cardData": {}}]
    site.files["/api/datasets"] = json.dumps(data).encode()
    return site


NEXT = (
    "next: nmt data download NAME --source-language en --target-language it; or in a recipe data: "
    "{corpus: NAME, source_language: en, target_language: it}; or with a name of sacreBLEU "
    "nmt eval-bleu --test-set NAME"
)


def test_find_lists_what_there_is_the_largest_first(sources: Site) -> None:
    result = invoke("data", "find", "eng", "it")
    head, *rows = result.stdout.splitlines()
    assert head.split() == ["name", "pairs", "for", "from", "size", "licence"]
    assert [row.split()[0] for row in rows] == [
        *("opus:NLLB", "tatoeba_challenge", "iwslt2017", "opus_books", "ntrex128", "flores200"),
        *("hf:a/b", "wmt09"),
    ]
    first = ["opus:NLLB", "500,000,000", "training", "OPUS", "10.0GB", "ODC-By", "1.0"]
    assert rows[0].split() == first
    assert rows[0].index("500,000,000") + 11 == rows[4].index("1,997") + 5
    assert rows[-1].split() == ["wmt09", "test", "sacreBLEU"]
    asking = "asking OPUS and the Hugging Face Hub, 10 seconds at most"
    assert result.stderr.splitlines() == [asking, NEXT]


def test_find_without_a_network_says_what_could_not_be_asked(sources: Site) -> None:
    sources.files.clear()
    result = invoke("data", "find", "en", "it", "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert found["languages"] == ["en", "it"]
    assert list(found["not_asked"]) == ["OPUS", "the Hugging Face Hub"]
    assert found["corpora"][1] == {
        "name": "opus:Europarl",
        "source": "OPUS",
        "pairs": 1_946_253,
        "size": "",
        "licence": "",
        "use": "training",
    }
    _, opus_line, hub_line, last = result.stderr.splitlines()
    assert opus_line.startswith("OPUS could not be asked (127.0.0.1:")
    assert opus_line.endswith(
        "HTTP 404 Not Found); the list has what nmt knows of it without asking"
    )
    assert hub_line.endswith("HTTP 404 Not Found); the list has nothing of it")
    assert last == NEXT


def test_two_languages_without_any_text_are_told(sources: Site) -> None:
    sources.files = {"/opusapi/": b'{"corpora": []}', "/api/datasets": b"[]"}
    message = fail(DataError, "data", "find", "itl", "qqq")
    assert message.startswith("nothing was found for itl and qqq; are the codes right? The nearest")
